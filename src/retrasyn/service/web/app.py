"""The web applications: of a campaign, and of a recording."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fastapi import APIRouter

from retrasyn.service.basemap.basemap import BaseMap
from retrasyn.service.settings import LimitSettings, MapSettings
from retrasyn.service.viewing.content import ViewerContent
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
    from retrasyn.service.service import Service


_FRAMES_AT_ONCE = 2
_QUERIES_AT_ONCE = 2
"""Others wait. Together they leave threads to those who fold and release."""


def shown_routes(
    exhibit: ViewerContent, base_map: BaseMap, counts: RequestCounts, stopping: asyncio.Event
) -> list[APIRouter]:
    """Return the routes."""
    view, source = CachedSource(exhibit.source), exhibit.source
    quick, slow = asyncio.Semaphore(_FRAMES_AT_ONCE), asyncio.Semaphore(_QUERIES_AT_ONCE)
    routers = [
        release_routes.status_routes(exhibit.status),
        release_routes.release_routes(source),
        release_routes.point_routes(source, slow),
        release_routes.feed_routes(exhibit.feed, exhibit.feed_clients, counts, stopping),
        map_routes.frame_routes(view, base_map.travellers, quick),
        map_routes.query_routes(view, slow),
        map_routes.base_map_routes(
            base_map,
            exhibit.kind if exhibit.real is None else "simulation",
            unfolds=exhibit.unfolds,
        ),
        page.routes(exhibit.status, base_map),
    ]
    if exhibit.real is not None:
        routers.append(map_routes.real_routes(exhibit.real, source, base_map.travellers, quick))
    return routers


class Web(Front):
    """An RSGI application around a service that has been started."""

    def __init__(
        self, service: Service, *, operator_token: str, base_map: BaseMap | None = None
    ) -> None:
        limits = service.settings.limits
        super().__init__(limits)
        self.metrics = Metrics(service, self.counts)
        reports = ReportIntake(service, self.counts, self.deadline)
        self.short = {"/v1/reports": reports.one, "/v1/reports/batch": reports.many}
        exhibit = ViewerContent(
            source=service.releases,
            status=service.status,
            feed=service.feed,
            feed_clients=limits.feed_clients,
        )
        base_map = base_map or BaseMap.open(service.settings.map, service.releases.grid.box)
        routers = [
            device_routes.campaign_routes(service),
            device_routes.enrolment_routes(service),
            operator_routes.routes(service, operator_token),
            metrics.routes(service, self.metrics),
            *shown_routes(exhibit, base_map, self.counts, self.stopping),
        ]
        self.mount(routers, reporting())

    def observe_ack(self, seconds: float) -> None:
        """Note how long a report waited for its answer."""
        self.metrics.ack_seconds.observe(seconds)


class Watching(Front):
    """An RSGI application around anything that can be shown."""

    def __init__(
        self,
        exhibit: ViewerContent,
        map_settings: MapSettings | None = None,
        limits: LimitSettings | None = None,
    ) -> None:
        super().__init__(limits or LimitSettings())
        base_map = BaseMap.open(map_settings or MapSettings(), exhibit.source.grid.box)
        routers = shown_routes(exhibit, base_map, self.counts, self.stopping)
        self.mount([metrics.alive(), *routers])
