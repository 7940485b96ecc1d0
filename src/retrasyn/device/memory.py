"""Everything a device remembers, and how it survives restarts."""

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Protocol

from retrasyn.bounded_json import parse_json
from retrasyn.device.clock import Instant, Odometer
from retrasyn.device.ledger import MILLI, LedgerEntry
from retrasyn.errors import WireError
from retrasyn.messages import Manifest
from retrasyn.wire.canonical import read_canonical
from retrasyn.wire.texts import decode_manifest, manifest_id, round_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The newest round of a campaign on which the device decided."""

    manifest: bytes
    t: int
    digest: bytes  # what the next round must name as its previous


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """Silence after spending may have been forgotten, or the campaign changed."""

    reason: str = ""
    t: int = 0  # round in which it began
    uptime: int = 0  # milliseconds of the odometer when it began
    rounds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lots:
    """Two words drawn from the operating system's entropy and kept until the next quarantine."""

    phase: int
    role: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """What must survive a crash."""

    odometer: Odometer = field(default_factory=Odometer)
    pinned: bytes = b""  # text of the manifest the owner agreed to
    quarantine: Quarantine = field(default_factory=Quarantine)  # the last; every pin begins one
    lots: Lots | None = None
    heads: tuple[Head, ...] = ()  # one per campaign
    entries: tuple[LedgerEntry, ...] = ()  # of all campaigns, oldest first
    frame: bytes = b""  # of the newest entry
    spent: int = 0  # micro-nats, in all its life

    def head_of(self, manifest: bytes) -> Head | None:
        """Return the newest round of a campaign, if there was any."""
        return next((head for head in self.heads if head.manifest == manifest), None)

    def with_head(self, new: Head) -> tuple[Head, ...]:
        """Return the heads with one of them updated."""
        return (*(head for head in self.heads if head.manifest != new.manifest), new)


def write_memory(memory: DeviceMemory) -> str:
    """Write a memory as JSON, bytes as hexadecimal digits."""
    return json.dumps(asdict(memory), default=bytes.hex)


def read_memory(text: str) -> DeviceMemory:
    """Read what `write_memory` wrote; anything else raises KeyError, TypeError or ValueError."""
    given: dict[str, Any] = parse_json(text)
    return DeviceMemory(
        odometer=Odometer(**given["odometer"]),
        pinned=bytes.fromhex(given["pinned"]),
        quarantine=Quarantine(**given["quarantine"]),
        lots=None if given["lots"] is None else Lots(**given["lots"]),
        heads=tuple(Head(**_bytes(head, "manifest", "digest")) for head in given["heads"]),
        entries=tuple(LedgerEntry(**_bytes(entry, "manifest")) for entry in given["entries"]),
        frame=bytes.fromhex(given["frame"]),
        spent=given["spent"],
    )


def _bytes(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return fields | {name: bytes.fromhex(fields[name]) for name in names}


@dataclass(frozen=True, slots=True)
class Lost:
    """Why the stored memory cannot be used: it is missing, damaged or rolled back."""

    reason: Literal["missing", "corrupt", "rolled back"]
    spent: int = 0  # at least so much in all its life, where that can still be read


class LedgerStore(Protocol):
    """Keeps one memory. Whatever goes wrong is a `LedgerError`, and then nothing may be sent."""

    def load(self) -> DeviceMemory | Lost:
        """Return the memory saved last, or why it cannot be trusted."""
        ...  # pragma: no cover - a protocol has no body

    def save(self, memory: DeviceMemory) -> None:
        """Replace the stored memory; it is durable when this returns."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(slots=True)
class MemoryStore:
    """A store for simulations and tests: it is lost with every restart.

    >>> store = MemoryStore()
    >>> store.load()
    Lost(reason='missing', spent=0)
    """

    memory: DeviceMemory | None = None

    def load(self) -> DeviceMemory | Lost:
        """Return what was saved last."""
        return Lost("missing") if self.memory is None else self.memory

    def save(self, memory: DeviceMemory) -> None:
        """Keep a memory until the process ends."""
        self.memory = memory


REASONS = {
    "": "the campaign changed",
    "missing": "there was no ledger",
    "corrupt": "the ledger was damaged",
    "rolled back": "the ledger was older than its witness",
    "outdated": "the campaign's manifest was of an earlier version",
}


@dataclass(frozen=True, slots=True)
class Pinned:
    """The manifest the owner agreed to."""

    manifest: Manifest
    id: bytes
    digest: bytes

    @classmethod
    def of(cls, text: bytes) -> "Pinned":
        """Read a manifest that was checked when it was pinned."""
        return cls(decode_manifest(text), manifest_id(text), round_hash(text))

    def round_at(self, now: Instant) -> int:
        """Return the round that the device's own clock says it is."""
        return (now.wall // MILLI - self.manifest.epoch) // self.manifest.period

    @property
    def window_seconds(self) -> int:
        """How long w + 1 rounds last."""
        return (self.manifest.window + 1) * self.manifest.period


def times_of(text: bytes) -> tuple[int, int]:
    """Return the seconds of a round and of w + 1 rounds, by a manifest of this or an older version.

    >>> times_of(b'{"period":60,"window":20}')
    (60, 1260)
    """
    fields = read_canonical(text, "manifest")
    period: int = fields["period"]
    return period, (fields["window"] + 1) * period


@dataclass(slots=True)
class MemoryCache:
    """Caches what the store holds. After a failed save that is unknown, so it is read again."""

    store: LedgerStore
    pinned: Pinned | None = None
    lost: str = ""  # why nothing was found, until a manifest is pinned
    _memory: DeviceMemory | None = field(default=None, repr=False)

    def remember(self, now: Instant) -> DeviceMemory:
        """Return the memory with the odometer advanced."""
        memory = self._memory
        if memory is None:
            found = self.store.load()
            self.lost = found.reason if isinstance(found, Lost) else ""
            if isinstance(found, Lost):
                found = DeviceMemory(odometer=Odometer(boot=now.boot), spent=found.spent)
            memory, self.pinned = found, None
            try:
                self.pinned = Pinned.of(memory.pinned) if memory.pinned else None
            except WireError:  # what was spent still counts, and how long a window lasts
                self.lost = "outdated"
        self._memory = replace(memory, odometer=memory.odometer.advance(now.boot))
        return self._memory

    def save(self, memory: DeviceMemory) -> None:
        """Make a memory durable."""
        self._memory = None
        self.store.save(memory)
        self._memory = memory

    def silence(self, text: bytes, now: Instant, *, reason: str) -> None:
        """Pin a manifest and begin a quarantine that lasts the longest window in question."""
        memory, new = self.remember(now), Pinned.of(text)
        period, window_seconds = times_of(memory.pinned or text)
        last = memory.quarantine  # if it is not over, it is not cut short
        ends = last.uptime + last.rounds * period * MILLI
        left = -(-(ends - memory.odometer.total) // MILLI)
        seconds = max(new.window_seconds, window_seconds, left)
        head = memory.head_of(new.id)
        own = new.round_at(now)
        quarantine = Quarantine(
            reason=reason,
            t=own if head is None else max(own, head.t),
            uptime=memory.odometer.total,
            rounds=-(-seconds // new.manifest.period),
        )
        self.save(replace(memory, pinned=text, quarantine=quarantine, lots=None))
        self.pinned, self.lost = new, ""
