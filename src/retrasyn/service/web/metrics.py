"""Metrics for Prometheus, in a registry of their own; `docs/operations.md` explains each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from retrasyn.service.service import Service
    from retrasyn.service.web.counts import Counts

_BOUNDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


@dataclass(frozen=True, slots=True)
class _Gauge:
    name: str
    says: str
    value: float


class Metrics(Collector):
    """Reads the numbers when it is asked for them."""

    def __init__(self, service: Service, counts: Counts) -> None:
        self._service, self._counts = service, counts
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
        """Name nothing ahead: the registry is ours alone."""
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
        for gauge in self._gauges():
            yield GaugeMetricFamily(gauge.name, gauge.says, gauge.value)

    def _gauges(self) -> Iterator[_Gauge]:
        service, newest = self._service, self._service.feed.newest
        yield _Gauge("retrasyn_ready", "1 if reports are taken.", service.ready)
        yield _Gauge(
            "retrasyn_store_healthy", "1 if the last write worked.", service.ingest.healthy
        )
        yield _Gauge(
            "retrasyn_frames_waiting", "Frames not answered yet.", service.ingest.n_waiting
        )
        yield _Gauge("retrasyn_feed_clients", "Readers of the live feed.", self._counts.n_feeds)
        latest = -1 if newest is None else newest
        yield _Gauge("retrasyn_last_release", "Latest timestamp released; -1: none.", latest)
