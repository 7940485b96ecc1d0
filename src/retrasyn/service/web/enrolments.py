"""Devices come with a token and leave with a tag made of their key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Header, Response

from retrasyn.errors import UnknownToken
from retrasyn.service.web.documented import Device, answers, problems
from retrasyn.service.web.models import Credentials, Enrolment, EnrolmentRequest
from retrasyn.service.web.problems import Problem

if TYPE_CHECKING:
    from retrasyn.service.service import Service

Tag = Annotated[
    str,
    Header(
        alias="Retrasyn-Tag",
        pattern=r"^[0-9a-f]{32}$",
        description="Tag of the words for leaving, under the device's key; see docs/api.md.",
    ),
]


def routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/v1", tags=["devices"])

    @router.post("/enrolments", responses=problems(401, 422, 503))
    async def enrol(asked: EnrolmentRequest) -> Enrolment:
        """Give a device id and a key for every token, or nothing at all if one is not valid."""
        try:
            enrolled = await service.enrol(asked.tokens)
        except UnknownToken:
            raise Problem(401, "A token is unknown or was used already; ask for another.") from None
        return Enrolment(
            devices=[Credentials(device=one.device.hex(), key=one.key.hex()) for one in enrolled]
        )

    @router.delete(
        "/devices/{device}",
        status_code=204,
        response_class=Response,
        responses=answers({"description": "The device is forgotten."}, 401, 422, 503, status=204),
    )
    async def leave(device: Device, tag: Tag) -> Response:
        """Forget a device that asks for it itself; its key is of no use afterwards."""
        if not await service.leave(bytes.fromhex(device), bytes.fromhex(tag)):
            raise Problem(401)
        return Response(status_code=204)

    return router
