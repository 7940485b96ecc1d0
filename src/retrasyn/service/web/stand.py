"""The page over what is no campaign, from the first line to the last, stopped by a signal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from retrasyn.service.settings import LimitSettings, ServerSettings
from retrasyn.service.web.running import on_signals, reachable
from retrasyn.service.web.server import Server
from retrasyn.service.web.watching import Watching

if TYPE_CHECKING:
    from retrasyn.service.map_settings import MapSettings
    from retrasyn.service.viewing.exhibit import Exhibit

Work = Callable[[], Awaitable[None]]


class Stand:
    """Listens from construction on: a port in use is noticed before any data is read."""

    def __init__(self, *, host: str, port: int) -> None:
        settings = ServerSettings(host=host, port=port)
        self._server = Server(settings, header_seconds=LimitSettings().header_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._server.close()

    @property
    def url(self) -> str:
        """Where the page is, seen from this machine."""
        return reachable(self._server.url)

    def show(
        self,
        exhibit: Exhibit,
        settings: MapSettings,
        *,
        announce: Callable[[str], None],
        meanwhile: Work | None = None,
    ) -> int:
        """Serve until a signal comes; return the exit code: 0 after SIGTERM, 130 after Ctrl-C."""
        return asyncio.run(self._show(exhibit, settings, announce, meanwhile))

    async def _show(
        self,
        exhibit: Exhibit,
        settings: MapSettings,
        announce: Callable[[str], None],
        meanwhile: Work | None,
    ) -> int:
        app, stopped = Watching(exhibit, settings), on_signals()
        work: asyncio.Future[None] | None = None
        try:
            await self._server.start(app)
            announce(self.url)
            if meanwhile is not None:
                work = asyncio.ensure_future(meanwhile())
                await _either(work, stopped)
                if work.done():
                    work.result()  # what went wrong ends the show
            number = await stopped
        finally:
            # Closing takes a moment; another Ctrl-C would not make it shorter.
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)
            if work is not None:
                work.cancel()
            app.stopping.set()
            exhibit.feed.close()
            await self._server.stop()
        return 130 if number == signal.SIGINT else 0


async def _either(*futures: asyncio.Future[Any]) -> None:
    """Wait until one of them is done."""
    await asyncio.wait(futures, return_when="FIRST_COMPLETED")
