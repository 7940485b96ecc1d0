"""Frames, counts and histories of a source, with caches of what was needed lately."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from retrasyn.metrics.divergence import jsd
from retrasyn.service.viewing.frames import (
    N_DIRECTIONS,
    STAYING,
    Flows,
    Placed,
    count_flows,
    encode_frame,
    neighbour,
)
from retrasyn.service.viewing.source import ReleaseSource
from retrasyn.space import Box

Value = TypeVar("Value")
_MIB = 1 << 20


@dataclass(slots=True)
class LruCache(Generic[Value]):
    """A cache limited by size; the value used longest ago is dropped first.

    >>> texts = LruCache[bytes](5, size=len)
    >>> [len(texts.get(n, lambda n=n: bytes(n))) for n in (2, 3, 2, 1)]
    [2, 3, 2, 1]
    >>> sorted(texts.keys())
    [1, 2]
    """

    most: int  # bytes
    size: Callable[[Value], int]
    _known: OrderedDict[Hashable, Value] = field(default_factory=OrderedDict)
    _used: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Hashable, make: Callable[[], Value | None]) -> Value | None:
        """Return the value of a key, made if need be; None is not cached.

        Two threads may make the same value at once: that costs time, while waiting would let one
        slow reader stop the others.
        """
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        made = make()
        if made is not None:
            self._keep(key, made)
        return made

    def keys(self) -> list[Hashable]:
        """Return the cached keys, the one used longest ago first."""
        with self._lock:
            return list(self._known)

    def _keep(self, key: Hashable, value: Value) -> None:
        size = self.size(value)
        with self._lock:
            if key in self._known or size > self.most:
                return
            self._known[key] = value
            self._used += size
            while self._used > self.most:
                _, dropped = self._known.popitem(last=False)
                self._used -= self.size(dropped)


@dataclass(frozen=True, slots=True)
class CachedSource:
    """Frames and flows of a source, read from several threads at once.

    A map that plays asks for one timestamp after the other, and the flows of each need the points
    of two: with the latest points at hand every file is read once.
    """

    source: ReleaseSource
    _placed: LruCache[Placed] = field(
        default_factory=lambda: LruCache(16 * _MIB, lambda p: p.n_bytes)
    )
    _flows: LruCache[Flows] = field(default_factory=lambda: LruCache(32 * _MIB, lambda f: f.nbytes))
    _frames: LruCache[bytes] = field(default_factory=lambda: LruCache(32 * _MIB, len))

    def frame(self, t: int, most: int) -> bytes | None:
        """Return the frame of a timestamp; None if it does not exist."""
        return self._frames.get((t, most), lambda: self._encode(t, most))

    def flows(self, t: int) -> Flows | None:
        """Return the moves from t - 1 to t; None if one of them does not exist."""
        return self._flows.get(t, lambda: self._count(t))

    def placed(self, t: int) -> Placed | None:
        """Return the points of a timestamp with their cells; None if it does not exist."""
        return self._placed.get(t, lambda: self._place(t))

    def _encode(self, t: int, most: int) -> bytes | None:
        summary, placed = self.source.summary(t), self.placed(t)
        if summary is None or placed is None:
            return None
        return encode_frame(summary, placed, self.flows(t), self.source.grid, most=most)

    def _count(self, t: int) -> Flows | None:
        before, after = self.placed(t - 1), self.placed(t)
        if before is None or after is None:
            return None
        return count_flows(before, after, self.source.grid.side)

    def _place(self, t: int) -> Placed | None:
        points = self.source.points_at(t)
        return None if points is None else Placed.on(self.source.grid, points)


def box_counts(
    source: ReleaseSource, box: Box, timestamps: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Count points in a box, edges included; return existing timestamps and their counts."""
    there, n = [], []
    for t in timestamps:
        places = source.places_at(t)
        if places is None:
            continue
        x, y = places
        inside = (x >= box.x0) & (x <= box.x1) & (y >= box.y0) & (y <= box.y1)  # [n_points]
        there.append(t)
        n.append(int(np.count_nonzero(inside)))
    return there, n


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCounts:
    """Points of a cell, and moves over its edges; None without the timestamp before."""

    cell: int
    t: list[int]
    n: list[int]
    inflow: list[int | None]  # from other cells
    outflow: list[int | None]  # to other cells
    destinations: list[tuple[int, int]]  # cell and moves, most first
    origins: list[tuple[int, int]]


def cell_history(view: CachedSource, cell: int, timestamps: Sequence[int]) -> CellCounts:
    """Return the history of a cell."""
    side = view.source.grid.side
    around = [d for d in range(N_DIRECTIONS) if d != STAYING]
    targets = {d: found for d in around if (found := neighbour(cell, d, side)) is not None}
    leaving = dict.fromkeys(targets.values(), 0)  # by the cell that is moved to
    coming = dict.fromkeys(targets.values(), 0)
    there, n, inflow, outflow = [], [], [], []
    for t in timestamps:
        summary = view.source.summary(t)
        if summary is None:
            continue
        there.append(t)
        n.append(int(summary["cells"][cell]))
        flows = view.flows(t)
        inflow.append(None if flows is None else _add(coming, _into(flows, targets)))
        outflow.append(None if flows is None else _add(leaving, _out_of(flows, cell, targets)))
    return CellCounts(
        cell=cell,
        t=there,
        n=n,
        inflow=inflow,
        outflow=outflow,
        destinations=_most_first(leaving),
        origins=_most_first(coming),
    )


def _out_of(flows: Flows, cell: int, targets: dict[int, int]) -> Iterable[tuple[int, int]]:
    """Yield the moves out of a cell."""
    return ((target, int(flows[cell, d])) for d, target in targets.items())


def _into(flows: Flows, targets: dict[int, int]) -> Iterable[tuple[int, int]]:
    """Yield the moves into a cell, from each of its neighbours.

    Directions opposite each other add up to 8.
    """
    last = N_DIRECTIONS - 1
    return ((origin, int(flows[origin, last - d])) for d, origin in targets.items())


def _add(sums: dict[int, int], moves: Iterable[tuple[int, int]]) -> int:
    """Add moves by cell to sums; return how many there are."""
    total = 0
    for cell, n in moves:
        sums[cell] += n
        total += n
    return total


def _most_first(sums: dict[int, int]) -> list[tuple[int, int]]:
    found = [(cell, n) for cell, n in sums.items() if n]
    return sorted(found, key=lambda one: (-one[1], one[0]))


def density_errors(
    real: ReleaseSource, synthetic: ReleaseSource, timestamps: Sequence[int]
) -> list[float | None]:
    """Return the divergence of points per cell at each timestamp; None where nobody is."""
    found = [jsd(_cells(real, t), _cells(synthetic, t)) for t in timestamps]
    return [None if math.isnan(error) else error for error in found]


def _cells(source: ReleaseSource, t: int) -> list[int]:
    """Return the points per cell; zeros for a timestamp that does not exist."""
    summary = source.summary(t)
    return [0] * source.grid.n_cells if summary is None else list(summary["cells"])
