"""A folded round: its sums and keys, and their canonical bytes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from retrasyn.errors import StoreError, WireError
from retrasyn.messages import Aggregate, Flags, Manifest, Question
from retrasyn.service.enrolment import RoundHeartbeats
from retrasyn.simulation.rounds import Answers, Folded
from retrasyn.wire.canonical import read_canonical, write_canonical
from retrasyn.wire.frames import n_answers, question_code, question_of

_LENGTH_BYTES = 4
_NUMBER = np.dtype("<u4")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedRound:
    """A folded round with what else a restart needs."""

    folded: Folded
    n_ever: int  # devices that ever enrolled
    changes: RoundHeartbeats  # heartbeats that changed who is here, where that is public
    alarms: tuple[str, ...]  # tests on the reports that were alarmed

    def digest(self, manifest: Manifest) -> bytes:
        """Return the SHA-256 of the sums."""
        total = hashlib.sha256()
        for code, answers in by_code(self.folded, manifest):
            total.update(bytes([code]))
            total.update(answers.aggregate.n.to_bytes(4, "little"))
            total.update(answers.aggregate.counts.astype(_NUMBER).tobytes())
        return total.digest()


def by_code(folded: Folded, manifest: Manifest) -> list[tuple[int, Answers]]:
    """Return the answers of a round by ascending question code."""
    answers = folded.answers.items()
    coded = [(question_code(question, manifest), found) for question, found in answers]
    return sorted(coded, key=lambda pair: pair[0])


def to_bytes(round_: FoldedRound, manifest: Manifest) -> bytes:
    """Return the canonical bytes of a folded round: a JSON header, then plain numbers."""
    folded, flags = round_.folded, round_.folded.flags
    answers = by_code(folded, manifest)
    header: dict[str, Any] = {
        "t": folded.t,
        "epsilon": folded.epsilon,
        "size": folded.size,
        "n_enrolled": folded.n_enrolled,
        "n_ever": round_.n_ever,
        "answers": [[code, found.aggregate.n] for code, found in answers],
        "entering": -1 if flags is None else flags.n_entering,
        "quitting": -1 if flags is None else flags.ages_of_quitters.size,
        "changes": round_.changes.keys.size,
        "alarms": list(round_.alarms),
    }
    columns: list[npt.NDArray[Any]] = []
    for _, found in answers:
        columns += [found.aggregate.counts, found.keys]
    if flags is not None:
        columns.append(flags.ages_of_quitters)
    columns += [round_.changes.keys, round_.changes.kinds]
    text = write_canonical(header)
    numbers = b"".join(column.astype(_NUMBER).tobytes() for column in columns)
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text + numbers


def from_bytes(body: bytes, manifest: Manifest) -> FoldedRound:
    """Read a folded round from exactly what `to_bytes` writes."""
    try:
        return _read(body, manifest)
    except (WireError, ValueError, KeyError, TypeError):
        raise StoreError(
            "a folded round in the store is damaged; put the store back from a copy"
        ) from None


def _read(body: bytes, manifest: Manifest) -> FoldedRound:
    length = int.from_bytes(body[:_LENGTH_BYTES], "little")
    text = body[_LENGTH_BYTES : _LENGTH_BYTES + length]
    header = read_canonical(text, "a folded round")
    numbers = np.frombuffer(body, _NUMBER, offset=_LENGTH_BYTES + length).astype(np.int64)
    place = 0

    def take(n: int) -> npt.NDArray[np.int64]:
        nonlocal place
        place += n
        if n < 0 or place > numbers.size:
            raise ValueError
        return numbers[place - n : place]

    answers: dict[Question, Answers] = {}
    for code, n in header["answers"]:
        question = question_of(code, manifest)
        counts = take(n_answers(question, manifest))
        answers[question] = Answers(aggregate=Aggregate(counts=counts, n=n), keys=take(n))
    flags = None
    if header["entering"] >= 0:
        ages = take(header["quitting"])
        flags = Flags(n_entering=header["entering"], ages_of_quitters=ages)
    changes = RoundHeartbeats(take(header["changes"]), take(header["changes"]).astype(np.uint8))
    if place != numbers.size:
        raise ValueError
    return FoldedRound(
        folded=Folded(
            t=header["t"],
            epsilon=header["epsilon"],
            size=header["size"],
            n_enrolled=header["n_enrolled"],
            answers=answers,
            flags=flags,
        ),
        n_ever=header["n_ever"],
        changes=changes,
        alarms=tuple(header["alarms"]),
    )
