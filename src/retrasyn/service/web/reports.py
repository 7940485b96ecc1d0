"""Reports over HTTP, by the short way: bytes in, bytes out, no framework between.

`POST /v1/reports` takes one frame and answers with an acknowledgement; `POST /v1/reports/batch`
takes many and answers with a byte for each. An acknowledgement leaves only after the report is
durable.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from retrasyn.device.reactions import HTTP_STATUS
from retrasyn.errors import Busy, WireError
from retrasyn.messages import Ack
from retrasyn.service.web.bodies import read_body
from retrasyn.service.web.problems import Problem
from retrasyn.service.web.replies import Protocol, Reply, Scope
from retrasyn.wire.batches import MAX_FRAMES, split_frames
from retrasyn.wire.frames import encode_ack, report_digest
from retrasyn.wire.heartbeats import is_heartbeat

if TYPE_CHECKING:
    from retrasyn.service.service import Service
    from retrasyn.service.web.counts import Counts
    from retrasyn.service.web.deadlines import Deadlines

MAX_FRAME = 1 << 16
_REPORT_T, _HEARTBEAT_T = 4, 2  # where the timestamp stands in a frame
_T = struct.Struct("<I")


class Reports:
    """Answers the two addresses that devices use all the time."""

    def __init__(self, service: Service, counts: Counts, deadline: Deadlines) -> None:
        self._service, self._counts = service, counts
        limits = service.settings.limits
        self._max_body, self._max_batch = limits.max_body, limits.max_batch
        self._deadline = deadline
        self._manifest = service.campaign.id

    async def one(self, scope: Scope, protocol: Protocol) -> Reply:
        """Take one frame; the answer is its acknowledgement."""
        limit = min(MAX_FRAME, self._max_body)
        frame = await read_body(scope, protocol, limit=limit, deadline=self._deadline)
        try:
            (status,) = await self._service.ingest.submit([frame])
        except Busy as busy:
            return self._busy(frame, busy.retry_after)
        self._counts.count_frame(status)
        return Reply(HTTP_STATUS[status], self._ack(status, frame))

    async def many(self, scope: Scope, protocol: Protocol) -> Reply:
        """Take a batch; the answer has the number of a status for each frame."""
        body = await read_body(scope, protocol, limit=self._max_body, deadline=self._deadline)
        try:
            self._check_number(body)
            statuses = await self._service.ingest.submit_body(body)
        except WireError as error:
            raise Problem(422, f"{str(error)[:1].upper()}{str(error)[1:]}.") from None
        except Busy as busy:
            raise Problem(503, retry_after=busy.retry_after) from None
        self._counts.count_frames(statuses)
        return Reply(200, statuses)

    def _check_number(self, body: bytes) -> None:
        """Refuse a batch of more frames than the operator wants at once."""
        if self._max_batch < MAX_FRAMES and len(split_frames(body)) > self._max_batch:
            raise Problem(
                413, f"A batch has at most {self._max_batch:,} frames here; send several."
            )

    def _ack(self, status: str, frame: bytes) -> bytes:
        return encode_ack(
            Ack(status=status, manifest=self._manifest, t=_t_of(frame), digest=report_digest(frame))
        )

    def _busy(self, frame: bytes, retry_after: float) -> Reply:
        self._counts.count_frame("busy")
        wait = Problem(503, retry_after=retry_after).headers
        return Reply(HTTP_STATUS["busy"], self._ack("busy", frame), headers=wait)


def _t_of(frame: bytes) -> int:
    """Return the timestamp a frame speaks of, or 0 if it is too short to say."""
    place = _HEARTBEAT_T if is_heartbeat(frame) else _REPORT_T
    found: int = _T.unpack_from(frame, place)[0] if len(frame) >= place + _T.size else 0
    return found
