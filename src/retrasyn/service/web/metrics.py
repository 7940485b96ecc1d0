"""Metrics for Prometheus, and the routes that say whether the service lives and is ready."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from retrasyn.service.web.bridge import Places
from retrasyn.service.web.models import Health, answers, problems
from retrasyn.service.web.responses import Problem
from retrasyn.wire.statuses import STATUSES

if TYPE_CHECKING:
    from retrasyn.service.runtime import CampaignRuntime

_BOUNDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
COUNTED = {
    "rounds_opened": "Rounds opened.",
    "rounds_folded": "Rounds folded.",
    "rounds_missed": "Rounds that never opened, because the service was not running.",
    "rounds_recovered": "Rounds stepped through again after a restart.",
    "reports_folded": "Reports that were counted.",
    "reports_dropped": "Reports that the curator's ledger refused at folding.",
    "heartbeats_folded": "Heartbeats that were counted.",
    "alarms": "Tests on reports that were alarmed.",
    "releases_written": "Releases written.",
    "snapshots_saved": "Snapshots saved.",
    "devices_enrolled": "Devices that enrolled.",
    "devices_removed": "Devices that left or were revoked.",
    "alerts_raised": "Zones that were unusual.",
    "alerts_sent": "Alerts that the webhook took.",
    "alerts_failed": "Tries to send an alert that failed.",
    "alerts_dropped": "Alerts given up: too old, or too many waited.",
    "failures": "Failures of opening, folding or releasing, each tried again.",
}
"""What `runtime.Counters` counts, by name."""
HOLDING = {
    "ready": "1 if reports are taken and rounds go on.",
    "store_healthy": "1 if the last write worked.",
    "frames_waiting": "Reports and heartbeats taken in and not answered yet.",
    "rounds_waiting": "Rounds that are open or not folded yet.",
    "devices": "Devices enrolled.",
    "newest_release": "Latest timestamp released; -1: none.",
    "fold_seconds": "Seconds the last fold took, release included.",
    "feed_clients": "Readers of the live feed.",
    "readers": "Readers of long answers, feeds included.",
}
"""Values at the moment, by name."""
_METRICS: dict[str, Any] = {
    "description": "Metrics in Prometheus' text format; docs/operations.md explains each.",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}


@dataclass(slots=True)
class RequestCounts:
    """Requests and frames counted since the start."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)  # by route and status
    frames: Counter[str] = field(default_factory=Counter)  # by status

    def count_frame(self, status: str) -> None:
        """Count what became of one frame."""
        self.frames[status] += 1

    def count_frames(self, statuses: bytes) -> None:
        """Count what became of the frames of a batch."""
        for code, status in enumerate(STATUSES):
            n = statuses.count(code)
            if n:
                self.frames[status] += n


class Metrics(Collector):
    """Collects all metrics when Prometheus asks for them."""

    def __init__(
        self, runtime: CampaignRuntime, counts: RequestCounts, *, feeds: Places, readers: Places
    ) -> None:
        self._runtime, self._counts = runtime, counts
        self._feeds, self._readers = feeds, readers
        self._registry = CollectorRegistry(auto_describe=False)
        self.ack_seconds = Histogram(
            "retrasyn_ack_seconds",
            "Time from a report's headers to its acknowledgement.",
            buckets=_BOUNDS,
            registry=self._registry,
        )
        self._registry.register(self)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Describe nothing in advance: no other collector uses this registry."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Return every metric but the histogram."""
        requests = CounterMetricFamily(
            "retrasyn_requests", "Requests answered.", labels=["route", "status"]
        )
        for (route, code), n in sorted(self._counts.requests.items()):
            requests.add_metric([route, str(code)], n)
        yield requests
        frames = CounterMetricFamily(
            "retrasyn_frames", "Reports and heartbeats by what became of them.", labels=["status"]
        )
        for status, n in sorted(self._counts.frames.items()):
            frames.add_metric([status], n)
        yield frames
        yield from self._counters()
        yield from self._gauges()

    def _counters(self) -> Iterator[Metric]:
        """Return the totals of the service, each under its own name."""
        figures = self._runtime.counters.to_dict()
        for name, says in COUNTED.items():
            yield CounterMetricFamily(f"retrasyn_{name}", says, figures[name])

    def _gauges(self) -> Iterator[Metric]:
        """Return the values of the moment."""
        runtime = self._runtime
        status, newest = runtime.operator_status(), runtime.releases.newest
        values = {
            "ready": status["ready"],
            "store_healthy": runtime.write_queue.healthy,
            "frames_waiting": status["n_waiting_frames"],
            "rounds_waiting": status["n_waiting_rounds"],
            "devices": status["n_enrolled"],
            "newest_release": -1 if newest is None else newest,
            "fold_seconds": runtime.counters.fold_seconds,
            "feed_clients": self._feeds.n,
            "readers": self._readers.n,
        }
        for name, says in HOLDING.items():
            yield GaugeMetricFamily(f"retrasyn_{name}", says, float(values[name]))


def alive() -> APIRouter:
    """Return /healthz, the one route that needs no campaign."""
    router = APIRouter(tags=["operation"])

    @router.get("/healthz", responses=problems())
    async def healthz() -> Health:
        """Tell that the process answers."""
        return Health(status="ok")

    return router


def routes(runtime: CampaignRuntime, metrics: Metrics, operator: Any) -> APIRouter:
    """Return /healthz, /readyz and /metrics, which wants the operator's token."""
    router = alive()

    @router.get("/readyz", responses=problems(503))
    async def readyz() -> Health:
        """Tell whether reports are taken and rounds go on."""
        if reason := runtime.reason:
            raise Problem(503, f"{reason[0].upper()}{reason[1:]}.", retry_after=5)
        return Health(status="ok")

    # Strangers must not learn what alarms, and who drops out of what is counted.
    @router.get(
        "/metrics",
        response_class=Response,
        responses=answers(_METRICS, 401),
        dependencies=[operator],
    )
    async def show_metrics() -> Response:
        """Return all metrics."""
        return Response(metrics.text(), headers={"content-type": CONTENT_TYPE_LATEST})

    return router
