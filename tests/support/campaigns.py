"""A curator for tests: manifests, rounds and signatures, honest or not."""

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

from retrasyn.device import Instant
from retrasyn.messages import MICRO, Manifest, Round
from retrasyn.wire import encode_manifest, encode_round, manifest_id, round_hash
from retrasyn.wire.canonical import seal, signed_part

EPOCH = 1_700_000_000
KEY = bytes(range(32))
DEVICE = bytes(range(16))
DEVICE_KEY = bytes(range(100, 132))
EVERYBODY = 1 << 64


def manifest_of(**changes: Any) -> Manifest:
    """Return a small manifest; what follows from a changed field changes with it."""
    side = changes.get("side", 3)
    unit = changes.get("unit", "position")
    window = changes.get("window", 3)
    fields: dict[str, Any] = {
        "name": "test",
        "key": KEY,
        "box": (0, 0, 6 * MICRO, 6 * MICRO),
        "side": side,
        "state_order": 1,
        "n_states": (3 * side - 2) ** 2 + 2 * side**2,
        "period": 60,
        "epoch": EPOCH,
        "window": window,
        "unit": unit,
        "gap": window + (unit == "position"),
        "epsilon": MICRO,
        "division": "population",
        "sampling": "curator",
        "oracle": "oue",
        "presence": "count",
        "jump": "split",
        "size_source": "counted",
        "strata": ("transition",),
        "other_shares": (),
        "ages": (),
        "lifetime_cap": 1000 * MICRO,
        "retention": 10,
    }
    return Manifest(**(fields | changes))


def sign(kind: str, text: bytes, key: bytes = KEY) -> bytes:
    """Sign with a hash: enough where nobody forges. The real thing has tests of its own."""
    return seal(text, hashlib.sha512(key + signed_part(kind, text)).digest())


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """Check such a signature."""
    return hashlib.sha512(key + message).digest() == signature


@dataclass
class Campaign:
    """A manifest and the rounds asked so far, chained."""

    manifest: Manifest
    previous: bytes = b""
    rounds: dict[int, bytes] = field(default_factory=dict)  # envelopes

    def __post_init__(self) -> None:
        self.text = encode_manifest(self.manifest)
        self.id = manifest_id(self.text)
        self.previous = self.previous or round_hash(self.text)

    @property
    def envelope(self) -> bytes:
        """Return the signed manifest."""
        return sign("manifest", self.text)

    def round_of(self, t: int, **changes: Any) -> Round:
        """Return the honest round t, or one with some fields changed."""
        opens = self.manifest.epoch + t * self.manifest.period
        asked = Round(
            manifest=self.id,
            t=t,
            open=opens,
            close=opens + self.manifest.period,
            grace=5,
            epsilon=self.manifest.epsilon,
            portion=EVERYBODY,
            previous=self.previous,
        )
        return replace(asked, **changes)

    def ask(self, t: int, **changes: Any) -> bytes:
        """Ask a round, the same whenever t comes again, and chain the next to it."""
        if t not in self.rounds:
            text = encode_round(self.round_of(t, **changes))
            self.rounds[t] = sign("round", text)
            self.previous = round_hash(text)
        return self.rounds[t]

    def at(self, t: float, *, boot: int | None = None) -> Instant:
        """Return the instant at which a device's clock shows a round, or a part of one."""
        wall = int((self.manifest.epoch + t * self.manifest.period) * 1000)
        return Instant(wall=wall, boot=wall - EPOCH * 1000 if boot is None else boot)
