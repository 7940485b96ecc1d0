"""A recording on a real server for tests, in an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field

from retrasyn.service.feed import Feed
from retrasyn.service.map_settings import MapSettings
from retrasyn.service.settings import LimitSettings, ServerSettings
from retrasyn.service.viewing.exhibit import Exhibit
from retrasyn.service.web.server import Server
from retrasyn.service.web.watching import Watching
from service.web.living import PATIENCE, Living


def status_of(source):
    """Return what a recording has to say of itself."""
    return {
        "campaign": "recorded",
        "manifest": "",
        "method": "steered",
        "guarantee": "None: this is a test.",
        "epsilon": 1.0,
        "window": 20,
        "unit": "position",
        "presence": "count",
        "period": 60,
        "epoch": 0,
        "box": list(source.grid.box),
        "grid": source.grid.side,
        "round": None,
        "next_round_in": 0.0,
        "n_reports": 0,
        "n_releases": len(source.timestamps),
        "oldest_release": source.oldest,
        "newest_release": source.newest,
        "ready": True,
        "reason": "",
    }


@dataclass
class Shown:
    """A recording that is served from a thread of its own."""

    exhibit: Exhibit
    settings: MapSettings
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    server: Server = field(init=False)
    web: Watching = field(init=False)

    run, address, ask, connect, wait = (
        Living.run,
        Living.address,
        Living.ask,
        Living.connect,
        Living.wait,
    )

    async def start(self):
        self.web = Watching(self.exhibit, self.settings)
        self.server = Server(ServerSettings(port=0), header_seconds=LimitSettings().header_seconds)
        await self.server.start(self.web)

    async def stop(self):
        self.web.stopping.set()
        self.exhibit.feed.close()
        await self.server.stop()


@contextmanager
def shown(source, real=None, **settings):
    """Serve a recording until the block ends."""
    exhibit = Exhibit(
        source=source,
        status=lambda: status_of(source),
        feed=Feed(source.after, newest=source.newest),
        real=real,
    )
    one = Shown(exhibit, MapSettings(**settings))
    thread = threading.Thread(target=one.loop.run_forever, daemon=True)
    thread.start()
    try:
        one.run(one.start())
        try:
            yield one
        finally:
            one.run(one.stop())
    finally:
        one.loop.call_soon_threadsafe(one.loop.stop)
        thread.join(PATIENCE)
        one.loop.close()
