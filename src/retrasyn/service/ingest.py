"""From frames to acknowledgements: judge, write once for many, then answer.

While one group of frames is being written the next is judged, so a group is as large as the disk
is slow. Answers wait for the write of their own group even if they have nothing to write: a
duplicate's original may be in it.

When a write fails nobody knows what is durable. Everything in hand is answered busy, nothing is
judged until a write works again, and then the gate's rounds are read back from the store.

To fold round t: `gate.close_round(t)`, `await ingest.settle()`, `gate.taken(t)`,
`await ingest.run(store.fold, ...)`, `gate.forget_round(t)`.
"""

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
from retrasyn.service.gate import Gate, Verdicts
from retrasyn.service.store import Store
from retrasyn.wire.batches import MAX_FRAMES

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds between two tries while the store fails."""
RETRY_AFTER = 1.0
_log = logging.getLogger(__name__)
Result = TypeVar("Result")


@dataclass(slots=True, eq=False)
class _Submission:
    """Frames that came together, and who waits for their statuses."""

    answer: asyncio.Future[Verdicts]
    n: int
    frames: Sequence[bytes] = field(default=(), repr=False)
    body: bytes | None = field(default=None, repr=False)
    verdicts: Verdicts | None = None


class Ingest:
    """One queue, one writer thread. Use from one event loop."""

    def __init__(
        self,
        gate: Gate,
        store: Store,
        *,
        clock: Callable[[], float] = time.time,
        queue_frames: int = 200_000,
    ) -> None:
        self.gate, self.store, self.clock, self.queue_frames = gate, store, clock, queue_frames
        self.n_commits = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._batches: deque[_Submission] = deque()
        self._singles: list[_Submission] = []
        self._judged: list[_Submission] = []
        self._writing: list[_Submission] = []
        self._n_waiting = 0
        self._scheduled = False
        self._size = 0  # bytes of the last write: one that works again has room for as many
        self._mending: asyncio.Task[None] | None = None
        self._quiet: list[asyncio.Future[None]] = []
        self._closed = False

    @property
    def healthy(self) -> bool:
        """Whether the last write worked; nothing is acknowledged while it did not."""
        return self._mending is None

    @property
    def n_waiting(self) -> int:
        """Frames that were taken in and not answered yet."""
        return self._n_waiting

    async def submit(self, frames: Sequence[bytes]) -> list[str]:
        """Return the status of each frame, durable; `Busy` if they cannot be taken now."""
        return (await self._take(len(frames), frames=frames)).statuses

    async def submit_body(self, body: bytes) -> bytes:
        """Return one status byte for each frame of a batch, durable; `Busy` or `WireError`."""
        n = min(MAX_FRAMES, max(1, len(body) // (2 + int.from_bytes(body[:2], "little"))))
        return (await self._take(n, body=body)).codes.tobytes()

    async def run(self, call: Callable[..., Result], *args: object, **options: object) -> Result:
        """Run a store call on the writer thread, after everything handed to it before."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, functools.partial(call, *args, **options))

    async def settle(self) -> None:
        """Wait until all that was judged is durable; while the store fails, until it works."""
        while self._mending is not None or self._in_hand():
            quiet: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._quiet.append(quiet)
            await quiet

    async def close(self) -> None:
        """Finish what was taken in, and stop the writer thread; the store stays open."""
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
        if self._closed:
            raise Busy("the service is stopping", retry_after=RETRY_AFTER)
        if self._mending is not None:
            raise Busy("reports cannot be written at the moment", retry_after=RETRY_AFTER)
        if self._n_waiting + n > self.queue_frames:
            raise Busy(f"{self._n_waiting:,} reports are waiting", retry_after=RETRY_AFTER)
        loop = asyncio.get_running_loop()
        submission = _Submission(loop.create_future(), n, frames, body)
        (self._singles if body is None else self._batches).append(submission)
        self._n_waiting += n
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
            self._judge_a_batch()
            if not self._writing:
                self._judge_singles()
        except Exception as fault:  # noqa: BLE001 - what was marked half-way must not be believed
            self._break(fault)
            return
        if self._judged and not self._writing:
            self._write()
        if self._batches:
            self._schedule()
        self._tell_quiet()

    def _judge_a_batch(self) -> None:
        """Judge one batch, then let others have the loop."""
        if not self._batches:
            return
        submission = self._batches.popleft()
        self._judged.append(submission)
        try:
            submission.verdicts = self.gate.judge_batch(submission.body or b"", self.clock())
        except WireError as fault:
            self._judged.pop()
            self._answer(submission, fault)

    def _judge_singles(self) -> None:
        """Judge together what came one by one while the last group was being written."""
        if not self._singles:
            return
        singles, self._singles = self._singles, []
        self._judged += singles
        found = self.gate.judge([f for one in singles for f in one.frames], self.clock())
        place = 0
        for one in singles:
            codes = found.codes[place : place + one.n]
            one.verdicts = Verdicts(codes=codes, blobs=found.blobs if one is singles[0] else ())
            place += one.n

    def _write(self) -> None:
        """Hand what was judged to the writer thread: one blob for each round."""
        self._writing, self._judged = self._judged, []
        by_round: dict[int, list[bytes]] = {}
        for submission in self._writing:
            for t, blob in submission.verdicts.blobs if submission.verdicts else ():
                by_round.setdefault(t, []).append(blob)
        if not by_round:
            self._written(None)
            return
        self.n_commits += 1
        blobs = [(t, b"".join(parts)) for t, parts in by_round.items()]
        self._size = sum(len(blob) for _, blob in blobs)
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._thread, self.store.append, blobs)
        done.add_done_callback(lambda future: self._written(future.exception()))

    def _written(self, fault: BaseException | None) -> None:
        """Answer those whose frames are durable now."""
        group, self._writing = self._writing, []
        if fault is not None:
            self._judged = group + self._judged
            self._break(fault)
            return
        for submission in group:
            self._answer(submission, submission.verdicts)
        self._pump()

    def _break(self, fault: BaseException) -> None:
        """Stop answering until a write works and the gate is what the store says."""
        _log.error("writing failed fault=%s", fault)
        self._mending = asyncio.get_running_loop().create_task(self._mend())
        self._refuse()

    def _refuse(self) -> None:
        """Answer busy to everybody in hand: what is durable of theirs is unknown."""
        group = [*self._judged, *self._batches, *self._singles]
        self._judged, self._singles = [], []
        self._batches.clear()
        for submission in group:
            fault = Busy("reports cannot be written at the moment", retry_after=RETRY_AFTER)
            self._answer(submission, fault)

    async def _mend(self) -> None:
        """Try until a write works, then read back what is durable."""
        pause = FIRST_PAUSE
        while True:
            try:
                await self.run(self.store.probe, self._size)
                kept = {t: await self.run(self.store.frames, t) for t in self.gate.unfolded()}
                break
            except Exception as fault:  # noqa: BLE001 - whatever it is, nothing may be acknowledged
                _log.warning("writing still fails fault=%s", fault)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        for t in set(kept).intersection(self.gate.unfolded()):
            self.gate.restore(t, kept[t])
        _log.warning("writing works again rounds=%d", len(kept))
        self._mending = None
        self._pump()

    def _answer(self, submission: _Submission, found: Verdicts | RetraSynError | None) -> None:
        self._n_waiting -= submission.n
        if submission.answer.done():
            return  # whoever asked has gone
        if isinstance(found, Verdicts):
            submission.answer.set_result(found)
        elif found is not None:
            submission.answer.set_exception(found)

    def _in_hand(self) -> bool:
        return bool(self._judged or self._writing or self._batches or self._singles)

    def _tell_quiet(self) -> None:
        if self._in_hand():
            return
        waiting, self._quiet = self._quiet, []
        for quiet in waiting:
            if not quiet.done():
                quiet.set_result(None)
