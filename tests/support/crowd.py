"""Real devices in one process: reporters, trackers and heartbeats, for tests of the service."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field

import numpy as np

from retrasyn.device import Answer, Drawn, Instant, MemoryStore, Reporter, Tracker
from retrasyn.device.signatures import verify_ed25519
from retrasyn.messages import ABSENT, MOVING, Heartbeat
from retrasyn.service.service import Service
from retrasyn.service.settings import Settings
from retrasyn.wire import decode_round, encode_heartbeat
from retrasyn.wire.canonical import unseal
from support.enrolling import enrolled

START = 1_700_000_000.0


@dataclass
class SetClock:
    """A clock that shows what it is told, and lets others wait for it."""

    time: float = START

    def now(self) -> float:
        return self.time

    async def sleep_until(self, instant: float) -> None:
        while self.time < instant:  # noqa: ASYNC110 - the clock is a plain number
            await asyncio.sleep(0.001)


def settings_in(folder, **changes) -> Settings:
    """Return the settings of a small, quick campaign."""
    values = {
        "folder": str(folder),
        "period": "10",
        "grace": "0",
        "window": "3",
        "grid": "3",
        "seed": "7",
        "fewest": "1",
        "snapshot_every": "4",
        "replicates": "0",
        "lifetime_cap": "1000",  # these devices share for longer than the default allows
    }
    return Settings.load(None, values | {name: str(value) for name, value in changes.items()})


_known: dict[tuple[bytes, bytes], bool] = {}


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """Check a signature once for all devices."""
    place = (message, signature)
    if place not in _known:
        _known[place] = verify_ed25519(key, message, signature)
    return _known[place]


@dataclass
class Person:
    """A device and the walk of its owner."""

    reporter: Reporter
    tracker: Tracker
    secret: bytes
    device: bytes
    walk: dict[int, tuple[float, float]]  # where the owner is while sharing
    sharing: bool = False


@dataclass
class Crowd:
    """Many real devices of one service, walking at random."""

    service: Service
    people: list[Person] = field(default_factory=list)
    sent: dict[int, list[bytes]] = field(default_factory=dict)  # every frame, by round

    @classmethod
    async def enrol(cls, service: Service, n: int, *, rounds: int, seed: int = 0, share=0.85):
        """Enrol n devices with walks of their own, some of which stop and start."""
        crowd, dice = cls(service), np.random.default_rng(seed)
        for new in await enrolled(service.runtime, n):
            reporter = Reporter(new.device, new.key, MemoryStore(), verify)
            tracker = Tracker(service.runtime.campaign.manifest)
            walk = _walk(dice, rounds, service.runtime.campaign.grid.box, share)
            crowd.people.append(Person(reporter, tracker, new.key, new.device, walk))
        for person in crowd.people:
            person.reporter.pin(service.runtime.campaign.envelope, crowd.instant(-50))
        return crowd

    def instant(self, t: float) -> Instant:
        """Return what a device's clocks show at a round, or a part of one."""
        manifest = self.service.runtime.campaign.manifest
        wall = int((manifest.epoch + t * manifest.period) * 1000)
        return Instant(wall=wall, boot=wall - int(START * 1000) + 10**9)

    def frames_at(self, envelope: bytes) -> list[bytes]:
        """Return what all devices send in a round, and keep it."""
        asked = decode_round(unseal(envelope)[0])
        ids = b"".join(person.device for person in self.people)
        meant = self.service.runtime.asked(asked.t, ids)
        frames: list[bytes] = []
        for person, asked_for in zip(self.people, meant, strict=True):
            frames += self._frames_of(person, envelope, asked.t, meant=bool(asked_for))
        self.sent[asked.t] = frames
        return frames

    def _frames_of(self, person: Person, envelope: bytes, t: int, *, meant: bool) -> list[bytes]:
        campaign, now = self.service.runtime.campaign, self.instant(t + 0.2)
        manifest, fix = campaign.manifest, person.walk.get(t)
        if fix is not None:
            person.tracker.observe(t, fix, boot=now.boot)
        elif person.sharing or manifest.presence == "hidden":
            person.tracker.stop(t, boot=now.boot)
        person.sharing = fix is not None
        kind, frames = person.tracker.kind(t), []
        if manifest.presence != "hidden" and kind != ABSENT:
            told = kind if manifest.presence == "flags" else MOVING
            if manifest.presence == "flags" or fix is not None:
                beat = Heartbeat(kind=told, t=t, manifest=campaign.id, device=person.device)
                frames.append(encode_heartbeat(beat, person.secret))
        if manifest.sampling == "curator" and not meant:
            return frames
        drawn = person.reporter.draw(envelope, now, person.tracker)
        if isinstance(drawn, Drawn):
            answer = person.reporter.report(envelope, now, person.tracker)
            if isinstance(answer, Answer):
                frames.append(answer.frame)
        return frames


def _walk(dice, rounds, box, share):
    """Return positions at the rounds at which a person shares."""
    x0, y0, x1, y1 = box
    place, walk, here = dice.random(2), {}, dice.random() < share
    for t in range(rounds):
        place = np.clip(place + dice.normal(0, 0.15, 2), 0, 1)
        here = dice.random() < share if dice.random() < 0.3 else here
        if here:
            walk[t] = (x0 + place[0] * (x1 - x0), y0 + place[1] * (y1 - y0))
    return walk


def rounds_from(service: Service):
    """Go through the instants a fifth into each round."""
    manifest = service.runtime.campaign.manifest
    for t in itertools.count():
        yield t, manifest.epoch + (t + 0.2) * manifest.period


async def play(service: Service, crowd: Crowd, rounds: int, *, first: int = 0, shuffle=None):
    """Let rounds go by: open, report, fold."""
    statuses = []
    manifest = service.runtime.campaign.manifest
    for t in range(first, first + rounds):
        service.clock.time = manifest.epoch + (t + 0.2) * manifest.period
        await service.scheduler.tick()
        frames = crowd.frames_at(service.runtime.current_round())
        if shuffle is not None:
            shuffle.shuffle(frames)
        if frames:
            statuses += await service.runtime.write_queue.submit(frames)
    return statuses


async def finish(service: Service):
    """Let the last open round end."""
    service.clock.time = max(row.ends for row in service.runtime.calendar.waiting.values()) + 0.01
    await service.scheduler.fold_due()
