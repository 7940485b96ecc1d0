"""A service and its web server from the first line to the last, stopped by a signal."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from retrasyn.service.basemap.basemap import BaseMap
from retrasyn.service.durable import write_durably
from retrasyn.service.service import Service
from retrasyn.service.settings import Settings
from retrasyn.service.web.app import Web
from retrasyn.service.web.server import Server
from retrasyn.space import Box

log = logging.getLogger(__name__)
ADDRESS = "address"
"""The file in the folder that says where the service is reached from this machine."""
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - to be replaced by a real one


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """What there is to say about a service that has started."""

    campaign: str
    guarantee: str
    period: int
    url: str
    link: str = field(repr=False)  # lets one device enrol; empty if none was asked for
    token_file: Path
    folder: Path


def run(settings: Settings, *, announce: Callable[[Running], None], link: bool = True) -> int:
    """Serve until a signal comes; return the exit code: 0 after SIGTERM, 130 after Ctrl-C."""
    return asyncio.run(_run(settings, announce, link=link))


async def _run(settings: Settings, announce: Callable[[Running], None], *, link: bool) -> int:
    base_map = BaseMap.open(settings.map, Box(*settings.campaign.box))
    server = Server(settings.server, header_seconds=settings.limits.header_seconds)
    service, web = Service(settings), None
    stopped = on_signals()
    try:
        await service.start()
        web = Web(service, operator_token=service.operator_token, base_map=base_map)
        await server.start(web)
        url = reachable(server.url)
        write_durably(settings.server.folder / ADDRESS, url.encode() + b"\n")
        announce(await _describe(settings, service, url, link=link))
        log.info("serving address=%s", server.url)
        number = await stopped
        log.info("stopping signal=%s", signal.Signals(number).name)
    finally:
        if web is not None:
            web.stopping.set()
        await server.stop()
        await service.stop()
    log.info("stopped")
    return 130 if number == signal.SIGINT else 0


def on_signals() -> asyncio.Future[int]:
    """Return what the first signal to stop will complete; a second one does not wait."""
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()

    def stop(number: int) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)
        stopped.set_result(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    return stopped


async def _describe(settings: Settings, service: Service, url: str, *, link: bool) -> Running:
    status, public = service.status(), settings.server.public_url or url
    token = (await service.mint(1))[0] if link else ""
    folder = settings.server.folder
    return Running(
        campaign=status["campaign"],
        guarantee=status["guarantee"],
        period=status["period"],
        url=public,
        link=f"{public.rstrip('/')}/#enrol={token}" if token else "",
        token_file=settings.server.operator_token_file or folder / "operator.token",
        folder=folder,
    )


def reachable(url: str) -> str:
    """Return an address that leads to a server which listens on all of them.

    >>> reachable("http://0.0.0.0:8700"), reachable("https://[::]:1")
    ('http://127.0.0.1:8700', 'https://[::1]:1')
    """
    for anywhere, here in _ANYWHERE.items():
        named = f"[{anywhere}]" if ":" in anywhere else anywhere
        url = url.replace(f"//{named}:", f"//{here}:")
    return url
