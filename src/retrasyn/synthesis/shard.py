"""A shard holds some of the synthetic streams and answers aggregate queries about them.

How many of its streams survive, which keys lie in an interval, how many are in each cell: such
answers can be summed or merged, so the result does not depend on how streams are distributed.
Streams are assigned to shards by the class of their id, its remainder by `kernels.N_CLASSES`, so
that a class lies in one shard whole. Every draw is addressed by (seed, t, purpose, id).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from retrasyn.arrays import grown
from retrasyn.engines.base import total
from retrasyn.randomness.words import address
from retrasyn.synthesis import kernels

if TYPE_CHECKING:
    from retrasyn.arrays import Arrays
    from retrasyn.roads.next_hops import NextHops
    from retrasyn.space import Grid
    from retrasyn.synthesis.points import PointLaw

Columns = dict[str, npt.NDArray[Any]]
MIN_SLICE = 1 << 17
"""Number of streams below which another thread costs more than it gains."""
_PLACED, _FOLLOWED = ("ids", "cells", "entered"), ("x", "y")
_DRIVING = ("arc", "offset", "anchor", "own")
_Part = TypeVar("_Part")


@dataclass(slots=True)
class Streams:
    """The current streams in ascending order of id; only the first `n` entries are in use."""

    ids: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    cells: npt.NDArray[np.uint16] = field(default_factory=lambda: np.empty(0, np.uint16))
    entered: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    n: int = 0
    x: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  # in cell widths;
    y: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  # empty: not followed
    arc: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    offset: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  # time on the arc
    anchor: npt.NDArray[np.uint16] = field(default_factory=lambda: np.empty(0, np.uint16))
    own: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  # speed, of a typical

    def reserve(self, n: int) -> None:
        """Reserve space for n streams in total."""
        self.ids = grown(self.ids, n, 0)
        self.cells = grown(self.cells, n, 0)
        self.entered = grown(self.entered, n, 0)

    def follow_points(self) -> None:
        """Reserve space for one point per stream, so that paths can be continuous."""
        self.x = grown(self.x, self.ids.size, np.nan)
        self.y = grown(self.y, self.ids.size, np.nan)

    def follow_roads(self) -> None:
        """Reserve space for one trip per stream: its arc, place on it, goal and own speed."""
        self.arc = grown(self.arc, self.ids.size, 0)
        self.offset = grown(self.offset, self.ids.size, 0.0)
        self.anchor = grown(self.anchor, self.ids.size, 0)
        self.own = grown(self.own, self.ids.size, 1.0)

    def living(
        self,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16], npt.NDArray[np.int32]]:
        """Return views of ids, cells and entering timestamps of the current streams."""
        return self.ids[: self.n], self.cells[: self.n], self.entered[: self.n]

    def columns(self) -> Columns:
        """Return views of all columns of the current streams."""
        names = _PLACED + (_FOLLOWED if self.x.size else ()) + (_DRIVING if self.arc.size else ())
        return {name: getattr(self, name)[: self.n] for name in names}

    @classmethod
    def of(cls, columns: Columns) -> Streams:
        """Return streams with these columns."""
        return cls(**columns, n=columns["ids"].size)


def part_of(columns: Columns, index: int, n_parts: int) -> Columns:
    """Return copies of the rows that belong to one of n parts; streams are assigned by class."""
    own = columns["ids"] % kernels.N_CLASSES % n_parts == index
    return {name: column[own] for name, column in columns.items()}


def merged(parts: list[Columns]) -> Columns:
    """Merge the rows of all parts by ascending id.

    >>> merged([{"ids": np.array([0, 2])}, {"ids": np.array([1])}])["ids"].tolist()
    [0, 1, 2]
    """
    parts = [part for part in parts if part["ids"].size] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(whole["ids"], kind="stable")  # merges ascending runs
    return {name: column[order] for name, column in whole.items()}


class PointSink(Protocol):
    """Stores the points released by one shard."""

    def write(self, t: int, points: Columns) -> None:
        """Store the points of one timestamp: ids, cells, x, y."""
        ...  # pragma: no cover - a protocol has no body

    def flush(self) -> None:
        """Write all buffered points."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def empty(self) -> bool:
        """Whether nothing is buffered."""
        ...  # pragma: no cover - a protocol has no body


MakeSink = Callable[[int, int], PointSink]
"""Creates the sink of shard i of n."""


@dataclass(frozen=True, slots=True)
class StepInputs:
    """The inputs of one timestamp, and what its draws are addressed by."""

    grid: Grid
    seed: int
    t: int
    n_streams: int  # before this timestamp
    steers: bool = False

    def key(self, purpose: str) -> int:
        """Return the key for all draws of one purpose."""
        return address(self.seed, self.t, purpose)


@dataclass(slots=True)
class ShardBase:
    """Shard `index` of `n_shards`: it holds the streams whose class modulo n_shards is `index`."""

    index: int
    n_shards: int
    grid: Grid
    continuous: bool = False
    n_threads: int | None = None
    sink: PointSink | None = None
    roads: NextHops | None = None  # on which streams drive
    streams: Streams = field(default_factory=Streams)
    _midway: bool = False  # whether a timestamp is in progress
    _marks: npt.NDArray[np.uint16] = field(default_factory=lambda: np.empty(0, np.uint16))
    _kept: npt.NDArray[np.uint16] = field(default_factory=lambda: np.empty(0, np.uint16))
    _places: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _keys: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    _groups: npt.NDArray[np.uint16] = field(default_factory=lambda: np.empty(0, np.uint16))
    _before: tuple[npt.NDArray[np.float64], ...] = ()  # points of the last timestamp
    _counts: list[tuple[int, npt.NDArray[np.int64]]] = field(default_factory=list)  # of slices

    def give_birth(
        self,
        t: int,
        key: int,
        first_id: int,
        n_born: int,
        table: npt.NDArray[np.uint64],
        law: PointLaw | None,
    ) -> None:
        """Create this shard's part of n_born new streams, with points if paths are continuous."""
        streams, first = self.streams, self.streams.n
        ids = self._own_ids(first_id, first_id + n_born)
        streams.reserve(first + ids.size)
        streams.n = first + ids.size
        new = slice(first, streams.n)
        streams.ids[new] = ids
        streams.entered[new] = t
        if self.continuous and law is not None:
            streams.follow_points()
        cells, x, y = streams.cells[new], streams.x[new], streams.y[new]

        def work(part: slice) -> None:
            kernels.draw_births(ids[part], cells[part], np.uint64(key), table)
            if self.continuous and law is not None:
                law.place(ids[part], cells[part], x[part], y[part])

        over_slices(work, ids.size, self.n_threads)

    def _own_ids(self, first: int, end: int) -> npt.NDArray[np.int64]:
        """Return the ids from first to below end that are assigned to this shard."""
        begin = first - first % kernels.N_CLASSES
        classes = np.arange(self.index, kernels.N_CLASSES, self.n_shards)
        ids = (np.arange(begin, end, kernels.N_CLASSES)[:, None] + classes).ravel()
        return ids[(ids >= first) & (ids < end)]

    def end_found(self, last_key: float, last_id: int) -> None:
        """End the streams that were found for a surplus, up to the last one, by (key, id)."""
        ids = self.streams.ids[self._places]
        ended = (self._keys < last_key) | ((self._keys == last_key) & (ids <= last_id))
        self._kept[self._places[ended]] = kernels.ENDED

    def count_cells(self) -> npt.NDArray[np.int64]:
        """Return the number of streams per cell: [n_cells]."""
        _, cells, _ = self.streams.living()
        counts = self._over_slices(lambda part: kernels.count_cells(cells[part], self.grid.n_cells))
        return total(counts)

    def release(self, t: int, key: int) -> Columns:
        """Return ids, cells and points; nothing if this shard has a sink, which stores them."""
        ids, cells, _ = self.streams.living()
        x, y = self.points(key)
        self._midway = False
        if self.sink is None:
            return {"ids": self._copied(ids), "cells": self._copied(cells), "x": x, "y": y}
        self.sink.write(t, {"ids": ids, "cells": cells, "x": x, "y": y})
        return {"ids": ids[:0], "cells": cells[:0], "x": x[:0], "y": y[:0]}

    def flush(self) -> None:
        """Flush the sink, if there is one."""
        if self.sink is not None:
            self.sink.flush()

    def take(self, columns: Columns) -> None:
        """Replace the streams by this shard's part of the given ones."""
        self.streams = Streams.of(part_of(columns, self.index, self.n_shards))

    @property
    def whole(self) -> bool:
        """Whether the streams are the complete state to save."""
        return not self._midway and (self.sink is None or self.sink.empty)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all streams as plain arrays."""
        return self.streams.columns()

    def load_arrays(self, arrays: Arrays) -> None:
        """Replace the streams by those in plain arrays."""
        self.streams = Streams.of({name: array.copy() for name, array in arrays.items()})

    def points(self, key: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the point of every stream: from its path, or drawn uniformly in its cell."""
        grid, n = self.grid, self.streams.n
        x, y = np.empty(n), np.empty(n)
        if self.continuous:
            own_x, own_y = self.streams.x[:n], self.streams.y[:n]
            corner, size = grid.box[:2], (grid.cell_width, grid.cell_height)
            self._over_slices(
                lambda part: kernels.scale_points(
                    own_x[part], own_y[part], corner, *size, x[part], y[part]
                )
            )
            return x, y
        ids, cells, _ = self.streams.living()
        self._over_slices(
            lambda part: kernels.draw_points(
                ids[part],
                cells[part],
                np.uint64(key),
                grid.corners,
                grid.cell_width,
                grid.cell_height,
                x[part],
                y[part],
            )
        )
        return x, y

    def _fresh_marks(self) -> npt.NDArray[np.uint16]:
        """Return an array for the next cell of every stream, or the mark of its end."""
        self._marks = grown(self._marks, self.streams.n, 0)
        self._kept, self._midway = self._marks[: self.streams.n], True
        return self._kept

    def _remove_ended(self) -> None:
        """Remove the streams that are marked as ended; all others have the cell of their mark.

        Every slice moves up by as many places as ended before it. The last streams of the slice
        before, which that overwrites, are read from a copy.
        """
        streams, kept = self.streams, self._kept
        columns = streams.columns() | {"cells": kept}
        counted = self._over_slices(lambda part: (part, kernels.count_ended(kept[part])))
        parts = [part for part, _ in counted]
        gone = np.cumsum([0, *(n for _, n in counted)]).tolist()  # before every slice
        if any(part.start > part.stop - after for part, after in zip(parts, gone[1:], strict=True)):
            parts, gone = [slice(0, streams.n)], [0, gone[-1]]
        sources = {}
        for part, before, after in zip(parts, gone[:-1], gone[1:], strict=True):
            edge = part.stop if part is parts[-1] else part.stop - after
            tail = {name: column[edge : part.stop].copy() for name, column in columns.items()}
            sources[part.start] = part.start - before, part.stop - after, edge, tail

        def work(part: slice) -> None:
            begin, end, edge, tail = sources[part.start]
            main, rest = slice(part.start, edge), slice(edge, edge + tail["cells"].size)
            for name, column in columns.items():
                out = getattr(streams, name)
                place = kernels.keep(column[main], kept[main], begin, end, out)
                kernels.keep(tail[name], kept[rest], place, end, out)

        if len(parts) == 1:
            work(parts[0])
        else:
            self._over_slices(work)
        streams.n -= gone[-1]

    def _copied(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a copy of a column."""
        copied = np.empty_like(column)
        self._over_slices(lambda part: np.copyto(copied[part], column[part]))
        return copied

    def _over_slices(self, work: Callable[[slice], _Part]) -> list[_Part]:
        return over_slices(work, self.streams.n, self.n_threads)


@lru_cache(maxsize=4)
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="retrasyn")


def slices(n: int, n_threads: int) -> list[slice]:
    """Split n streams into at most n_threads slices of similar size.

    >>> slices(10, 4)
    [slice(0, 10, None)]
    """
    n_slices = max(1, min(n_threads, n // MIN_SLICE))
    edges = [n * k // n_slices for k in range(n_slices + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


def over_slices(
    work: Callable[[slice], _Part], n: int, n_threads: int | None = None
) -> list[_Part]:
    """Run `work` on every slice and return the results in order."""
    if n < 2 * MIN_SLICE:
        return [work(slice(0, n))]
    threads = kernels.n_threads() if n_threads is None else n_threads
    parts = slices(n, threads)
    if len(parts) == 1:
        return [work(parts[0])]
    return list(_pool(threads).map(work, parts))
