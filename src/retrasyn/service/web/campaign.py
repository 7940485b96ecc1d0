"""What is asked: the sealed manifest and the sealed rounds, byte for byte, and a public summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Response

from retrasyn.service.web.documented import Timestamp, problems, sealed
from retrasyn.service.web.models import Status
from retrasyn.service.web.problems import Problem
from retrasyn.service.web.replies import JSON

if TYPE_CHECKING:
    from retrasyn.service.service import Service


def routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/v1", tags=["campaign"])

    @router.get(
        "/campaign", response_class=Response, responses=sealed("The manifest.") | problems()
    )
    async def campaign() -> Response:
        """Return the sealed manifest: what the campaign promises, to be shown and pinned."""
        return Response(service.campaign.envelope, media_type=JSON)

    @router.get(
        "/rounds/current",
        response_class=Response,
        responses=sealed("The round that is open.") | problems(503),
    )
    async def current_round() -> Response:
        """Return the sealed round that is open now."""
        envelope = service.current_round()
        if envelope is None:
            raise Problem(503, "No round is open now; ask again soon.", retry_after=1)
        return Response(envelope, media_type=JSON)

    @router.get(
        "/rounds/{t}",
        response_class=Response,
        responses=sealed("The round.") | problems(404, 422),
    )
    async def one_round(t: Timestamp) -> Response:
        """Return the sealed round of a timestamp, to follow the chain of rounds."""
        envelope = service.round_envelope(t)
        if envelope is None:
            raise Problem(404, "No such round was opened.")
        return Response(envelope, media_type=JSON)

    @router.get("/status", responses=problems())
    async def status() -> Status:
        """Return what everybody may know of how the campaign is doing."""
        return Status.model_validate(service.status())

    return router
