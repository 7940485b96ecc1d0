"""I2: killed -9 at any instant: no acked report lost, none counted twice, the same releases."""

import asyncio
import hashlib
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from retrasyn.messages import MOVING, TRANSITION, Heartbeat, Report
from retrasyn.service.folded_round import from_bytes
from retrasyn.service.service import Service
from retrasyn.service.store import open_store
from retrasyn.wire import encode_heartbeat, encode_report
from retrasyn.wire.batches import join_frames
from retrasyn.wire.statuses import STATUSES
from support import killed_service, postgres
from support.enrolling import enrolled
from support.killed_service import BATCH, HEAD, QUIT, READY, TIME, ToldClock, settings_of

pytestmark = pytest.mark.system

EPOCH = 1_700_000_000
PERIOD = 10
N = 40


@dataclass
class World:
    """The devices, and what each sends at each timestamp: always the same bytes."""

    manifest: object
    id: bytes
    devices: list

    def time_of(self, t):
        return EPOCH + (t + 0.2) * PERIOD

    def reporters(self, t):
        return [key for key in range(N) if key % self.manifest.gap == t % self.manifest.gap]

    def frames(self, t):
        frames = []
        for key, one in enumerate(self.devices):
            fields = {"t": t, "manifest": self.id, "device": one.device}
            frames.append(encode_heartbeat(Heartbeat(kind=MOVING, **fields), one.key))
            if key in self.reporters(t):
                report = Report(
                    question=0,
                    n_answers=self.manifest.n_states,
                    epsilon=self.manifest.epsilon,
                    bits=self.bits(key, t),
                    **fields,
                )
                frames.append(encode_report(report, one.key, oracle="oue"))
        return frames

    def bits(self, key, t):
        n = self.manifest.n_states
        noise = hashlib.shake_128(b"%d %d" % (key, t)).digest(-(-n // 8))
        return (int.from_bytes(noise, "little") % (1 << n)).to_bytes(len(noise), "little")


def begin(folder, store):
    """Make a campaign with devices that have not sent anything."""

    async def enrol():
        service = Service(settings_of(folder, store, EPOCH), ToldClock(EPOCH - 1.0))
        await service.start(runs=False)
        devices = await enrolled(service.runtime, N)
        world = World(service.runtime.campaign.manifest, service.runtime.campaign.id, devices)
        await service.stop()
        return world

    return asyncio.run(enrol())


class Died(Exception):  # noqa: N818 - what happened
    """The connection is gone."""


@dataclass
class Killer:
    """Drives one life after the other, and ends each at an instant of its own."""

    world: World
    folder: Path
    store: str
    dice: random.Random
    t: int = 0
    waiting: set = field(default_factory=set)  # frames of t that were not acknowledged
    ends: Counter = field(default_factory=Counter)  # in what the lives were interrupted
    doing: str = ""

    def __enter__(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.folder.parent / "socket"))
        self.listener.listen()
        self.listener.settimeout(60)
        command = [sys.executable, killed_service.__file__, self.listener.getsockname()]
        self.nursery = subprocess.Popen(
            [*command, str(self.folder), self.store, str(EPOCH)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self.turn_to(0)
        return self

    def __exit__(self, *_):
        self.nursery.stdin.close()
        assert self.nursery.wait(60) == 0
        self.nursery.stdout.close()
        self.listener.close()

    def turn_to(self, t):
        self.t, self.waiting = t, set(self.world.frames(t))

    def life(self, *, kill_after=None, until=None):
        """Let a service live, until it is killed or has come so far."""
        self.nursery.stdin.write(b"live\n")
        self.nursery.stdin.flush()
        self.line, _ = self.listener.accept()
        self.line.settimeout(60)
        self.doing, over = "starting", None
        pid = os.pidfd_open(struct.unpack("<I", self.read(4))[0])
        try:
            self.line.sendall(struct.pack("<d", self.world.time_of(self.t)))
            if kill_after is not None:
                send = signal.pidfd_send_signal
                over = threading.Timer(kill_after, send, (pid, signal.SIGKILL))
                over.start()
            assert self.hear()[0] == READY
            while self.t != until:
                self.play_round()
            self.say(QUIT)
            assert self.hear()[0] == QUIT
        except (Died, ConnectionError):
            self.ends[self.doing] += 1
        finally:
            if over is not None:
                over.join()
            os.close(pid)
            self.line.close()
            how = int(self.nursery.stdout.readline())
            expected = 0 if kill_after is None else -signal.SIGKILL
            assert how == expected, f"it ended by itself while {self.doing}: {how}"

    def play_round(self):
        """Send what is not acknowledged, some of it twice, and go on when all is."""
        self.doing = "folding"
        self.say(TIME, struct.pack("<d", self.world.time_of(self.t)))
        if self.dice.random() < 0.7:
            assert self.hear()[0] == TIME
            turned = True
        else:
            turned = False  # some come before the round is open
        self.doing = "taking reports"
        while self.waiting:
            batches = self.some_batches()
            for number, frames in batches.items():
                self.say(BATCH, struct.pack("<I", number) + join_frames(frames))
            while batches or not turned:
                kind, body = self.hear()
                if kind == TIME:
                    turned = True
                    continue
                frames = batches.pop(struct.unpack("<I", body[:4])[0])
                for frame, code in zip(frames, body[4:], strict=True):
                    status = STATUSES[code]
                    assert status in {"accepted", "duplicate", "early"}
                    if status != "early":
                        self.waiting.discard(frame)
        self.turn_to(self.t + 1)

    def some_batches(self):
        frames = sorted(self.waiting)
        self.dice.shuffle(frames)
        frames += self.dice.sample(frames, len(frames) // 4)
        size = self.dice.choice((1, 5, 20))
        return {n: frames[n : n + size] for n in range(0, len(frames), size)}

    def say(self, kind, body=b""):
        self.line.sendall(HEAD.pack(kind, len(body)) + body)

    def hear(self):
        kind, length = HEAD.unpack(self.read(HEAD.size))
        return kind, self.read(length)

    def read(self, n):
        found = b""
        while len(found) < n:
            some = self.line.recv(n - len(found))
            if not some:
                raise Died
            found += some
        return found


def unbroken(folder, store, world, n_rounds):
    """Run the same rounds without a break."""

    async def run():
        service = Service(settings_of(folder, store, EPOCH), ToldClock(world.time_of(0)))
        await service.start(runs=False)
        for t in range(n_rounds):
            service.clock.time = world.time_of(t)
            await service.scheduler.tick()
            assert set(await service.runtime.write_queue.submit(world.frames(t))) == {"accepted"}
        service.clock.time = world.time_of(n_rounds)
        await service.scheduler.tick()
        await service.stop()

    asyncio.run(run())


def folded_rounds(folder, store, world):
    where = folder / "service.sqlite" if store == "sqlite" else store
    with closing(open_store(where)) as opened:
        opened.enter(world.id)
        return {row.t: row for row in opened.folded()}


def released(folder):
    files = (folder / "releases").rglob("*")
    return {str(file.relative_to(folder)): file.read_bytes() for file in files if file.is_file()}


def check_sums(rounds, world):
    """Every device's bits are in the sums of its rounds exactly once, by a plain loop."""
    for t, row in rounds.items():
        folded = from_bytes(row.body, world.manifest).folded
        answers = folded.answers[TRANSITION]
        expected = np.zeros(world.manifest.n_states, np.int64)
        for key in world.reporters(t):
            number = int.from_bytes(world.bits(key, t), "little")
            for bit in range(world.manifest.n_states):
                expected[bit] += number >> bit & 1
        assert answers.keys.tolist() == world.reporters(t)
        assert answers.aggregate.counts.tolist() == expected.tolist()
        assert folded.size == N


def kill_many_times(tmp_path, kind, n_kills):
    server = postgres.server() if kind == "postgres" else None
    store = server.database() if server else "sqlite"
    folder, other = tmp_path / "killed", tmp_path / "unbroken"
    world = begin(folder, store)
    shutil.copytree(folder, other)
    other_store = server.database(template=store) if server else "sqlite"
    dice = random.Random(n_kills)
    with Killer(world, folder, store, dice) as killer:
        killer.life(until=1)
        while killer.ends.total() < n_kills:
            if killer.ends.total() % 50 == 0:  # how long a life takes on this machine, now
                born = time.monotonic()
                killer.life(until=killer.t + 3)
                usual = time.monotonic() - born
            killer.life(kill_after=dice.uniform(0, 1.2 * usual))
        n_rounds = killer.t + 2
        killer.life(until=n_rounds)
        killer.life(until=n_rounds)  # restarted once more, with nothing to do
        ends = dict(killer.ends)
    unbroken(other, other_store, world, n_rounds)
    rounds, expected = (
        folded_rounds(*place, world) for place in ((folder, store), (other, other_store))
    )
    n_folded = min(len(rounds), len(expected))
    assert n_folded >= n_rounds - 2
    check_sums(rounds, world)
    for t in range(n_folded):
        assert rounds[t] == expected[t]
    mine, theirs = released(folder), released(other)
    common = mine.keys() & theirs.keys()
    assert len(common) >= 2 * (n_rounds - 2)
    for name in common:
        assert mine[name] == theirs[name], name
    return ends, n_rounds


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_killed_a_few_times_nothing_acked_is_lost_and_the_stream_is_the_same(tmp_path, kind):
    ends, _ = kill_many_times(tmp_path, kind, 10)
    assert sum(ends.values()) == 10


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_killed_a_thousand_times_in_all_nothing_acked_is_lost_and_the_stream_is_the_same(
    tmp_path, kind
):
    ends, n_rounds = kill_many_times(tmp_path, kind, 500)
    assert sum(ends.values()) == 500
    assert set(ends) == {"starting", "folding", "taking reports"}, "killed in every kind of work"
    assert n_rounds > 20
