"""Enrolled devices: their enrolment tokens and keys, and since when each has been sharing."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from retrasyn.arrays import grown
from retrasyn.errors import SettingError, UnknownToken
from retrasyn.messages import ENTERING, QUITTING, Flags
from retrasyn.service.store.base import CampaignStore, DeviceRow
from retrasyn.wire.canonical import signed_part
from retrasyn.wire.frames import tag_of
from retrasyn.wire.layout import DEVICE_BYTES

if TYPE_CHECKING:
    from retrasyn.service.admission.admission import Admission
    from retrasyn.service.runtime import Counters
    from retrasyn.service.secrets import Agreement
    from retrasyn.service.write_queue import WriteQueue

MOST_AT_ONCE = 10_000
_SECRET_BYTES = 32
_TOKEN_BYTES = 18
_NOT_HERE = -1


@dataclass(frozen=True, slots=True)
class NewDevice:
    """The id of a new device, and the key agreed on with it, which is never sent."""

    device: bytes = field(repr=False)  # id, 16 bytes
    key: bytes = field(repr=False)  # 32 bytes

    @property
    def tag(self) -> bytes:
        """What shows a device that whoever answers has agreed on the same key."""
        return tag_of(self.key, signed_part("enrolled", self.device))


@dataclass(slots=True)
class EnrolledDevices:
    """The enrolled devices, in memory as in the store."""

    campaign: bytes  # id of the manifest
    store: CampaignStore
    admission: Admission
    write_queue: WriteQueue
    counters: Counters
    n_ever: int = 0
    _rows: dict[bytes, DeviceRow] = field(default_factory=dict, repr=False)

    async def load(self) -> None:
        """Read who is enrolled from the store."""
        self.n_ever = await self.write_queue.run(self.store.n_ever_enrolled)
        for row in await self.write_queue.run(lambda: list(self.store.devices())):
            self.add(row)

    def add(self, row: DeviceRow) -> None:
        """Let a device send reports."""
        self._rows[row.device] = row
        self.admission.add_device(row.key, row.device, row.secret)
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
            raise SettingError(
                f"{n} enrolment tokens cannot be made at once; ask for 1 to {MOST_AT_ONCE:,}"
            )
        tokens = [secrets.token_urlsafe(_TOKEN_BYTES) for _ in range(n)]
        await self.write_queue.run(self.store.add_tokens, [_hash(token) for token in tokens])
        return tokens

    async def enrol(
        self, tokens: Sequence[str], publics: Sequence[bytes], agreement: Agreement
    ) -> list[NewDevice]:
        """Use tokens up, one device each, and agree on a key with each; all of them or none."""
        if not 1 <= len(tokens) <= MOST_AT_ONCE or len(set(tokens)) != len(tokens):
            raise UnknownToken(
                f"1 to {MOST_AT_ONCE:,} different enrolment tokens enrol as many devices; nobody "
                "was enrolled"
            )
        hashes = [_hash(token) for token in tokens]
        if await self.write_queue.run(self.store.n_tokens, hashes) < len(hashes):
            raise UnknownToken(
                "an enrolment token is unknown or used; strangers get no arithmetic done"
            )
        fresh = await asyncio.to_thread(self._agree, publics, agreement)
        keys = await self.write_queue.run(self.store.enrol, hashes, fresh)
        for key, (device, secret) in zip(keys, fresh, strict=True):
            self.add(DeviceRow(key, device, secret))
        self.counters.devices_enrolled += len(fresh)
        return [NewDevice(device, secret) for device, secret in fresh]

    def _agree(self, publics: Sequence[bytes], agreement: Agreement) -> list[tuple[bytes, bytes]]:
        """Return an id and the agreed key for each public key."""
        ids = [os.urandom(DEVICE_BYTES) for _ in publics]
        return [
            (device, agreement.key_for(public, manifest=self.campaign, device=device))
            for device, public in zip(ids, publics, strict=True)
        ]

    async def leave(self, device: bytes, tag: bytes) -> bytes | None:
        """Forget a device that asks for it with its own tag, and return the tag that confirms it.

        None if the tag is wrong.
        """
        row = self._rows.get(device)
        secret = bytes(_SECRET_BYTES) if row is None else row.secret  # the same work either way
        right, left = (tag_of(secret, signed_part(kind, device)) for kind in ("leave", "left"))
        if not hmac.compare_digest(right, tag) or row is None:
            return None
        return left if await self.revoke(device) else None

    async def revoke(self, device: bytes) -> bool:
        """Forget a device; what it has sent still counts. False if there is none of that id."""
        if device not in self._rows:
            return False
        found = bool(await self.write_queue.run(self.store.remove_device, device))
        if self._rows.pop(device, None) is not None:
            self.admission.remove_device(device)
            self.counters.devices_removed += 1
        return found


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


@dataclass(frozen=True, slots=True)
class RoundHeartbeats:
    """The heartbeats of one round."""

    keys: npt.NDArray[np.int64]  # [n], ascending
    kinds: npt.NDArray[np.uint8]  # [n], ENTERING, MOVING or QUITTING

    @classmethod
    def nothing(cls) -> RoundHeartbeats:
        """Return the heartbeats of a round without any."""
        return cls(np.empty(0, np.int64), np.empty(0, np.uint8))

    @property
    def n_here(self) -> int:
        """How many share now."""
        return int(np.count_nonzero(self.kinds != QUITTING))

    @property
    def n_quitting(self) -> int:
        """How many have just stopped."""
        return self.kinds.size - self.n_here


@dataclass(slots=True)
class Presence:
    """Since when each device has been sharing.

    >>> presence = Presence()
    >>> presence.follow(3, RoundHeartbeats(np.array([0, 2]), np.array([0, 1], np.uint8)))
    >>> quitting = RoundHeartbeats(np.array([0]), np.array([2], np.uint8))
    >>> presence.flags(5, quitting).ages_of_quitters.tolist()
    [2]
    """

    entered: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def flags(self, t: int, heard: RoundHeartbeats) -> Flags:
        """Return how many start, and how long those who stop were there.

        A device whose first heartbeats were lost counts as there from the first that was heard;
        one that was never heard before it stopped was there for one timestamp at least.
        """
        quitting = heard.keys[heard.kinds == QUITTING]
        self._make_room(quitting)
        since = self.entered[quitting]
        ages = np.where(since == _NOT_HERE, 1, np.maximum(t - since, 1))
        n_entering = int(np.count_nonzero(heard.kinds == ENTERING))
        return Flags(n_entering=n_entering, ages_of_quitters=ages)

    def changes(self, heard: RoundHeartbeats) -> RoundHeartbeats:
        """Return only the heartbeats that change who is known to be here."""
        self._make_room(heard.keys)
        unknown = self.entered[heard.keys] == _NOT_HERE
        told = unknown | (heard.kinds == ENTERING) | (heard.kinds == QUITTING)
        return RoundHeartbeats(heard.keys[told], heard.kinds[told])

    def follow(self, t: int, heard: RoundHeartbeats) -> None:
        """Update from the heartbeats of a round, or from its changes alone."""
        self._make_room(heard.keys)
        begins = (heard.kinds == ENTERING) | (self.entered[heard.keys] == _NOT_HERE)
        self.entered[heard.keys[begins]] = t
        self.entered[heard.keys[heard.kinds == QUITTING]] = _NOT_HERE

    def _make_room(self, keys: npt.NDArray[np.int64]) -> None:
        self.entered = grown(self.entered, int(keys.max(initial=-1)) + 1, _NOT_HERE)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything as plain arrays."""
        return {"presence_entered": self.entered}

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Load everything from plain arrays."""
        self.entered = arrays["presence_entered"].copy()
