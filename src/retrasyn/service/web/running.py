"""Runs a web server until a signal comes, for a campaign or for a recording."""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from retrasyn.client.consent import rounds_until_cap, usual_place_of
from retrasyn.client.owner import write_link
from retrasyn.files import write_durably
from retrasyn.privacy.usual_place import duration
from retrasyn.service.basemap.basemap import BaseMap
from retrasyn.service.campaign_folder import settings_in_force
from retrasyn.service.runtime import CampaignRuntime
from retrasyn.service.service import Service
from retrasyn.service.settings import LimitSettings, ServerSettings, Settings
from retrasyn.service.web.app import CampaignApp, ViewerApp
from retrasyn.service.web.server import WebServer
from retrasyn.space import Box

if TYPE_CHECKING:
    from retrasyn.service.settings import MapSettings
    from retrasyn.service.viewing.source import ViewerContent

_log = logging.getLogger(__name__)
Work = Callable[[], Awaitable[None]]
ADDRESS = "address"
"""The file in the folder that says where the service is reached from this machine."""
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - to be replaced by a real one


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """What is announced about a service that has started."""

    campaign: str
    guarantee: str
    long_run: str  # what the guarantee does not cover
    period: int
    url: str
    link: str = field(repr=False)  # lets one device enrol; empty if none was asked for
    token_file: Path
    folder: Path
    beginning: str  # whether the campaign is new, goes on or returns


def run(
    settings: Settings,
    *,
    announce: Callable[[Running], None],
    link: bool = True,
    new_campaign: bool = False,
) -> int:
    """Serve until a signal comes; return the exit code: 0 after SIGTERM, 130 after Ctrl-C."""
    service = Service(settings, new_campaign=new_campaign)
    return asyncio.run(_run(service, announce, link=link))


async def _run(service: Service, announce: Callable[[Running], None], *, link: bool) -> int:
    settings, app = service.settings, None
    base_map = BaseMap.open(settings.map, Box(*settings_in_force(settings).box))
    server = WebServer(settings.server, settings.limits)
    stopped = on_signals()
    try:
        await service.start()
        runtime, token = service.runtime, service.operator_token
        known = runtime.campaign.run_settings.public_map
        base_map = base_map.with_roads(None if known is None else known.roads)
        app = CampaignApp(runtime, server.hosts, operator_token=token, base_map=base_map)
        await server.start(app)
        url = reachable(server.url)
        beginning = service.beginning + _moved(runtime, url)
        write_durably(settings.server.folder / ADDRESS, url.encode() + b"\n")
        announce(await _describe(runtime, url, link=link, beginning=beginning))
        _log.info("serving address=%s", server.url)
        number = await stopped
        _log.info("stopping signal=%s", signal.Signals(number).name)
    finally:
        if app is not None:
            await app.stop()
        await server.stop()
        await service.stop()
    _log.info("stopped")
    return 130 if number == signal.SIGINT else 0


def _moved(runtime: CampaignRuntime, url: str) -> str:
    """Say so if enrolled devices look for the service at another address."""
    server = runtime.settings.server
    try:
        before = (server.folder / ADDRESS).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    if server.public_url or before == url or not runtime.devices.n:
        return ""
    _log.warning("the address changed before=%s now=%s", before, url)
    return f" It was reached at {before} before: devices that enrolled there look for it there."


async def _describe(runtime: CampaignRuntime, url: str, *, link: bool, beginning: str) -> Running:
    server, status = runtime.settings.server, runtime.status()
    folder, public = server.folder, server.public_url or url
    token = (await runtime.devices.mint(1))[0] if link else ""
    key = runtime.campaign.ring.signer.public
    manifest = runtime.campaign.manifest
    place, last = usual_place_of(manifest), duration(rounds_until_cap(manifest) * manifest.period)
    told = "" if place is None else f"Not hidden: {place.statement}, after {last} of sharing."
    return Running(
        campaign=status["campaign"],
        guarantee=status["guarantee"],
        long_run=told,
        period=status["period"],
        url=public,
        link=write_link(public.rstrip("/"), token, key) if token else "",
        token_file=server.operator_token_file or folder / "operator.token",
        folder=folder,
        beginning=beginning,
    )


class ViewerServer:
    """Listens from construction on: a port in use is noticed before any data is read.

    Each has a token of its own, without which it answers nothing.
    """

    def __init__(self, *, host: str, port: int) -> None:
        self._server = WebServer(ServerSettings(host=host, port=port), LimitSettings())
        self._token = secrets.token_urlsafe(16)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._server.close()

    @property
    def url(self) -> str:
        """The URL of the page on this machine, with its token."""
        return f"{reachable(self._server.url)}/{self._token}/"

    def show(
        self,
        content: ViewerContent,
        settings: MapSettings,
        *,
        announce: Callable[[str], None],
        meanwhile: Work | None = None,
    ) -> int:
        """Serve until a signal comes; return the exit code: 0 after SIGTERM, 130 after Ctrl-C."""
        return asyncio.run(self._show(content, settings, announce, meanwhile))

    async def _show(
        self,
        content: ViewerContent,
        settings: MapSettings,
        announce: Callable[[str], None],
        meanwhile: Work | None,
    ) -> int:
        hosts, token = self._server.hosts, self._token
        app = ViewerApp(content, hosts, token=token, map_settings=settings)
        stopped = on_signals()
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
            await app.stop()
            content.feed.close()
            await self._server.stop()
        return 130 if number == signal.SIGINT else 0


async def _either(*futures: asyncio.Future[Any]) -> None:
    """Wait until one of them is done."""
    await asyncio.wait(futures, return_when="FIRST_COMPLETED")


def on_signals() -> asyncio.Future[int]:
    """Return a future that SIGINT or SIGTERM completes; a second signal ends the process."""
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()

    def stop(number: int) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)
        stopped.set_result(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    return stopped


def reachable(url: str) -> str:
    """Return the loopback URL of a server that listens on all addresses.

    >>> reachable("http://0.0.0.0:8700"), reachable("https://[::]:1")
    ('http://127.0.0.1:8700', 'https://[::1]:1')
    """
    for anywhere, here in _ANYWHERE.items():
        named = f"[{anywhere}]" if ":" in anywhere else anywhere
        url = url.replace(f"//{named}:", f"//{here}:")
    return url
