"""Points as files of any length, made piece by piece: nothing but the next piece is in memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import numpy as np

from retrasyn.data.metadata import Metadata
from retrasyn.data.trajectories import Trajectories
from retrasyn.data.writing_files import block_writer
from retrasyn.service.viewing.source import TimestampPoints
from retrasyn.service.viewing.view import CachedSource

FileFormat = Literal["parquet", "geojson", "csv"]
_ROWS: dict[FileFormat, int] = {"parquet": 1 << 14, "geojson": 1 << 11, "csv": 1 << 12}
"""Points of a piece, which has some 300 KiB then. In Parquet it is a row group, of which the writer
remembers some 3.5 KB until the end: 2 MB for ten million points."""
Part = tuple[int, TimestampPoints]


def point_pieces(
    view: CachedSource, timestamps: Iterable[int], kind: FileFormat
) -> Iterator[bytes]:
    """Yield the bytes of a file with the points of these timestamps, by (t, traj_id)."""
    sink, reader, known = _Sink(), _Reader(view, timestamps), view.source.metadata()
    with block_writer(_block([], known), f"points.{kind}", sink) as write_block:
        # Nothing but the bytes has a name here: whatever has one is kept while the reader reads.
        while reader.give(_ROWS[kind], lambda parts: write_block(_block(parts, known))):
            if sink.is_full:  # an empty piece would be the end
                yield sink.taken()
    yield sink.taken()


class _Reader:
    """Gives the points of one timestamp after the other, so many at a time."""

    def __init__(self, view: CachedSource, timestamps: Iterable[int]) -> None:
        self._view, self._timestamps = view, iter(timestamps)
        self._t = next(self._timestamps, None)
        self._place = 0

    def give(self, n_rows: int, take: Callable[[list[Part]], None]) -> bool:
        """Hand over the next points, fewer at the end; False if there are none."""
        parts: list[Part] = []
        while n_rows and self._t is not None:
            part = _rows(self._view, self._t, self._place, n_rows)
            if part.ids.size:
                parts.append((self._t, part))
                self._place += part.ids.size
                n_rows -= part.ids.size
            else:
                self._t, self._place = next(self._timestamps, None), 0
        if parts:
            take(parts)
        return bool(parts)


def _rows(view: CachedSource, t: int, place: int, n: int) -> TimestampPoints:
    """Return copies of some points of a timestamp, so that the others can be forgotten."""
    placed = view.placed(t)
    if placed is None:  # deleted meanwhile
        return TimestampPoints(np.empty(0, np.int64), np.empty(0), np.empty(0))
    rows, points = slice(place, place + n), placed.points
    return TimestampPoints(points.ids[rows].copy(), points.x[rows].copy(), points.y[rows].copy())


def _block(parts: list[Part], known: Metadata) -> Trajectories:
    """Return points as streams of one point each."""
    sizes = [part.ids.size for _, part in parts]
    nowhere = np.empty(0)
    return Trajectories(
        stream_ids=np.concatenate([np.empty(0, np.int64), *(part.ids for _, part in parts)]),
        begins=np.repeat(np.array([t for t, _ in parts], np.int64), sizes),
        starts=np.arange(sum(sizes) + 1),
        x=np.concatenate([nowhere, *(part.x for _, part in parts)]),
        y=np.concatenate([nowhere, *(part.y for _, part in parts)]),
        clock=known.clock,
        crs=known.crs,
    )


class _Sink(io.BytesIO):
    """A file whose bytes are taken away as they are written."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._place = 0

    def tell(self) -> int:
        return self._place

    def write(self, some: Any) -> int:
        self._parts.append(bytes(some))
        self._place += len(self._parts[-1])
        return len(self._parts[-1])

    @property
    def is_full(self) -> bool:
        """Whether anything was written since the last time."""
        return bool(self._parts)

    def taken(self) -> bytes:
        """Return what was written since the last time."""
        found, self._parts = b"".join(self._parts), []
        return found
