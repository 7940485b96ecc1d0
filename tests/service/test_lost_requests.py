"""I3: requests are dropped, doubled, delayed, damaged, and the service dies in between.

Every device owns one bit. Whatever happens on the way, its bit is counted once or not at all, and
exactly once if the device was told so.
"""

import asyncio
import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from retrasyn.errors import Busy, StoreError
from retrasyn.oracles.oue import OUE
from retrasyn.service import write_queue as write_queue_module
from retrasyn.service.admission import tags
from retrasyn.service.admission.admission import Admission
from retrasyn.service.admission.open_rounds import Marks, OpenRound
from retrasyn.service.store import FoldedRow, open_store
from retrasyn.service.write_queue import WriteQueue
from retrasyn.wire.batches import join_frames
from retrasyn.wire.statuses import STATUSES
from support.senders import Senders

pytestmark = pytest.mark.system

N = 6
ROUNDS = 3
DONE = {"accepted", "duplicate"}
SENDERS = Senders.of(N, division="budget", sampling="self")  # everybody reports in every round


@dataclass
class Disk:
    """What survives: blobs by round, and folded sums."""

    blobs: dict[int, list[bytes]] = field(default_factory=dict)
    sums: dict[int, np.ndarray] = field(default_factory=dict)
    fault: str = ""

    def append(self, blobs):
        fault, self.fault = self.fault, ""
        if fault == "before":
            raise StoreError("nothing was written")
        for t, blob in blobs:
            self.blobs.setdefault(t, []).append(blob)
        if fault == "after":
            raise StoreError("it was written, and nobody knows")

    def probe(self, size):
        pass

    def close(self):
        pass

    def frames(self, t):
        return list(self.blobs.get(t, ()))

    def fold(self, t, counts):
        self.sums[t] = counts
        self.blobs.pop(t, None)


class RealDisk(Disk):
    """The same over SQLite."""

    def __init__(self, path):
        super().__init__()
        self.path = path
        self.store = open_store(path)
        self.store.enter(b"campaign")

    def append(self, blobs):
        fault, self.fault = self.fault, ""
        if fault == "before":
            raise StoreError("nothing was written")
        self.store.append(blobs)
        if fault == "after":
            raise StoreError("it was written, and nobody knows")

    def frames(self, t):
        return self.store.frames(t)

    def fold(self, t, counts):
        self.sums[t] = counts
        self.store.fold(
            FoldedRow(t=t, body=counts.tobytes(), digest=bytes(32)), marks=b"", forget_before=0
        )

    def close(self):
        self.store.close()


def own_bit(key, t):
    size = -(-SENDERS.manifest.n_states // 8)
    return SENDERS.report(key, t, bits=(1 << key).to_bytes(size, "little"))


FRAMES = {(t, key): own_bit(key, t) for t in range(ROUNDS) for key in range(N)}


@dataclass
class Scene:
    """One list of misfortunes."""

    dice: random.Random
    disk: Disk
    t: int = 0
    acked: set = field(default_factory=set)
    held: list = field(default_factory=list)  # requests that are still on their way

    def start(self):
        self.admission = SENDERS.admission(
            *[t for t in range(self.t + 1) if t not in self.disk.sums]
        )
        for t in self.admission.unfolded():
            self.admission.restore(t, self.disk.frames(t))
        self.write_queue = WriteQueue(
            self.admission, self.disk, clock=lambda: SENDERS.now(self.t + 0.01)
        )

    async def deliver(self, wishes, *, hears=True):
        """Let a request arrive; the answer may be lost."""
        frames = [FRAMES[wish] for wish in wishes]
        try:
            if self.dice.random() < 0.5:
                answer = await self.write_queue.submit_body(join_frames(frames))
                statuses = [STATUSES[code] for code in answer]
            else:
                statuses = await self.write_queue.submit(frames)
        except Busy:
            return
        for wish, status in zip(wishes, statuses, strict=True):
            assert status in {*DONE, "late", "early"}, status
            if status in DONE and hears:
                self.acked.add(wish)

    async def damaged(self, wish):
        frame = FRAMES[wish]
        place = self.dice.randrange(len(frame))
        odd = (
            frame[:place] + bytes([frame[place] ^ 1 << self.dice.randrange(8)]) + frame[place + 1 :]
        )
        try:
            (status,) = await self.write_queue.submit([odd])
        except Busy:
            return
        assert status not in {*DONE, "conflict", "too soon"}, status

    def some(self):
        return [(self.t, key) for key in self.dice.sample(range(N), self.dice.randint(1, 3))]

    async def send(self):
        await self.deliver(self.some())

    async def send_twice(self):
        await self.deliver(self.some() * 2)

    async def send_together(self):
        await asyncio.gather(*(self.deliver(self.some()) for _ in range(4)))

    async def lose_the_answer(self):
        await self.deliver(self.some(), hears=False)

    async def delay(self):
        self.held.append(self.some())

    async def arrive(self):
        if self.held:
            await self.deliver(self.held.pop(self.dice.randrange(len(self.held))))

    async def damage(self):
        await self.damaged(self.some()[0])

    async def fail(self):
        self.disk.fault = self.dice.choice(("before", "after"))
        await self.deliver(self.some())
        await self.write_queue.settle()

    async def die_writing(self):
        lost = asyncio.create_task(self.deliver(self.some()))
        for _ in range(self.dice.randint(0, 4)):
            await asyncio.sleep(0)
        lost.cancel()
        await self.die()

    async def turn_over(self):
        if self.t + 1 < ROUNDS:
            await self.fold(self.t)
            self.t += 1
            self.admission.open_round(SENDERS.row(self.t))

    async def die(self):
        """Forget everything that is not on the disk."""
        self.disk.fault = ""
        self.write_queue._thread.shutdown(wait=True)
        if self.write_queue._mending is not None:
            self.write_queue._mending.cancel()
        self.start()

    async def fold(self, t):
        self.admission.close_round(t)
        await self.write_queue.settle()
        bits, keys = self.admission.accepted(t).answers.get(0, (None, np.zeros(0)))
        n = SENDERS.manifest.n_states
        counts = np.zeros(n, np.int64)
        if keys.size:
            counts = OUE(SENDERS.manifest.epsilon).aggregate(bits, n_answers=n)
            counts = counts.counts
        self.disk.fold(t, counts)
        self.admission.forget_round(t)

    async def play(self):
        self.start()
        for _ in range(self.dice.randint(5, 25)):
            await self.dice.choice(STEPS)(self)
        await self.fold(self.t)
        await self.write_queue.close()
        for t, key in FRAMES:
            count = int(self.disk.sums[t][key]) if t in self.disk.sums else 0
            assert count in (0, 1)
            assert count == 1 or (t, key) not in self.acked, "told so, and not counted"
        for counts in self.disk.sums.values():
            assert not counts[N:].any(), "damage was counted"


STEPS = (
    *(Scene.send,) * 3,
    *(Scene.send_twice, Scene.send_together, Scene.lose_the_answer, Scene.delay, Scene.arrive),
    *(Scene.damage, Scene.fail, Scene.die, Scene.die_writing, Scene.turn_over),
)


def play_all(seeds, disk_for):
    for seed in seeds:
        scene = Scene(random.Random(seed), disk_for(seed))
        try:
            asyncio.run(scene.play())
        except BaseException as fault:
            fault.add_note(f"list of misfortunes {seed}")
            raise
        finally:
            scene.disk.close()


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    monkeypatch.setattr(write_queue_module, "FIRST_PAUSE", 0.0)


def test_every_bit_counts_once_or_not_at_all_and_once_if_acked():
    play_all(range(300), lambda _: Disk())


def test_the_same_over_a_real_file(tmp_path):
    def disk_for(seed):
        return RealDisk(tmp_path / f"{seed}.db")

    play_all(range(1000, 1030), disk_for)


@pytest.mark.long
def test_ten_thousand_lists_of_misfortunes_count_every_bit_once_or_not_at_all():
    play_all(range(10_000), lambda _: Disk())


def stale_marks(monkeypatch):
    """After a failed write the admission keeps believing what it believed."""
    honest = Admission.restore

    def restore(admission, t, blobs):
        if not admission._open_rounds.rounds[t].chunks:
            honest(admission, t, blobs)

    monkeypatch.setattr(Admission, "restore", restore)


def early_answers(monkeypatch):
    """Answers do not wait for the write."""
    honest = WriteQueue._write

    def write(write_queue):
        for one in write_queue._judging.judged:
            one.answer.done() or one.answer.set_result(one.verdicts)
        honest(write_queue)

    monkeypatch.setattr(WriteQueue, "_write", write)


def everything_counts(monkeypatch):
    """What is read back is not held against what is there."""
    monkeypatch.setattr(OpenRound, "add_again", OpenRound.add)
    monkeypatch.setattr(OpenRound, "clear", lambda _: None)


def any_tag(monkeypatch):
    """Tags are not compared."""
    monkeypatch.setattr(tags, "matching", lambda ours, _: np.ones(len(ours), np.bool_))


def marks_forgotten(monkeypatch):
    """Nobody remembers who was heard."""
    monkeypatch.setattr(Marks, "add", lambda *_: None)


@pytest.mark.parametrize(
    "bug", [stale_marks, early_answers, everything_counts, any_tag, marks_forgotten]
)
def test_seeded_bugs_are_caught(monkeypatch, bug):
    bug(monkeypatch)
    with pytest.raises(AssertionError):
        play_all(range(300), lambda _: Disk())
