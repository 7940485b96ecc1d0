"""The routes of the operator, behind their token: enrolment, status, revoking devices."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Response, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from retrasyn.service.web.models import (
    Device,
    OperatorStatus,
    TokenRequest,
    Tokens,
    answers,
    problems,
)
from retrasyn.service.web.responses import Problem

if TYPE_CHECKING:
    from retrasyn.service.runtime import CampaignRuntime

_ASKS = (("www-authenticate", "Bearer"),)
_BEARER = HTTPBearer(auto_error=False, description="The operator's token.")


def with_token(token: str) -> Any:
    """Return the dependency of routes that want the operator's token."""
    expected = hashlib.sha256(token.encode()).digest()

    def check(
        given: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)],
    ) -> None:
        offered = "" if given is None else given.credentials
        found = hashlib.sha256(offered.encode("utf-8", "surrogateescape")).digest()
        if not hmac.compare_digest(found, expected):
            raise Problem(401, "This needs the operator's token.", headers=_ASKS)

    return Depends(check)


def routes(runtime: CampaignRuntime, operator: Any) -> APIRouter:
    """Return the routes; all of them want the operator's token."""
    router = APIRouter(prefix="/v1/operator", tags=["operator"], dependencies=[operator])

    @router.post("/tokens", responses=problems(401, 422, 503))
    async def mint(asked: TokenRequest) -> Tokens:
        """Make enrolment tokens; each lets one device join, once."""
        key = runtime.campaign.ring.signer.public.hex()
        return Tokens(tokens=await runtime.devices.mint(asked.n), key=key)

    @router.get("/status", responses=problems(401))
    async def status() -> OperatorStatus:
        """Return how the service is doing."""
        return OperatorStatus.model_validate(runtime.operator_status())

    @router.delete(
        "/devices/{device}",
        status_code=204,
        response_class=Response,
        responses=answers(
            {"description": "The device is revoked."}, 401, 404, 422, 503, status=204
        ),
    )
    async def revoke(device: Device) -> Response:
        """Revoke a device; whatever it sends from now on is refused."""
        if not await runtime.devices.revoke(bytes.fromhex(device)):
            raise Problem(404, "No such device is enrolled.")
        return Response(status_code=204)

    return router
