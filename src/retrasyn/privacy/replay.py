"""An independent recount of every user's worst window, from the grants alone.

Nothing here reads a ledger. A `Replay` is told who reported when, how much was spent, and how far
back the answer reached, and keeps the exact sum of each key over every window. It is run twice:
in the declared unit and ledger key, and per person and position, whatever was declared.

Windows are numbered by their first timestamp s. A report at t that looks back over L timestamps
touches the windows s = t - span - L + 2, ..., t: it opens at the first of them and closes after
the last. The recount follows s at a distance such that no later report can touch a window before
it. The proof is in `docs/proofs/lookback.md`.
"""

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.arrays import Arrays, grown
from retrasyn.privacy.kernels import add_spend, remove_spend


@dataclass(frozen=True, slots=True, order=True)
class Spend:
    """Reports of one timestamp that are waiting to open or to close."""

    due: int  # window at which they open or, once open, close
    order: int
    t: int
    epsilon: int = field(compare=False)
    keys: npt.NDArray[np.int64] = field(compare=False)


@dataclass(slots=True)
class Replay:
    """Running sums over windows of `span` timestamps, and the highest ever seen, per key.

    >>> replay = Replay(span=3)
    >>> replay.observe(0, 5, np.array([1, 2]))
    >>> replay.observe(2, 5, np.array([2]))
    >>> replay.observe(3, 5, np.array([1]))
    >>> replay.peaks().tolist(), replay.worst
    ([0, 5, 10], 10)
    >>> replay.observe(9, 5, np.array([1]), lookback=5)
    >>> replay.peaks().tolist()
    [0, 10, 10]
    """

    span: int
    max_lookback: int = 64  # reports that look back further are refused
    total: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    highest: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    waiting: list[Spend] = field(default_factory=list)  # a heap, not yet opened
    opened: list[Spend] = field(default_factory=list)  # a heap, not yet closed
    n_reports: int = 0
    _orders: Iterator[int] = field(default_factory=itertools.count)

    def observe(self, t: int, epsilon: int, keys: npt.NDArray[np.int64], lookback: int = 1) -> None:
        """Count one report of `epsilon` micro-nats by each key at t; a key may occur twice."""
        if not 1 <= lookback <= self.max_lookback:
            raise ValueError(f"a lookback of {lookback} is outside 1..{self.max_lookback}")
        self._sweep(before=self._first_window(t, self.max_lookback))
        if keys.size == 0:
            return
        n_keys = int(keys.max()) + 1
        self.total = grown(self.total, n_keys, 0)
        self.highest = grown(self.highest, n_keys, 0)
        self.add(Spend(self._first_window(t, lookback), next(self._orders), t, epsilon, keys))
        self.n_reports += keys.size

    def add(self, spend: Spend) -> None:
        """Queue reports until their first window."""
        heapq.heappush(self.waiting, spend)

    @property
    def worst(self) -> int:
        """The most any key spent in any window, in micro-nats."""
        return int(self.peaks().max(initial=0))

    def _first_window(self, t: int, lookback: int) -> int:
        """Return the first window a report at t touches."""
        return t - self.span - lookback + 2

    def peaks(self) -> npt.NDArray[np.int64]:
        """Return the most each key spent in any window, waiting reports included: [n_keys]."""
        ahead = Replay(
            self.span,
            self.max_lookback,
            self.total.copy(),
            self.highest.copy(),
            list(self.waiting),
            list(self.opened),
        )
        ahead._sweep(before=None)
        return ahead.highest

    def to_arrays(self, name: str) -> dict[str, npt.NDArray[np.int64]]:
        """Return the state as plain arrays whose names start with `name`."""
        spends = [*self.waiting, *self.opened]
        recent = [
            (place < len(self.waiting), spend.due, spend.t, spend.epsilon, spend.keys.size)
            for place, spend in enumerate(spends)
        ]
        return {
            f"{name}_total": self.total,
            f"{name}_highest": self.highest,
            f"{name}_n_reports": np.array([self.n_reports]),
            f"{name}_recent": np.array(recent, np.int64).reshape(-1, 5),
            f"{name}_keys": np.concatenate([np.empty(0, np.int64), *(s.keys for s in spends)]),
        }

    def load_arrays(self, name: str, arrays: Arrays) -> None:
        """Restore the state from plain arrays."""
        self.total = arrays[f"{name}_total"].copy()
        self.highest = arrays[f"{name}_highest"].copy()
        self.n_reports = int(arrays[f"{name}_n_reports"][0])
        recent, keys = arrays[f"{name}_recent"], arrays[f"{name}_keys"]
        edges = np.concatenate([[0], np.cumsum(recent[:, 4])]).tolist()
        for (waits, due, t, epsilon, _), a, b in zip(recent, edges, edges[1:], strict=False):
            spends = self.waiting if waits else self.opened
            spends.append(Spend(int(due), len(spends), int(t), int(epsilon), keys[a:b]))
        heapq.heapify(self.waiting)
        heapq.heapify(self.opened)

    def _sweep(self, *, before: int | None) -> None:
        """Open and close all reports due in windows before a given one, or in all windows."""
        while self.waiting and (before is None or self.waiting[0].due < before):
            spend = heapq.heappop(self.waiting)
            while self.opened and self.opened[0].due <= spend.due:
                closed = heapq.heappop(self.opened)
                remove_spend(self.total, closed.keys, closed.epsilon)
            add_spend(self.total, self.highest, spend.keys, spend.epsilon)
            closing = Spend(spend.t + 1, spend.order, spend.t, spend.epsilon, spend.keys)
            heapq.heappush(self.opened, closing)
