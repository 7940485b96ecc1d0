"""A recording on a real server for tests, in an event loop of its own."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field

from retrasyn.service.settings import LimitSettings, MapSettings, ServerSettings
from retrasyn.service.viewing.source import Feed, ViewerContent
from retrasyn.service.web.app import ViewerApp
from retrasyn.service.web.server import WebServer
from support.living import Threaded

TOKEN = "the-token-of-a-showing"  # noqa: S105 - nothing is behind it


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
class Shown(Threaded):
    """A recording."""

    content: ViewerContent
    settings: MapSettings
    limits: LimitSettings = field(default_factory=LimitSettings)
    web: ViewerApp = field(init=False)

    async def start(self):
        self.server = WebServer(ServerSettings(port=0), self.limits)
        self.prefix = f"/{TOKEN}"
        try:
            self.web = ViewerApp(
                self.content,
                self.server.hosts,
                token=TOKEN,
                map_settings=self.settings,
                limits=self.limits,
            )
        except BaseException:
            self.server.close()
            raise
        await self.server.start(self.web)

    async def stop(self):
        await self.web.stop()
        self.content.feed.close()
        await self.server.stop()


@contextmanager
def shown(source, real=None, limits=None, **settings):
    """Serve a recording until the block ends."""
    content = ViewerContent(
        source=source,
        status=lambda: status_of(source),
        feed=Feed(source.after, newest=source.newest),
        real=real,
    )
    asked = Shown(content, MapSettings(**settings), LimitSettings(**(limits or {})))
    with asked.serving() as one:
        yield one
