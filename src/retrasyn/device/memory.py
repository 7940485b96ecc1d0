"""All that a device remembers, as one value that is replaced and never changed."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from retrasyn.device.clock import Odometer
from retrasyn.device.ledger import Entry
from retrasyn.foreign import parse_json


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
class Memory:
    """What has to survive a crash."""

    odometer: Odometer = field(default_factory=Odometer)
    pinned: bytes = b""  # text of the manifest the owner agreed to
    quarantine: Quarantine = field(default_factory=Quarantine)  # the last; every pin begins one
    lots: Lots | None = None
    heads: tuple[Head, ...] = ()  # one per campaign
    entries: tuple[Entry, ...] = ()  # of all campaigns, oldest first
    frame: bytes = b""  # of the newest entry
    spent: int = 0  # micro-nats, in all its life

    def head_of(self, manifest: bytes) -> Head | None:
        """Return the newest round of a campaign, if there was any."""
        return next((head for head in self.heads if head.manifest == manifest), None)

    def with_head(self, new: Head) -> tuple[Head, ...]:
        """Return the heads with one of them moved on."""
        return (*(head for head in self.heads if head.manifest != new.manifest), new)


def write_memory(memory: Memory) -> str:
    """Write a memory as JSON, bytes as hexadecimal digits."""
    return json.dumps(asdict(memory), default=bytes.hex)


def read_memory(text: str) -> Memory:
    """Read what `write_memory` wrote; anything else raises KeyError, TypeError or ValueError."""
    given: dict[str, Any] = parse_json(text)
    return Memory(
        odometer=Odometer(**given["odometer"]),
        pinned=bytes.fromhex(given["pinned"]),
        quarantine=Quarantine(**given["quarantine"]),
        lots=None if given["lots"] is None else Lots(**given["lots"]),
        heads=tuple(Head(**_bytes(head, "manifest", "digest")) for head in given["heads"]),
        entries=tuple(Entry(**_bytes(entry, "manifest")) for entry in given["entries"]),
        frame=bytes.fromhex(given["frame"]),
        spent=given["spent"],
    )


def _bytes(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return fields | {name: bytes.fromhex(fields[name]) for name in names}
