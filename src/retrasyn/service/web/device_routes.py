"""The routes of devices: the campaign and its rounds, enrolling and leaving, reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Header, Request, Response

from retrasyn.errors import Busy, UnknownToken, WireError
from retrasyn.messages import Ack
from retrasyn.service.web.front import read_body
from retrasyn.service.web.models import (
    Credentials,
    Device,
    Enrolment,
    EnrolmentRequest,
    Timestamp,
    answers,
    bytes_of,
    problems,
    sealed,
)
from retrasyn.service.web.responses import BINARY, JSON, Problem, Protocol, Reply, Scope
from retrasyn.wire.batches import MAX_FRAMES, split_frames
from retrasyn.wire.frames import acked_part, encode_ack
from retrasyn.wire.layout import DEVICE_BYTES
from retrasyn.wire.statuses import HTTP_STATUS

if TYPE_CHECKING:
    from retrasyn.service.runtime import CampaignRuntime
    from retrasyn.service.web.front import Deadlines
    from retrasyn.service.web.metrics import RequestCounts


MAX_FRAME = 1 << 16
Tag = Annotated[
    str,
    Header(
        alias="Retrasyn-Tag",
        pattern=r"^[0-9a-f]{32}$",
        description="Tag of the words for leaving, under the device's key; see docs/api.md.",
    ),
]


def campaign_routes(runtime: CampaignRuntime) -> APIRouter:
    """Return the routes of the manifest and the rounds."""
    router = APIRouter(prefix="/v1", tags=["campaign"])

    @router.get("/campaign", response_class=Response, responses=answers(sealed("The manifest.")))
    async def campaign() -> Response:
        """Return the sealed manifest: what the campaign promises, to be shown and pinned."""
        return Response(runtime.campaign.envelope, media_type=JSON)

    @router.get(
        "/keys",
        response_class=Response,
        responses=answers(bytes_of("The statement of keys; see docs/wire.md.")),
    )
    async def keys() -> Response:
        """Return the key to agree with, and how the curator's keys have followed each other."""
        return Response(runtime.campaign.ring.statement, media_type=BINARY)

    @router.get(
        "/rounds/current",
        response_class=Response,
        responses=answers(sealed("The round that is open."), 503),
    )
    async def current_round() -> Response:
        """Return the sealed round that is open now."""
        envelope = runtime.current_round()
        if envelope is None:
            raise Problem(
                503,
                "No round is open now; ask again soon.",
                retry_after=runtime.seconds_to_next_round(),
            )
        return Response(envelope, media_type=JSON)

    @router.get(
        "/rounds/{t}",
        response_class=Response,
        responses=answers(sealed("The round."), 404, 422),
    )
    async def one_round(t: Timestamp) -> Response:
        """Return the sealed round of a timestamp, to follow the chain of rounds."""
        row = runtime.calendar.row(t)
        if row is None:
            raise Problem(404, "No such round was opened.")
        return Response(row.envelope, media_type=JSON)

    _add_asked(router, runtime)
    return router


def _add_asked(router: APIRouter, runtime: CampaignRuntime) -> None:
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
        if runtime.calendar.row(t) is None:
            raise Problem(404, "No such round was opened.")
        return Response(runtime.asked(t, ids), media_type=BINARY)


def enrolment_routes(runtime: CampaignRuntime) -> APIRouter:
    """Return the routes with which devices enrol and leave."""
    router = APIRouter(prefix="/v1", tags=["devices"])

    @router.post("/enrolments", responses=problems(401, 409, 422, 503))
    async def enrol(asked: EnrolmentRequest) -> Enrolment:
        """Enrol a device for every token and agree on its key, or none if one is not valid."""
        ring, now = runtime.campaign.ring, runtime.clock.now()
        agreement = ring.agreement_of(bytes.fromhex(asked.agreement), now)
        if agreement is None:
            raise Problem(409)
        if len(asked.keys) != len(asked.tokens):
            raise Problem(422, "Every enrolment token goes with one key.")
        publics = [bytes.fromhex(key) for key in asked.keys]
        try:
            enrolled = await runtime.devices.enrol(asked.tokens, publics, agreement)
        except UnknownToken:
            raise Problem(
                401, "An enrolment token is unknown or was used already; ask for another link."
            ) from None
        except WireError:
            raise Problem(422, "A key is no X25519 public key; draw it anew.") from None
        return Enrolment(
            devices=[Credentials(device=one.device.hex(), tag=one.tag.hex()) for one in enrolled]
        )

    @router.delete(
        "/devices/{device}",
        status_code=204,
        response_class=Response,
        responses=answers({"description": "The device is forgotten."}, 401, 422, 503, status=204),
    )
    async def leave(device: Device, tag: Tag) -> Response:
        """Forget a device that asks for it itself; its key is of no use afterwards."""
        left = await runtime.devices.leave(bytes.fromhex(device), bytes.fromhex(tag))
        if left is None:
            raise Problem(401)
        return Response(status_code=204, headers={"Retrasyn-Tag": left.hex()})

    return router


class ReportIntake:
    """Answers the two addresses that take reports, without the framework."""

    def __init__(
        self, runtime: CampaignRuntime, counts: RequestCounts, deadline: Deadlines
    ) -> None:
        self._write_queue, self._counts, self._deadline = runtime.write_queue, counts, deadline
        limits = runtime.settings.limits
        self._max_body, self._max_batch = limits.max_body, limits.max_batch
        self._admission, self._signer = runtime.admission, runtime.campaign.ring.signer

    async def one(self, scope: Scope, protocol: Protocol) -> Reply:
        """Take one frame; the answer is its acknowledgement."""
        limit = min(MAX_FRAME, self._max_body)
        frame = await read_body(scope, protocol, limit=limit, deadline=self._deadline)
        try:
            (status,) = await self._write_queue.submit([frame])
        except Busy as busy:
            return self._busy(frame, busy.retry_after)
        self._counts.count_frame(status)
        return Reply(HTTP_STATUS[status], self._ack(status, frame))

    async def many(self, scope: Scope, protocol: Protocol) -> Reply:
        """Take a batch; the answer has the number of a status and its tag for each frame."""
        body = await read_body(scope, protocol, limit=self._max_body, deadline=self._deadline)
        try:
            self._check_number(body)
            statuses = await self._write_queue.submit_body(body)
        except WireError as error:
            raise Problem(422, f"{str(error)[:1].upper()}{str(error)[1:]}.") from None
        except Busy as busy:
            raise Problem(503, retry_after=busy.retry_after) from None
        self._counts.count_frames(statuses)
        return Reply(200, self._admission.acknowledge_batch(statuses, body))

    def _check_number(self, body: bytes) -> None:
        """Refuse a batch of more frames than the operator wants at once."""
        if self._max_batch < MAX_FRAMES and len(split_frames(body)) > self._max_batch:
            raise Problem(
                413, f"A batch has at most {self._max_batch:,} frames here; send several."
            )

    def _ack(self, status: str, frame: bytes) -> bytes:
        part = acked_part(status, frame)
        if status == "unauthenticated":  # no key is shared with whom it may concern
            return encode_ack(Ack(status=status, proof=self._signer.signature("ack", part)))
        return encode_ack(Ack(status=status, proof=self._admission.acknowledge(part[0], frame)))

    def _busy(self, frame: bytes, retry_after: float) -> Reply:
        self._counts.count_frame("busy")
        wait = Problem(503, retry_after=retry_after).headers
        return Reply(HTTP_STATUS["busy"], self._ack("busy", frame), headers=wait)
