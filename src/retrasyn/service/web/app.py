"""The web applications: one for a campaign, one for a recording."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fastapi import APIRouter

from retrasyn.host_names import HostNames
from retrasyn.service.basemap.basemap import BaseMap
from retrasyn.service.settings import LimitSettings, MapSettings
from retrasyn.service.viewing.asked import AskedSource
from retrasyn.service.viewing.known_zones import KnownZones
from retrasyn.service.viewing.source import ViewerContent
from retrasyn.service.viewing.view import CachedSource
from retrasyn.service.web import (
    ask_routes,
    device_routes,
    map_routes,
    metrics,
    operator_routes,
    page,
    release_routes,
)
from retrasyn.service.web.device_routes import ReportIntake
from retrasyn.service.web.front import Front
from retrasyn.service.web.metrics import Metrics
from retrasyn.service.web.openapi import reporting

if TYPE_CHECKING:
    from retrasyn.service.runtime import CampaignRuntime

_FRAMES_AT_ONCE = 2
_QUERIES_AT_ONCE = 2
"""Others wait, so that threads are left for folding and releasing."""


class _WithMap(Front):
    """An application with the live map."""

    def viewer_routes(
        self, content: ViewerContent, base_map: BaseMap, map_settings: MapSettings
    ) -> list[APIRouter]:
        """Return the routes of the page: status, releases, feed, map."""
        view, source, most = CachedSource(content.source), content.source, self.limits.max_points
        quick, slow = asyncio.Semaphore(_FRAMES_AT_ONCE), asyncio.Semaphore(_QUERIES_AT_ONCE)
        asked = AskedSource(source, KnownZones.of(source, map_settings), most)
        travellers, real = base_map.travellers, content.real
        mode = content.kind if real is None else "simulation"
        routers = [
            release_routes.status_routes(content.status),
            release_routes.release_routes(source, quick),
            release_routes.point_routes(view, slow, most),
            release_routes.feed_routes(content.feed, self.feeds, self.stopping),
            map_routes.frame_routes(view, travellers, quick, most),
            map_routes.query_routes(view, slow, most),
            ask_routes.routes(asked, slow),
            map_routes.base_map_routes(
                base_map, mode, unfolds=content.unfolds, zones=map_settings.zones
            ),
            page.routes(content.status, base_map),
        ]
        if real is not None:
            routers.append(map_routes.real_routes(real, source, travellers, quick, most))
        return routers


class CampaignApp(_WithMap):
    """The RSGI application of a running campaign."""

    def __init__(
        self,
        runtime: CampaignRuntime,
        hosts: HostNames,
        *,
        operator_token: str,
        base_map: BaseMap | None = None,
    ) -> None:
        super().__init__(runtime.settings.limits, hosts)
        collected = Metrics(runtime, self.counts, feeds=self.feeds, readers=self.readers)
        self.observe_seconds = collected.ack_seconds.observe
        reports = ReportIntake(runtime, self.counts, self.deadline)
        self.direct = {"/v1/reports": reports.one, "/v1/reports/batch": reports.many}
        content = ViewerContent(
            source=runtime.releases,
            status=runtime.status,
            feed=runtime.feed,
        )
        base_map = base_map or BaseMap.open(runtime.settings.map, runtime.campaign.grid.box)
        operator = operator_routes.with_token(operator_token)
        routers = [
            device_routes.campaign_routes(runtime),
            device_routes.enrolment_routes(runtime),
            operator_routes.routes(runtime, operator),
            metrics.routes(runtime, collected, operator),
            *self.viewer_routes(content, base_map, runtime.settings.map),
        ]
        self.mount(routers, reporting())


class ViewerApp(_WithMap):
    """The RSGI application of a recording or a simulation: nobody reports to it.

    It may show real positions, so nothing is answered without the token in the address.
    """

    def __init__(
        self,
        content: ViewerContent,
        hosts: HostNames,
        *,
        token: str,
        map_settings: MapSettings | None = None,
        limits: LimitSettings | None = None,
    ) -> None:
        super().__init__(limits or LimitSettings(), hosts, token)
        map_settings = map_settings or MapSettings()
        base_map = BaseMap.open(map_settings, content.source.grid.box)
        self.mount([metrics.alive(), *self.viewer_routes(content, base_map, map_settings)])
