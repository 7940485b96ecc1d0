"""Frames and tallies of a source, with caches of what was needed lately."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from retrasyn.service.viewing.frames import encode_frame
from retrasyn.service.viewing.source import ReleaseSource
from retrasyn.service.viewing.tallies import Average, Flows, Placed, TimestampTally, count_flows

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


def _n_bytes(copies: list[Placed]) -> int:
    return sum(placed.n_bytes for placed in copies)


@dataclass(frozen=True, slots=True)
class CachedSource:
    """Frames and tallies of a source, read from several threads at once.

    A map that plays asks for one timestamp after the other, and the flows of each need the points
    of two: with the latest points at hand every file is read once.
    """

    source: ReleaseSource
    _placed: LruCache[Placed] = field(
        default_factory=lambda: LruCache(16 * _MIB, lambda p: p.n_bytes)
    )
    _copies: LruCache[list[Placed]] = field(default_factory=lambda: LruCache(64 * _MIB, _n_bytes))
    _flows: LruCache[Flows] = field(default_factory=lambda: LruCache(64 * _MIB, lambda f: f.nbytes))
    _tallies: LruCache[TimestampTally] = field(
        default_factory=lambda: LruCache(64 * _MIB, lambda tally: tally.n_bytes)
    )
    _frames: LruCache[bytes] = field(default_factory=lambda: LruCache(32 * _MIB, len))

    def frame(self, t: int, most: int, window: Sequence[int] = ()) -> bytes | None:
        """Return the frame of a timestamp; None if it does not exist.

        Numbers are averages over the window, which ends with t; the timestamp's own without one.
        """
        over = tuple(window) or (t,)
        return self._frames.get((t, most, over), lambda: self._encode(t, most, over))

    def tally(self, t: int) -> TimestampTally | None:
        """Return what is counted at a timestamp; None if it does not exist."""
        return self._tallies.get(t, lambda: self._tally(t))

    def flows(self, t: int) -> Flows | None:
        """Return the moves from t - 1 to t, of the release and of each replica.

        [1 + B, n_cells, 9]; None if one of the timestamps does not exist.
        """
        return self._flows.get(t, lambda: self._count(t))

    def placed(self, t: int) -> Placed | None:
        """Return the points of a timestamp with their cells; None if it does not exist."""
        return self._placed.get(t, lambda: self._place(t))

    def copies(self, t: int) -> list[Placed]:
        """Return the points of the release, then of each replica; none if it does not exist."""
        return self._copies.get(t, lambda: self._place_all(t)) or []

    def _encode(self, t: int, most: int, over: Sequence[int]) -> bytes | None:
        summary, placed = self.source.summary(t), self.placed(t)
        tallies = [tally for then in over if (tally := self.tally(then)) is not None]
        if summary is None or placed is None or not tallies:
            return None
        return encode_frame(summary, placed, Average.of(tallies), self.source.grid, most=most)

    def _tally(self, t: int) -> TimestampTally | None:
        summary, now = self.source.summary(t), self.copies(t)
        if summary is None or not now:
            return None
        return TimestampTally.of(summary, now, self.copies(t - 1), self.flows(t))

    def _count(self, t: int) -> Flows | None:
        pairs = [*zip(self.copies(t - 1), self.copies(t), strict=False)]
        side = self.source.grid.side
        return np.array([count_flows(*pair, side) for pair in pairs]) if pairs else None

    def _place(self, t: int) -> Placed | None:
        points = self.source.points_at(t) if self.source.has(t) else None
        return None if points is None else Placed.on(self.source.grid, points)

    def _place_all(self, t: int) -> list[Placed] | None:
        placed, grid = self.placed(t), self.source.grid
        if placed is None:
            return None
        return [placed, *(Placed.on(grid, points) for points in self.source.replicas_at(t))]
