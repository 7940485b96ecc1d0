"""Judges frames, writes those accepted in groups, and answers once they are durable."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from retrasyn.errors import Busy, RetraSynError, WireError
from retrasyn.service.admission.admission import Admission, Verdicts
from retrasyn.service.store import CampaignStore
from retrasyn.wire.batches import MAX_FRAMES
from retrasyn.wire.layout import LENGTH_BYTES

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds between two tries while the store fails."""
RETRY_AFTER = 1.0
"""Seconds after which a client that was told busy may try again."""
Blobs = list[tuple[int, bytes]]
"""What is written: the timestamp of a round, and records of its reports."""
Result = TypeVar("Result")
_log = logging.getLogger(__name__)


class WriteQueue:
    """A queue of frames and one writer thread. Used from one event loop."""

    def __init__(
        self,
        admission: Admission,
        store: CampaignStore,
        *,
        clock: Callable[[], float] = time.time,
        queue_frames: int = 200_000,
    ) -> None:
        self.admission, self.store, self.queue_frames = admission, store, queue_frames
        self.n_commits = 0
        self._judging = JudgingQueue(admission, clock)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._writing: list[Submission] = []
        self._size = 0  # bytes of the last write: one that works again has room for as many
        self._scheduled = False
        self._mending: asyncio.Task[None] | None = None
        self._watchers: list[asyncio.Future[None]] = []
        self._closed = False

    @property
    def healthy(self) -> bool:
        """Whether the last write worked; nothing is acknowledged while it did not."""
        return self._mending is None

    @property
    def n_waiting(self) -> int:
        """Frames that are queued and not answered yet."""
        return self._judging.n_frames

    async def submit(self, frames: Sequence[bytes]) -> list[str]:
        """Return the status of each frame, durable; `Busy` if they cannot be queued now."""
        return (await self._take(len(frames), frames=frames)).statuses

    async def submit_body(self, body: bytes) -> bytes:
        """Return one status byte for each frame of a batch, durable; `Busy` or `WireError`."""
        first = LENGTH_BYTES + int.from_bytes(body[:LENGTH_BYTES], "little")
        n = min(MAX_FRAMES, max(1, len(body) // first))
        return (await self._take(n, body=body)).codes.tobytes()

    async def run(self, call: Callable[..., Result], *args: object, **options: object) -> Result:
        """Run a store call on the writer thread, after all calls before it."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, functools.partial(call, *args, **options))

    async def settle(self) -> None:
        """Wait until all frames queued so far are durable or refused, and the store works."""
        before = set(self._judging.unanswered)
        while self._mending is not None or before & self._judging.unanswered:
            watcher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._watchers.append(watcher)
            await watcher

    async def close(self) -> None:
        """Finish what is queued, and stop the writer thread; the store stays open."""
        self._closed = True
        if self._mending is not None:
            self._mending.cancel()
            await asyncio.gather(self._mending, return_exceptions=True)
            self._mending = None
            self._refuse()
        await self.settle()
        self._thread.shutdown(wait=True)

    async def _take(
        self, n: int, *, frames: Sequence[bytes] = (), body: bytes | None = None
    ) -> Verdicts:
        waiting = self._judging.n_frames
        if self._closed:
            raise Busy("the service is stopping", retry_after=RETRY_AFTER)
        if self._mending is not None:
            raise Busy("reports cannot be written at the moment", retry_after=RETRY_AFTER)
        if waiting and waiting + n > self.queue_frames:
            raise Busy(f"{waiting:,} reports are waiting", retry_after=RETRY_AFTER)
        submission = Submission(asyncio.get_running_loop().create_future(), n, frames, body)
        self._judging.add(submission)
        self._schedule()
        return await submission.answer

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        """Judge what arrived, and write what was judged unless a write is under way."""
        self._scheduled = False
        if self._mending is not None:
            self._refuse()
            return
        try:
            self._judging.judge_a_batch()
            if not self._writing:
                self._judging.judge_singles()
        except Exception as fault:  # noqa: BLE001 - what was marked half-way must not be believed
            self._break(fault)
            return
        if self._judging.judged and not self._writing:
            self._write()
        if self._judging.batches:
            self._schedule()
        self._wake()

    def _write(self) -> None:
        """Pass judged frames to the writer thread."""
        self._writing, blobs = self._judging.take_judged()
        if not blobs:
            self._written(None)
            return
        self.n_commits += 1
        self._size = sum(len(blob) for _, blob in blobs)
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._thread, self.store.append, blobs)
        done.add_done_callback(lambda future: self._written(future.exception()))

    def _written(self, fault: BaseException | None) -> None:
        """Answer submissions whose frames are durable now."""
        group, self._writing = self._writing, []
        if fault is not None:
            self._judging.judged = group + self._judging.judged
            self._break(fault)
            return
        for submission in group:
            self._judging.answer(submission, submission.verdicts)
        self._pump()

    def _break(self, fault: BaseException) -> None:
        """Stop answering until a write works and admission is what the store says."""
        _log.error("writing failed fault=%s", fault)
        if self._mending is None:
            self._mending = asyncio.get_running_loop().create_task(self._mend())
        self._refuse()

    def _refuse(self) -> None:
        """Answer busy to all submissions: which of their frames are durable is unknown."""
        for submission in self._judging.take_everything():
            fault = Busy("reports cannot be written at the moment", retry_after=RETRY_AFTER)
            self._judging.answer(submission, fault)
        self._wake()

    async def _mend(self) -> None:
        """Retry until a write works, then read back what is durable."""
        pause = FIRST_PAUSE
        while True:
            try:
                await self.run(self.store.probe, self._size)
                stored = {
                    t: await self.run(self.store.frames, t) for t in self.admission.unfolded()
                }
                break
            except Exception as fault:  # noqa: BLE001 - whatever it is, nothing may be acknowledged
                _log.warning("writing still fails fault=%s", fault)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        for t in set(stored).intersection(self.admission.unfolded()):
            self.admission.restore(t, stored[t])
        _log.warning("writing works again rounds=%d", len(stored))
        self._mending = None
        self._pump()

    def _wake(self) -> None:
        """Wake the callers of `settle`."""
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            if not watcher.done():
                watcher.set_result(None)


@dataclass(slots=True, eq=False)
class Submission:
    """Frames that came in one request, and the future of their statuses."""

    answer: asyncio.Future[Verdicts]
    n: int  # frames, or a guess
    frames: Sequence[bytes] = field(default=(), repr=False)
    body: bytes | None = field(default=None, repr=False)
    verdicts: Verdicts | None = None


@dataclass(slots=True)
class JudgingQueue:
    """Submissions that wait to be judged or written: batches one by one, single frames together."""

    admission: Admission
    clock: Callable[[], float]
    n_frames: int = 0  # of all that is not answered
    unanswered: set[Submission] = field(default_factory=set, repr=False)
    batches: deque[Submission] = field(default_factory=deque, repr=False)
    singles: list[Submission] = field(default_factory=list, repr=False)
    judged: list[Submission] = field(default_factory=list, repr=False)

    def add(self, submission: Submission) -> None:
        """Queue a submission."""
        (self.singles if submission.body is None else self.batches).append(submission)
        self.unanswered.add(submission)
        self.n_frames += submission.n

    def judge_a_batch(self) -> None:
        """Judge one batch; the event loop runs before the next."""
        if not self.batches:
            return
        submission = self.batches.popleft()
        self.judged.append(submission)
        try:
            submission.verdicts = self.admission.judge_batch(submission.body or b"", self.clock())
        except WireError as fault:
            self.judged.pop()
            self.answer(submission, fault)

    def judge_singles(self) -> None:
        """Judge together the single frames that came while the last group was written."""
        if not self.singles:
            return
        singles, self.singles = self.singles, []
        self.judged += singles
        found = self.admission.judge([f for one in singles for f in one.frames], self.clock())
        place = 0
        for one in singles:
            codes = found.codes[place : place + one.n]
            one.verdicts = Verdicts(codes=codes, blobs=found.blobs if one is singles[0] else ())
            place += one.n

    def take_judged(self) -> tuple[list[Submission], Blobs]:
        """Remove and return judged submissions, with one blob for each round."""
        group, self.judged = self.judged, []
        by_round: dict[int, list[bytes]] = {}
        for submission in group:
            for t, blob in submission.verdicts.blobs if submission.verdicts else ():
                by_round.setdefault(t, []).append(blob)
        return group, [(t, b"".join(parts)) for t, parts in by_round.items()]

    def take_everything(self) -> list[Submission]:
        """Remove and return all submissions that are not being written."""
        group = [*self.judged, *self.batches, *self.singles]
        self.judged, self.singles = [], []
        self.batches.clear()
        return group

    def answer(self, submission: Submission, found: Verdicts | RetraSynError | None) -> None:
        """Complete the future of a submission."""
        self.unanswered.discard(submission)
        self.n_frames -= submission.n
        if submission.answer.done():
            return  # whoever asked has gone
        if isinstance(found, Verdicts):
            submission.answer.set_result(found)
        elif found is not None:
            submission.answer.set_exception(found)
