"""What a frame says before its bits, held against the manifest before any cryptography."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.messages import ENTERING, MOVING, QUITTING, Manifest, Question
from retrasyn.wire.frames import body_bytes, n_answers, question_code, row_of
from retrasyn.wire.layout import (
    CODE_AT,
    DEVICE_BYTES,
    FIRST_KIND,
    HEARTBEAT_BYTES,
    HEARTBEAT_HEAD,
    REPORT_BITS_AT,
    REPORT_HEAD,
    TAG_BYTES,
    VERSION,
)
from retrasyn.wire.texts import MAX_EPSILON

SHORTEST = HEARTBEAT_BYTES
"""No frame has fewer bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The part that many frames share."""

    code: int  # of the question, or of the heartbeat's kind
    t: int
    epsilon: int  # micro-nats; 0 for a heartbeat
    lookback: int  # timestamps before t that the bits depend on
    device_at: int  # where the device id begins

    @property
    def is_report(self) -> bool:
        """Whether bits follow."""
        return self.code < FIRST_KIND

    @property
    def bits_at(self) -> int:
        """Where the bits begin."""
        return self.device_at + DEVICE_BYTES


@dataclass(frozen=True, slots=True)
class Headers:
    """Reads headers for one campaign."""

    manifest: Manifest
    id: bytes
    questions: dict[int, Question] = field(init=False)  # by code
    kinds: tuple[int, ...] = field(init=False)  # of heartbeats that mean something

    def __post_init__(self) -> None:
        manifest = self.manifest
        questions = {question_code(asked, manifest): asked for asked in manifest.questions}
        kinds = {"flags": (ENTERING, MOVING, QUITTING), "count": (MOVING,), "hidden": ()}
        object.__setattr__(self, "questions", questions)
        object.__setattr__(self, "kinds", kinds[manifest.presence])

    def head_bytes(self, second: int) -> int:
        """Return how much of a frame many may share, by its second byte."""
        return (HEARTBEAT_HEAD if second >= FIRST_KIND else REPORT_HEAD).size

    def read(self, head: bytes, length: int) -> Header | str:
        """Return the header of frames of a length, or the status of them all."""
        if head[CODE_AT] >= FIRST_KIND:
            return self._read_heartbeat(head, length)
        return self._read_report(head, length)

    def possible(
        self, header: Header, bits: npt.NDArray[np.uint8]
    ) -> npt.NDArray[np.bool_]:  # bits: [n, bytes]
        """Tell which bits an oracle could have made; of a heartbeat there are none."""
        if not header.is_report:
            return np.ones(len(bits), np.bool_)
        row = row_of(header.code, self.manifest.oracle)
        n = n_answers(self.questions[header.code], self.manifest)
        return at_most(bits[:, row.n_free :], row.largest(header.epsilon, n))

    def _read_report(self, head: bytes, length: int) -> Header | str:
        version, code, n, t, epsilon, manifest = REPORT_HEAD.unpack(head)
        question = self.questions.get(code)
        if version != VERSION:
            return "bad version"
        if manifest != self.id or question is None:
            return "bad manifest"
        if n != n_answers(question, self.manifest) or not 1 <= epsilon <= MAX_EPSILON:
            return "bad manifest"
        bits = body_bytes(code, n, epsilon, self.manifest.oracle)
        if length != REPORT_BITS_AT + bits + TAG_BYTES:
            return "bad length"
        return Header(
            code=code,
            t=t,
            epsilon=epsilon,
            lookback=question.lookback,
            device_at=REPORT_HEAD.size,
        )

    def _read_heartbeat(self, head: bytes, length: int) -> Header | str:
        version, code, t, manifest = HEARTBEAT_HEAD.unpack(head)
        if version != VERSION:
            return "bad version"
        if length != HEARTBEAT_BYTES:
            return "bad length"
        if manifest != self.id or code - FIRST_KIND not in self.kinds:
            return "bad manifest"
        return Header(code=code, t=t, epsilon=0, lookback=1, device_at=HEARTBEAT_HEAD.size)


def at_most(rows: npt.NDArray[np.uint8], largest: int) -> npt.NDArray[np.bool_]:
    """Tell which rows, as numbers with the lowest byte first, are no greater than a largest.

    >>> at_most(np.array([[255, 0], [0, 1], [1, 1]], np.uint8), 256).tolist()
    [True, True, False]
    """
    good = np.ones(len(rows), np.bool_)
    limit = largest.to_bytes(rows.shape[1], "little")
    n_any = len(limit) - len(limit.lstrip(b"\xff"))  # no byte is greater than 255
    for column, byte in zip(rows.T[n_any:], limit[n_any:], strict=True):
        good = (column < byte) | ((column == byte) & good)
    return good


def cells(columns: npt.NDArray[np.uint8]) -> list[bytes]:
    """Return each row as bytes."""
    rows = np.ascontiguousarray(columns)
    found: list[bytes] = rows.view(f"V{rows.shape[1]}")[:, 0].tolist()
    return found


def groups(
    heads: npt.NDArray[np.uint8],
) -> list[tuple[bytes, npt.NDArray[np.int64] | None]]:
    """Return each header with the rows that have it; None for all."""
    first = heads[0].tobytes()
    if heads.tobytes() == first * len(heads):
        return [(first, None)]
    places: dict[bytes, list[int]] = {}
    for place, head in enumerate(cells(heads)):
        places.setdefault(head, []).append(place)
    return [(head, np.array(own)) for head, own in places.items()]
