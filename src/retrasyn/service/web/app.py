"""The web applications: one for a campaign, one for a recording."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fastapi import APIRouter

from retrasyn.service.basemap.basemap import BaseMap
from retrasyn.service.settings import LimitSettings, MapSettings
from retrasyn.service.viewing.source import ViewerContent
from retrasyn.service.viewing.view import CachedSource
from retrasyn.service.web import (
    device_routes,
    map_routes,
    metrics,
    operator_routes,
    page,
    release_routes,
)
from retrasyn.service.web.device_routes import ReportIntake
from retrasyn.service.web.front import Front
from retrasyn.service.web.metrics import Metrics, RequestCounts
from retrasyn.service.web.openapi import reporting

if TYPE_CHECKING:
    from retrasyn.service.runtime import CampaignRuntime

_FRAMES_AT_ONCE = 2
_QUERIES_AT_ONCE = 2
"""Others wait, so that threads are left for folding and releasing."""


class CampaignApp(Front):
    """The RSGI application of a running campaign."""

    def __init__(
        self, runtime: CampaignRuntime, *, operator_token: str, base_map: BaseMap | None = None
    ) -> None:
        limits = runtime.settings.limits
        super().__init__(limits)
        collected = Metrics(runtime, self.counts)
        self.observe_seconds = collected.ack_seconds.observe
        reports = ReportIntake(runtime, self.counts, self.deadline)
        self.direct = {"/v1/reports": reports.one, "/v1/reports/batch": reports.many}
        content = ViewerContent(
            source=runtime.releases,
            status=runtime.status,
            feed=runtime.feed,
            feed_clients=limits.feed_clients,
        )
        base_map = base_map or BaseMap.open(runtime.settings.map, runtime.campaign.grid.box)
        routers = [
            device_routes.campaign_routes(runtime),
            device_routes.enrolment_routes(runtime),
            operator_routes.routes(runtime, operator_token),
            metrics.routes(runtime, collected),
            *_viewer_routes(content, base_map, self.counts, self.stopping),
        ]
        self.mount(routers, reporting())


class ViewerApp(Front):
    """The RSGI application of a recording or a simulation: nobody reports to it."""

    def __init__(
        self,
        content: ViewerContent,
        map_settings: MapSettings | None = None,
        limits: LimitSettings | None = None,
    ) -> None:
        super().__init__(limits or LimitSettings())
        base_map = BaseMap.open(map_settings or MapSettings(), content.source.grid.box)
        routers = _viewer_routes(content, base_map, self.counts, self.stopping)
        self.mount([metrics.alive(), *routers])


def _viewer_routes(
    content: ViewerContent, base_map: BaseMap, counts: RequestCounts, stopping: asyncio.Event
) -> list[APIRouter]:
    """Return the routes of the page: status, releases, feed, map."""
    view, source = CachedSource(content.source), content.source
    quick, slow = asyncio.Semaphore(_FRAMES_AT_ONCE), asyncio.Semaphore(_QUERIES_AT_ONCE)
    routers = [
        release_routes.status_routes(content.status),
        release_routes.release_routes(source),
        release_routes.point_routes(source, slow),
        release_routes.feed_routes(content.feed, content.feed_clients, counts, stopping),
        map_routes.frame_routes(view, base_map.travellers, quick),
        map_routes.query_routes(view, slow),
        map_routes.base_map_routes(
            base_map,
            content.kind if content.real is None else "simulation",
            unfolds=content.unfolds,
        ),
        page.routes(content.status, base_map),
    ]
    if content.real is not None:
        routers.append(map_routes.real_routes(content.real, source, base_map.travellers, quick))
    return routers
