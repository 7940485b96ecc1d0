"""The web application of a campaign: what is shown to everybody, and what devices need besides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrasyn.service.basemap.basemap import BaseMap
from retrasyn.service.viewing.exhibit import Exhibit
from retrasyn.service.web import campaign, enrolments, operators, probes, showing
from retrasyn.service.web.front import Front
from retrasyn.service.web.metrics import Metrics
from retrasyn.service.web.openapi import reporting
from retrasyn.service.web.reports import Reports

if TYPE_CHECKING:
    from retrasyn.service.service import Service


class Web(Front):
    """An RSGI application around a service that has been started."""

    def __init__(
        self, service: Service, *, operator_token: str, base_map: BaseMap | None = None
    ) -> None:
        limits = service.settings.limits
        super().__init__(limits)
        self.metrics = Metrics(service, self.counts)
        reports = Reports(service, self.counts, self.deadline)
        self.short = {"/v1/reports": reports.one, "/v1/reports/batch": reports.many}
        exhibit = Exhibit(
            source=service.releases,
            status=service.status,
            feed=service.feed,
            feed_clients=limits.feed_clients,
        )
        base_map = base_map or BaseMap.open(service.settings.map, service.releases.grid.box)
        routers = [
            campaign.routes(service),
            enrolments.routes(service),
            operators.routes(service, operator_token),
            probes.routes(service, self.metrics),
            *showing.routes(exhibit, base_map, self.counts, self.stopping),
        ]
        self.mount(routers, reporting())

    def observe_ack(self, seconds: float) -> None:
        """Note how long a report waited for its answer."""
        self.metrics.ack_seconds.observe(seconds)
