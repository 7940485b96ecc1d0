"""Whether the service lives, whether it is ready, and its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from retrasyn.service.web.documented import answers, problems
from retrasyn.service.web.metrics import Metrics
from retrasyn.service.web.models import Health
from retrasyn.service.web.problems import Problem

if TYPE_CHECKING:
    from retrasyn.service.service import Service

_METRICS: dict[str, Any] = {
    "description": "Metrics in Prometheus' text format; docs/operations.md explains each.",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}


def alive() -> APIRouter:
    """Return the one route that needs no service."""
    router = APIRouter(tags=["operation"])

    @router.get("/healthz", responses=problems())
    async def healthz() -> Health:
        """Tell that the process answers."""
        return Health(status="ok")

    return router


def routes(service: Service, metrics: Metrics) -> APIRouter:
    """Return the routes."""
    router = alive()

    @router.get("/readyz", responses=problems(503))
    async def readyz() -> Health:
        """Tell whether reports are taken and rounds go on."""
        if reason := service.reason:
            raise Problem(503, f"{reason[0].upper()}{reason[1:]}.", retry_after=5)
        return Health(status="ok")

    @router.get("/metrics", response_class=Response, responses=answers(_METRICS))
    async def show_metrics() -> Response:
        """Return all metrics."""
        return Response(metrics.text(), headers={"content-type": CONTENT_TYPE_LATEST})

    return router
