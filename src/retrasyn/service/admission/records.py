"""What is written of accepted frames: columns of keys, tags and bits behind a short head.

A record names a device by its number alone, so it outlives the device's row and tells nobody whose
it was. Where the header said nothing that the round does not, nothing of it is kept.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.errors import StoreError
from retrasyn.wire.layout import TAG_BYTES

_HEAD = struct.Struct("<BxHI")
_KEY_BYTES = 4
_MARK_BYTES = _KEY_BYTES + TAG_BYTES


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Frames with one code that were accepted together."""

    code: int
    keys: npt.NDArray[np.int64]  # [n]
    tags: npt.NDArray[np.uint8] = field(repr=False)  # [n, 16]
    bits: npt.NDArray[np.uint8] = field(repr=False)  # [n, bytes]; no bytes for heartbeats


def write_chunk(chunk: Chunk) -> bytes:
    """Write a chunk as bytes."""
    n, size = chunk.bits.shape
    head = _HEAD.pack(chunk.code, size, n)
    keys = chunk.keys.astype("<u4").tobytes()
    return b"".join((head, keys, chunk.tags.tobytes(), chunk.bits.tobytes()))


def read_chunks(blob: bytes) -> Iterator[Chunk]:
    """Read the chunks of a blob, which may be several written one behind the other.

    >>> chunk = Chunk(0, np.array([7]), np.zeros((1, 16), np.uint8), np.ones((1, 2), np.uint8))
    >>> [(c.code, c.keys.tolist()) for c in read_chunks(write_chunk(chunk) * 2)]
    [(0, [7]), (0, [7])]
    """
    place = 0
    while place < len(blob):
        if len(blob) - place < _HEAD.size:
            raise _damaged()
        code, size, n = _HEAD.unpack_from(blob, place)
        place += _HEAD.size
        if len(blob) - place < n * (_MARK_BYTES + size):
            raise _damaged()
        columns = []
        for width in (_KEY_BYTES, TAG_BYTES, size):
            column = np.frombuffer(blob, np.uint8, n * width, place)
            columns.append(column.reshape(n, width))
            place += n * width
        yield Chunk(code, _keys(columns[0]), columns[1], columns[2])


def write_marks(chunks: Iterable[Chunk]) -> bytes:
    """Write who reported, by ascending key, and the tags: what is kept after the bits are gone."""
    chunks = list(chunks)
    if not chunks:
        return b""
    keys = np.concatenate([chunk.keys for chunk in chunks])
    tags = np.concatenate([chunk.tags for chunk in chunks])
    order = np.argsort(keys)
    return keys[order].astype("<u4").tobytes() + tags[order].tobytes()


def keys_of_marks(marks: bytes) -> npt.NDArray[np.int64]:
    """Return who reported."""
    n, rest = divmod(len(marks), _MARK_BYTES)
    if rest:
        raise _damaged()
    return _keys(np.frombuffer(marks, np.uint8, n * _KEY_BYTES).reshape(n, _KEY_BYTES))


def _keys(column: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    return np.frombuffer(column.tobytes(), "<u4").astype(np.int64)


def _damaged() -> StoreError:
    return StoreError("a record of reports in the database is damaged; restore a back-up")
