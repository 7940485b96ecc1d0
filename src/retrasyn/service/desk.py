"""What was handed in and not answered yet: waiting to be judged, or judged and not written."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from retrasyn.errors import RetraSynError, WireError
from retrasyn.service.gate import Gate
from retrasyn.service.verdicts import Verdicts

Blobs = list[tuple[int, bytes]]


@dataclass(slots=True, eq=False)
class Submission:
    """Frames that came together, and who waits for their statuses."""

    answer: asyncio.Future[Verdicts]
    n: int  # frames, or a guess
    frames: Sequence[bytes] = field(default=(), repr=False)
    body: bytes | None = field(default=None, repr=False)
    verdicts: Verdicts | None = None


@dataclass(slots=True)
class Desk:
    """Judges what came in: batches one by one, single frames together."""

    gate: Gate
    clock: Callable[[], float]
    n_frames: int = 0  # of all that is not answered
    unanswered: set[Submission] = field(default_factory=set, repr=False)
    batches: deque[Submission] = field(default_factory=deque, repr=False)
    singles: list[Submission] = field(default_factory=list, repr=False)
    judged: list[Submission] = field(default_factory=list, repr=False)

    def add(self, submission: Submission) -> None:
        """Take something in."""
        (self.singles if submission.body is None else self.batches).append(submission)
        self.unanswered.add(submission)
        self.n_frames += submission.n

    def judge_a_batch(self) -> None:
        """Judge one batch; others have the loop before the next."""
        if not self.batches:
            return
        submission = self.batches.popleft()
        self.judged.append(submission)
        try:
            submission.verdicts = self.gate.judge_batch(submission.body or b"", self.clock())
        except WireError as fault:
            self.judged.pop()
            self.answer(submission, fault)

    def judge_singles(self) -> None:
        """Judge together what came one by one while the last group was being written."""
        if not self.singles:
            return
        singles, self.singles = self.singles, []
        self.judged += singles
        found = self.gate.judge([f for one in singles for f in one.frames], self.clock())
        place = 0
        for one in singles:
            codes = found.codes[place : place + one.n]
            one.verdicts = Verdicts(codes=codes, blobs=found.blobs if one is singles[0] else ())
            place += one.n

    def take_judged(self) -> tuple[list[Submission], Blobs]:
        """Hand over what was judged, and one blob for each round."""
        group, self.judged = self.judged, []
        by_round: dict[int, list[bytes]] = {}
        for submission in group:
            for t, blob in submission.verdicts.blobs if submission.verdicts else ():
                by_round.setdefault(t, []).append(blob)
        return group, [(t, b"".join(parts)) for t, parts in by_round.items()]

    def take_everything(self) -> list[Submission]:
        """Hand over all that is not being written."""
        group = [*self.judged, *self.batches, *self.singles]
        self.judged, self.singles = [], []
        self.batches.clear()
        return group

    def answer(self, submission: Submission, found: Verdicts | RetraSynError | None) -> None:
        """Tell whoever waits what became of their frames."""
        self.unanswered.discard(submission)
        self.n_frames -= submission.n
        if submission.answer.done():
            return  # whoever asked has gone
        if isinstance(found, Verdicts):
            submission.answer.set_result(found)
        elif found is not None:
            submission.answer.set_exception(found)
