"""The devices of a fleet, with real reporters and trackers, and the positions they replay."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.client.loop import heartbeat_of
from retrasyn.data.trajectories import Trajectories
from retrasyn.device import Answer, Drawn, Instant, Reporter, Tracker, read_clocks
from retrasyn.device.signatures import Verify, verify_ed25519
from retrasyn.device.tracker import Fix
from retrasyn.fleet.ledger import DeviceSlot, FleetLedger
from retrasyn.messages import ABSENT, ENTERING, MOVING, Ack, Manifest
from retrasyn.wire.frames import device_of, is_tagged
from retrasyn.wire.keys import follow

remembered_verify: Verify = functools.lru_cache(maxsize=1024)(verify_ed25519)
"""Signature verification with a cache: all devices of a fleet see the same signatures."""


@dataclass(slots=True)
class Member:
    """One device of a fleet."""

    reporter: Reporter = field(repr=False)
    tracker: Tracker = field(repr=False)


@dataclass(slots=True)
class DevicePool:
    """All devices of a fleet, in the order of their numbers."""

    manifest: Manifest
    id: bytes  # manifest id
    ledger: FleetLedger = field(repr=False)
    members: list[Member] = field(default_factory=list, repr=False)
    keys: dict[bytes, bytes] = field(default_factory=dict, repr=False)  # by device id

    @classmethod
    def of(
        cls, envelope: bytes, manifest: Manifest, id_: bytes, ledger: FleetLedger, n: int
    ) -> DevicePool:
        """Open the first n devices and pin the campaign's manifest."""
        now, members, keys = read_clocks(), list[Member](), dict[bytes, bytes]()
        curator = ledger.curator
        for number, who in enumerate(ledger.devices()[:n]):
            slot = DeviceSlot(ledger, number)
            reporter = Reporter(who.device, who.key, slot, remembered_verify, curator=curator)
            reporter.pin(envelope, now)
            keys[who.device] = who.key
            members.append(Member(reporter, Tracker(manifest)))
        ledger.commit()
        return cls(manifest, id_, ledger, members, keys)

    def trusts(self, kind: str, text: bytes, signature: bytes, now: Instant) -> bool:
        """Tell whether the curator signed something, by the keys that all devices know."""
        return self.members[0].reporter.trusts(kind, text, signature, now)

    def follow(self, statement: bytes) -> None:
        """Follow the curator to its newest key, if the one known signed it."""
        known = self.ledger.curator
        newest, _ = follow(known, statement, remembered_verify)
        if newest != known:
            self.ledger.trust(newest)
            for one in self.members:
                one.reporter.curator = newest

    def proven(self, frames: Sequence[bytes], acks: Sequence[Ack]) -> list[str]:
        """Return the status of each frame; empty where the answer does not prove itself."""
        return [
            ack.status if is_tagged(ack, frame, self.keys[device_of(frame)]) else ""
            for frame, ack in zip(frames, acks, strict=True)
        ]

    def rounds_left(self) -> int:
        """Return the largest number of quarantine rounds left to any device."""
        now = read_clocks()
        return max((one.reporter.status(now).rounds_left for one in self.members), default=0)

    def see(self, t: int, places: Mapping[int, Fix]) -> list[int]:
        """Record which devices share at t, without positions; return those that take part."""
        boot, hidden = read_clocks().boot, self.manifest.presence == "hidden"
        taking_part = []
        for number, one in enumerate(self.members):
            if number in places:
                one.tracker.observe(t, None, boot=boot)
            elif hidden or one.tracker.kind(t - 1) in (ENTERING, MOVING):
                one.tracker.stop(t, boot=boot)
            if hidden or one.tracker.kind(t) != ABSENT:
                taking_part.append(number)
        return taking_part

    def answer(
        self, envelope: bytes, t: int, places: Mapping[int, Fix], asked: Sequence[int]
    ) -> list[bytes]:
        """Let the asked devices draw, read their position and report; commit the ledger."""
        boot, meant, frames = read_clocks().boot, set(asked), list[bytes]()
        for number, one in enumerate(self.members):
            drawn = None
            if number in meant:
                drawn = one.reporter.draw(envelope, read_clocks(), one.tracker)
            if number in places:
                one.tracker.observe(t, places[number], boot=boot)
            if isinstance(drawn, Drawn):
                made = one.reporter.report(envelope, read_clocks(), one.tracker)
                drawn = made if isinstance(made, Answer) else None
            if isinstance(drawn, Answer):
                frames.append(drawn.frame)
        self.ledger.commit()
        return frames

    def heartbeats(self, t: int, taking_part: Sequence[int]) -> list[bytes]:
        """Return the heartbeats of the devices that take part."""
        frames = []
        for number in taking_part:
            one = self.members[number]
            kind = one.tracker.kind(t)
            frame = heartbeat_of(self.manifest, self.id, one.reporter, kind=kind, t=t)
            if frame is not None:
                frames.append(frame)
        return frames


@dataclass(frozen=True, slots=True)
class Positions:
    """Points sorted by timestamp; devices are numbered from 0, one per user or stream."""

    n_devices: int
    n_timestamps: int
    edges: npt.NDArray[np.int64] = field(repr=False)  # [n_timestamps + 1], rows of each timestamp
    device: npt.NDArray[np.int64] = field(repr=False)  # [n_points]
    x: npt.NDArray[np.float64] = field(repr=False)  # [n_points]
    y: npt.NDArray[np.float64] = field(repr=False)  # [n_points]

    @classmethod
    def of(cls, real: Trajectories, n_devices: int | None = None) -> Positions:
        """Number the users, or streams if no users are named, and keep the first n_devices."""
        owner = real.traj_id if real.user_id is None else real.user_id  # [n_points]
        known, device = np.unique(owner, return_inverse=True)
        n = known.size if n_devices is None else min(n_devices, known.size)
        t = real.t - real.first_t
        rows = np.flatnonzero(device < n)
        rows = rows[np.argsort(t[rows], kind="stable")]
        n_timestamps = real.last_t - real.first_t + 1
        edges = np.searchsorted(t[rows], np.arange(n_timestamps + 1))
        return cls(n, n_timestamps, edges, device[rows], real.x[rows], real.y[rows])

    def at(self, step: int) -> dict[int, Fix]:
        """Return the positions at a step by device; the data repeats after its last timestamp."""
        step %= self.n_timestamps
        rows = slice(int(self.edges[step]), int(self.edges[step + 1]))
        places = zip(self.x[rows].tolist(), self.y[rows].tolist(), strict=True)
        return dict(zip(self.device[rows].tolist(), places, strict=True))
