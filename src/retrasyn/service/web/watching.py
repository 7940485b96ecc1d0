"""The web application of a recording: the same page and the same routes, and no campaign behind it.

There is nobody to report, to enrol or to operate. If the real data is at hand, it is shown, too.
"""

from __future__ import annotations

from retrasyn.service.basemap.basemap import BaseMap
from retrasyn.service.map_settings import MapSettings
from retrasyn.service.settings import LimitSettings
from retrasyn.service.viewing.exhibit import Exhibit
from retrasyn.service.web import probes, showing
from retrasyn.service.web.front import Front


class Watching(Front):
    """An RSGI application around anything that can be shown."""

    def __init__(
        self,
        exhibit: Exhibit,
        map_settings: MapSettings | None = None,
        limits: LimitSettings | None = None,
    ) -> None:
        super().__init__(limits or LimitSettings())
        base_map = BaseMap.open(map_settings or MapSettings(), exhibit.source.grid.box)
        routers = showing.routes(exhibit, base_map, self.counts, self.stopping)
        self.mount([probes.alive(), *routers])
