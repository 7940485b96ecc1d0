"""Points as files of any length, made piece by piece: nothing but the next piece is in memory."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from retrasyn.data.trajectories import Trajectories
from retrasyn.data.writing_files import block_writer
from retrasyn.service.viewing.source import TimestampPoints
from retrasyn.service.viewing.view import CachedSource

FileFormat = Literal["parquet", "geojson", "csv"]
_ROWS: dict[FileFormat, int] = {"parquet": 1 << 14, "geojson": 1 << 11, "csv": 1 << 12}
"""Points of a piece, which is a quarter to half a MiB then; in Parquet it is a row group."""


def point_pieces(
    view: CachedSource, timestamps: Iterable[int], kind: FileFormat
) -> Iterator[bytes]:
    """Yield the bytes of a file with the points of these timestamps, by (t, traj_id)."""
    sink, known = _Sink(), view.source.metadata()
    nobody: npt.NDArray[np.int64] = np.empty(0, np.int64)
    empty = _block([(0, TimestampPoints(nobody, np.empty(0), np.empty(0)))], known)
    with block_writer(empty, f"points.{kind}", sink) as write_block:
        for parts in _filled(view, timestamps, _ROWS[kind]):
            write_block(_block(parts, known))
            yield sink.taken()
    yield sink.taken()


def _filled(
    view: CachedSource, timestamps: Iterable[int], n_rows: int
) -> Iterator[list[tuple[int, TimestampPoints]]]:
    """Yield points of one timestamp after the other, n_rows together."""
    parts: list[tuple[int, TimestampPoints]] = []
    room = n_rows
    for t in timestamps:
        place = 0
        while (part := _rows(view, t, place, room)).ids.size:
            parts.append((t, part))
            place += part.ids.size
            room -= part.ids.size
            if not room:
                yield parts
                parts, room = [], n_rows
    if parts:
        yield parts


def _rows(view: CachedSource, t: int, place: int, n: int) -> TimestampPoints:
    """Return copies of some points of a timestamp, so that the others can be forgotten."""
    placed = view.placed(t)
    if placed is None:  # deleted meanwhile
        return TimestampPoints(np.empty(0, np.int64), np.empty(0), np.empty(0))
    rows, points = slice(place, place + n), placed.points
    return TimestampPoints(points.ids[rows].copy(), points.x[rows].copy(), points.y[rows].copy())


def _block(parts: list[tuple[int, TimestampPoints]], known: Any) -> Trajectories:
    """Return points as streams of one point each."""
    sizes = [part.ids.size for _, part in parts]
    return Trajectories(
        stream_ids=np.concatenate([part.ids for _, part in parts]),
        begins=np.repeat(np.array([t for t, _ in parts], np.int64), sizes),
        starts=np.arange(sum(sizes) + 1),
        x=np.concatenate([part.x for _, part in parts]),
        y=np.concatenate([part.y for _, part in parts]),
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

    def taken(self) -> bytes:
        """Return what was written since the last time."""
        found, self._parts = b"".join(self._parts), []
        return found
