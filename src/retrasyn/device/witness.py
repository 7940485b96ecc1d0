"""A small file beside the store that remembers how far the store had come.

A store that is put back from a copy is behind its witness, so what it forgot is noticed. It is
written after the store and before anything is sent: a crash in between leaves it one step behind,
and one step only.
"""

import hashlib
import os
import struct
from dataclasses import dataclass
from pathlib import Path

_RECORD = struct.Struct("<16sQ8s")


@dataclass(frozen=True, slots=True)
class Witness:
    """Which store was written, and how many times."""

    store: bytes  # 16 random bytes, drawn when the store was made
    counter: int

    def vouches_for(self, store: bytes, counter: int) -> bool:
        """Tell whether a store is where it was left."""
        return self.store == store and self.counter in (counter, counter - 1)


def read_witness(path: Path) -> Witness | None:
    """Return what a witness file says; None if it is missing or damaged."""
    try:
        record = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(record) != _RECORD.size or _seal(record) != record[-8:]:
        return None
    store, counter, _ = _RECORD.unpack(record)
    return Witness(store, counter)


def write_witness(path: Path, witness: Witness) -> None:
    """Write a witness file in place, durably. A torn write reads as damage: quarantine, no leak."""
    record = _RECORD.pack(witness.store, witness.counter, bytes(8))
    record = record[:-8] + _seal(record)
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(file, record, 0)
        os.fsync(file)
    finally:
        os.close(file)


def _seal(record: bytes) -> bytes:
    return hashlib.sha256(record[:-8]).digest()[:8]
