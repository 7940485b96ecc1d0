"""Who is enrolled: tokens made, used up once, and devices that leave or are sent away."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.errors import SettingError, UnknownToken
from retrasyn.service.counters import Counters
from retrasyn.service.gate import Gate
from retrasyn.service.ingest import Ingest
from retrasyn.service.store import DeviceRow, Store
from retrasyn.wire.frames import DEVICE_BYTES, tag_of

MOST_AT_ONCE = 10_000
_SECRET_BYTES = 32
_TOKEN_BYTES = 18
LEAVE = b"retrasyn/1/leave\n"


@dataclass(frozen=True, slots=True)
class Enrolled:
    """What a device is told once: who it is, and the key of its tags."""

    device: bytes = field(repr=False)  # id, 16 bytes
    key: bytes = field(repr=False)  # 32 bytes


@dataclass(slots=True)
class Devices:
    """The enrolled devices, in memory as in the store."""

    campaign: bytes  # id of the manifest, which a device names when it leaves
    store: Store
    gate: Gate
    ingest: Ingest
    counters: Counters
    n_ever: int = 0
    _rows: dict[bytes, DeviceRow] = field(default_factory=dict, repr=False)

    def add(self, row: DeviceRow) -> None:
        """Let a device in."""
        self._rows[row.device] = row
        self.gate.add_device(row.key, row.device, row.secret)
        self.n_ever = max(self.n_ever, row.key + 1)

    @property
    def n(self) -> int:
        """How many are enrolled."""
        return len(self._rows)

    def keys(self) -> npt.NDArray[np.int64]:
        """Return the numbers of all enrolled devices, ascending."""
        return np.sort(np.array([row.key for row in self._rows.values()], np.int64))

    def key_of(self, device: bytes) -> int | None:
        """Return a device's number, if it is enrolled."""
        row = self._rows.get(device)
        return None if row is None else row.key

    async def mint(self, n: int) -> list[str]:
        """Make single-use tokens; only their hashes are kept."""
        if not 1 <= n <= MOST_AT_ONCE:
            raise SettingError(f"{n} tokens cannot be made at once; ask for 1 to {MOST_AT_ONCE:,}")
        tokens = [secrets.token_urlsafe(_TOKEN_BYTES) for _ in range(n)]
        await self.ingest.run(self.store.add_tokens, [_hash(token) for token in tokens])
        return tokens

    async def enrol(self, tokens: list[str]) -> list[Enrolled]:
        """Use tokens up, one device each; all of them or none."""
        if not 1 <= len(tokens) <= MOST_AT_ONCE or len(set(tokens)) != len(tokens):
            raise UnknownToken(
                f"1 to {MOST_AT_ONCE:,} different tokens enrol as many devices; nobody was enrolled"
            )
        fresh = [(os.urandom(DEVICE_BYTES), os.urandom(_SECRET_BYTES)) for _ in tokens]
        hashes = [_hash(token) for token in tokens]
        keys = await self.ingest.run(self.store.enrol, hashes, fresh)
        for key, (device, secret) in zip(keys, fresh, strict=True):
            self.add(DeviceRow(key, device, secret))
        self.counters.devices_enrolled += len(fresh)
        return [Enrolled(device, secret) for device, secret in fresh]

    async def leave(self, device: bytes, tag: bytes) -> bool:
        """Forget a device that asks for it with its own tag; False if the tag is wrong."""
        row = self._rows.get(device)
        secret = bytes(_SECRET_BYTES) if row is None else row.secret  # the same work either way
        right = tag_of(secret, LEAVE + self.campaign + device)
        if not hmac.compare_digest(right, tag) or row is None:
            return False
        return await self.revoke(device)

    async def revoke(self, device: bytes) -> bool:
        """Forget a device; what it has sent still counts. False if there is none of that id."""
        if device not in self._rows:
            return False
        found = bool(await self.ingest.run(self.store.remove_device, device))
        if self._rows.pop(device, None) is not None:
            self.gate.remove_device(device)
            self.counters.devices_removed += 1
        return found


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
