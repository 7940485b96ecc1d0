"""What is asked: the sealed manifest and the sealed rounds, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from retrasyn.service.web.documented import Timestamp, answers, bytes_of, sealed
from retrasyn.service.web.problems import Problem
from retrasyn.service.web.replies import BINARY, JSON
from retrasyn.wire.batches import MAX_FRAMES
from retrasyn.wire.frames import DEVICE_BYTES

if TYPE_CHECKING:
    from retrasyn.service.service import Service


def routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/v1", tags=["campaign"])

    @router.get("/campaign", response_class=Response, responses=answers(sealed("The manifest.")))
    async def campaign() -> Response:
        """Return the sealed manifest: what the campaign promises, to be shown and pinned."""
        return Response(service.campaign.envelope, media_type=JSON)

    @router.get(
        "/rounds/current",
        response_class=Response,
        responses=answers(sealed("The round that is open."), 503),
    )
    async def current_round() -> Response:
        """Return the sealed round that is open now."""
        envelope = service.current_round()
        if envelope is None:
            raise Problem(
                503,
                "No round is open now; ask again soon.",
                retry_after=service.seconds_to_next_round(),
            )
        return Response(envelope, media_type=JSON)

    @router.get(
        "/rounds/{t}",
        response_class=Response,
        responses=answers(sealed("The round."), 404, 422),
    )
    async def one_round(t: Timestamp) -> Response:
        """Return the sealed round of a timestamp, to follow the chain of rounds."""
        envelope = service.round_envelope(t)
        if envelope is None:
            raise Problem(404, "No such round was opened.")
        return Response(envelope, media_type=JSON)

    _add_asked(router, service)
    return router


def _add_asked(router: APIRouter, service: Service) -> None:
    """Add the route for rounds whose devices the curator draws."""

    @router.post(
        "/rounds/{t}/asked",
        response_class=Response,
        openapi_extra={"requestBody": bytes_of("Device ids, 16 bytes each.") | {"required": True}},
        responses=answers(
            bytes_of("A byte per device: 1 if the round means it, else 0."), 404, 422
        ),
    )
    async def asked(t: Timestamp, request: Request) -> Response:
        """Tell devices whether a round that was drawn by the curator means them."""
        ids = await request.body()
        if len(ids) > MAX_FRAMES * DEVICE_BYTES:
            raise Problem(413)
        if not ids or len(ids) % DEVICE_BYTES:
            raise Problem(422, f"The body must be device ids of {DEVICE_BYTES} bytes each.")
        if service.round_envelope(t) is None:
            raise Problem(404, "No such round was opened.")
        return Response(service.asked(t, ids), media_type=BINARY)
