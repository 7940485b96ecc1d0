"""How a campaign is doing, for everybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter

from retrasyn.service.web.documented import problems
from retrasyn.service.web.models import Status


def routes(status: Callable[[], dict[str, Any]]) -> APIRouter:
    """Return the route."""
    router = APIRouter(prefix="/v1", tags=["releases"])

    @router.get("/status", responses=problems())
    async def show_status() -> Status:
        """Return what everybody may know of how the campaign is doing."""
        return Status.model_validate(status())

    return router
