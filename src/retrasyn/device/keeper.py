"""The memory of a reporter: read once, moved on, and made durable before anybody relies on it."""

from dataclasses import dataclass, field, replace

from retrasyn.device.clock import Instant, Odometer
from retrasyn.device.ledger import MILLI
from retrasyn.device.memory import Memory, Quarantine
from retrasyn.device.volatile import Lost, Store
from retrasyn.messages import Manifest
from retrasyn.wire.texts import decode_manifest, manifest_id, round_hash

REASONS = {
    "": "the campaign changed",
    "missing": "there was no ledger",
    "corrupt": "the ledger was damaged",
    "rolled back": "the ledger was older than its witness",
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


@dataclass(slots=True)
class Keeper:
    """Holds what the store holds. When saving fails nobody knows what that is: it reads again."""

    store: Store
    pinned: Pinned | None = None
    lost: str = ""  # why nothing was found, until a manifest is pinned
    _memory: Memory | None = field(default=None, repr=False)

    def remember(self, now: Instant) -> Memory:
        """Return the memory with the odometer moved on."""
        memory = self._memory
        if memory is None:
            found = self.store.load()
            self.lost = found.reason if isinstance(found, Lost) else ""
            if isinstance(found, Lost):
                found = Memory(odometer=Odometer(boot=now.boot), spent=found.spent)
            memory = found
            self.pinned = Pinned.of(memory.pinned) if memory.pinned else None
        self._memory = replace(memory, odometer=memory.odometer.advance(now.boot))
        return self._memory

    def save(self, memory: Memory) -> None:
        """Make a memory durable."""
        self._memory = None
        self.store.save(memory)
        self._memory = memory

    def silence(self, text: bytes, now: Instant, *, reason: str) -> None:
        """Pin a manifest and begin a quarantine: the longest window in question, from now."""
        memory, new = self.remember(now), Pinned.of(text)
        before = self.pinned or new
        last = memory.quarantine  # if it is not over, it is not cut short
        ends = last.uptime + last.rounds * before.manifest.period * MILLI
        left = -(-(ends - memory.odometer.total) // MILLI)
        seconds = max(new.window_seconds, before.window_seconds, left)
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
