"""What a store keeps, and the promise of every call: what it wrote is durable when it returns.

A store is called from one thread at a time. Whatever goes wrong is a `StoreError`; whether the
call was carried out is then unknown, and asking again is safe. From `enter` on, a store in which
others have put back, swapped or deleted what it wrote takes no more writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

KEY = np.dtype("<u4")
"""How the key of a device is recorded."""
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """An enrolled device. All other records name it by its key, a number never used again."""

    key: int
    device: bytes = field(repr=False)  # id, 16 bytes
    secret: bytes = field(repr=False)  # the device's own key


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRow:
    """A round as it was opened."""

    t: int
    epsilon: int  # micro-nats of each report
    portion: int  # 0..2^64; 0: nobody is to report
    ends: int  # Unix seconds, close + grace: from then on nothing counts
    envelope: bytes  # the signed round
    drawn: bytes | None = field(default=None, repr=False)  # keys asked, u32; None: anybody


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedRow:
    """What remains of a round once its single reports are deleted."""

    t: int
    body: bytes = field(repr=False)
    digest: bytes  # SHA-256 of the sums


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """What the poisoning tests of later rounds need of the last ones; it may be replaced."""

    t: int  # first timestamp of the rounds it is about
    body: bytes = field(repr=False)
    oldest: int  # what is about rounds before this one is deleted


def keys_in(drawn: bytes | None) -> npt.NDArray[np.int64]:
    """Return the recorded keys of the devices that were drawn for a round."""
    return np.frombuffer(drawn or b"", KEY).astype(np.int64)


class CampaignStore(Protocol):
    """Devices and tokens, small values, and the rounds of one campaign at a time."""

    def close(self) -> None:
        """Close the file or the connection."""
        ...  # pragma: no cover - a protocol has no body

    def probe(self, size: int = 0) -> None:
        """Write so many bytes durably, to check that this works, and delete them."""
        ...  # pragma: no cover - a protocol has no body

    def campaigns(self) -> Sequence[bytes]:
        """Return the ids of all campaigns that were ever entered."""
        ...  # pragma: no cover - a protocol has no body

    def enter(self, campaign: bytes) -> None:
        """Use the rounds of this campaign from now on; raw frames of any other are deleted."""
        ...  # pragma: no cover - a protocol has no body

    def get(self, name: str) -> bytes | None:
        """Return a named value; None if it was never put."""
        ...  # pragma: no cover - a protocol has no body

    def put(self, name: str, value: bytes) -> None:
        """Store a named value in place of the one before."""
        ...  # pragma: no cover - a protocol has no body

    def devices(self) -> Iterator[DeviceRow]:
        """Return all enrolled devices by ascending key."""
        ...  # pragma: no cover - a protocol has no body

    def n_ever_enrolled(self) -> int:
        """Return how many devices ever enrolled, which is the next one's key."""
        ...  # pragma: no cover - a protocol has no body

    def add_tokens(self, hashes: Iterable[bytes]) -> None:
        """Keep the SHA-256 of tokens that were made."""
        ...  # pragma: no cover - a protocol has no body

    def n_tokens(self, hashes: Sequence[bytes]) -> int:
        """Return how many of these tokens are known and not used up."""
        ...  # pragma: no cover - a protocol has no body

    def enrol(
        self, hashes: Sequence[bytes], devices: Sequence[tuple[bytes, bytes]]
    ) -> Sequence[int]:
        """Use up one token for each (id, secret) and return their keys.

        All or none: one token that is unknown or used is an `UnknownToken` for all.
        """
        ...  # pragma: no cover - a protocol has no body

    def remove_device(self, device: bytes) -> bool:
        """Delete a device's row; tell whether there was one."""
        ...  # pragma: no cover - a protocol has no body

    def add_round(self, row: RoundRow) -> None:
        """Keep a round that opens; the same one again changes nothing."""
        ...  # pragma: no cover - a protocol has no body

    def rounds(self, first: int = 0) -> Sequence[RoundRow]:
        """Return the rounds from a timestamp on, ascending."""
        ...  # pragma: no cover - a protocol has no body

    def append(self, blobs: Sequence[tuple[int, bytes]]) -> None:
        """Keep what was accepted, as (t, blob), in one transaction."""
        ...  # pragma: no cover - a protocol has no body

    def frames(self, t: int) -> Sequence[bytes]:
        """Return the blobs of a round in the order they came."""
        ...  # pragma: no cover - a protocol has no body

    def unfolded(self) -> Sequence[int]:
        """Return the timestamps of rounds that were opened and not folded, ascending."""
        ...  # pragma: no cover - a protocol has no body

    def fold(
        self,
        row: FoldedRow,
        *,
        marks: bytes,
        forget_before: int,
        evidence: EvidenceRow | None = None,
    ) -> None:
        """Keep what is left of a round, and delete its frames, old marks and evidence, all at once.

        The same row again changes nothing; another one for the same timestamp is refused.
        """
        ...  # pragma: no cover - a protocol has no body

    def folded(self, first: int = 0) -> Iterator[FoldedRow]:
        """Return the folded rounds from a timestamp on, ascending."""
        ...  # pragma: no cover - a protocol has no body

    def marks(self, first: int = 0) -> Iterator[tuple[int, bytes]]:
        """Return (t, marks) of the folded rounds from a timestamp on, ascending."""
        ...  # pragma: no cover - a protocol has no body

    def evidence(self) -> Iterator[tuple[int, bytes]]:
        """Return (t, body) of all evidence, ascending."""
        ...  # pragma: no cover - a protocol has no body


class Connection(Protocol):
    """One connection. Every fault is a `StoreError`; after one, the next call connects anew."""

    @property
    def place(self) -> str:
        """Its name in messages, without a password."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def bytes_type(self) -> str:
        """The name of the column type for bytes."""
        ...  # pragma: no cover - a protocol has no body

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement, with ? for each value; on its own it is one transaction."""
        ...  # pragma: no cover - a protocol has no body

    def transaction(self) -> AbstractContextManager[None]:
        """Run the block as one transaction, durable at the end."""
        ...  # pragma: no cover - a protocol has no body

    def tidy(self, table: str) -> None:
        """Remove what was deleted from a table from the disk."""
        ...  # pragma: no cover - a protocol has no body

    def close(self) -> None:
        """Close the file or the connection."""
        ...  # pragma: no cover - a protocol has no body
