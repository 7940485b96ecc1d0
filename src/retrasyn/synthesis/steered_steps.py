"""The steps of `steered`, in order: quits, surplus by rank, steered moves; births as in the paper.

First the work of one shard on its streams, then the plan of a timestamp and how all shards carry
it out together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.engines.base import total
from retrasyn.randomness.kernels import STRIDE, words_at
from retrasyn.synthesis import kernels
from retrasyn.synthesis.points import ByDensity, ByMap
from retrasyn.synthesis.ranking import RankedShard, end_smallest

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.engines.base import Workers
    from retrasyn.synthesis.points import FineMap, PointLaw
    from retrasyn.synthesis.shard import StepInputs

    Law = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float, float]
    """by_age, by_cell, factor and cap: a stream of age a in cell c quits with probability
    min(cap, factor x by_age[a] x by_cell[c])."""

_YOUNG = [1, 2, 3, 4, 6, 8, 11, 15, 20, 26, 33, 41]
_OLD = [50, 60, 72, 86, 103, 125, 150, 180, 215, 260, 320, 400]
AGE_EDGES = np.array(_YOUNG + _OLD)
"""First age of each bucket; the last bucket is open."""
_ROUNDS = 16
_UNITS = 2.0**32  # of a probability: 200 million streams stay below 2^63, at up to 10 each
_KEPT_PULL = 0.95  # exponent applied to the last pull at the next timestamp
_MOST = 0.98
_FLOOR = 1e-12  # lets a stream that would never quit end, but last
_BIT_BELOW = 1.0 - 1e-9  # so that rounding leaves nobody out
_SPARE, _FARTHER = 6.0, 4.0  # standard deviations; by which a guess that was too low is raised


def first_words(step: StepInputs, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return the word of the first stream of each class in each cell: [n_classes, n_cells].

    A cell's streams are ranked by class, then by id. Its first one has a random word, and each
    next one the word before plus the golden ratio of the whole range.
    """
    cells = np.arange(counts.shape[1], dtype=np.uint64)
    earlier = (np.cumsum(counts, axis=0) - counts).astype(np.uint64)
    first: npt.NDArray[np.uint64] = words_at(np.uint64(step.key("move")), cells)
    return first + earlier * STRIDE


class OrderedShard(RankedShard):
    """Draws quits, ranks streams by who ends first, and moves the rest."""

    __slots__ = ()

    def count_ages(self, t: int, n_ages: int) -> npt.NDArray[np.int64]:
        """Return how many streams have which age in which cell: [n_ages, n_cells]."""
        _, cells, entered = self.streams.living()
        n_cells = self.grid.n_cells
        counts = self._over_slices(
            lambda part: kernels.count_ages(cells[part], entered[part], t, n_ages, n_cells)
        )
        return total(counts)

    def draw_quits(self, t: int, key: int, law: Law) -> int:
        """Draw who quits; return how many survive."""
        ids, cells, entered = self.streams.living()
        kept = self._fresh_marks()
        alive = self._over_slices(
            lambda part: kernels.draw_quits(
                ids[part], cells[part], entered[part], t, np.uint64(key), *law, kept[part]
            )
        )
        return sum(alive)

    def quit_nobody(self) -> None:
        """Mark every stream as surviving."""
        self._fresh_marks()[:] = self.streams.cells[: self.streams.n]

    def list_surplus(
        self,
        t: int,
        key: int,
        weights: npt.NDArray[np.float64],
        floors: npt.NDArray[np.uint64],
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Return keys and ids of the surviving streams whose words reach the floors."""
        ids, _, entered = self.streams.living()
        kept = self._kept

        def work(part: slice) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
            places, keys = kernels.keys_within(
                ids[part], entered[part], kept[part], t, np.uint64(key), weights, floors
            )
            return places + part.start, keys

        places, keys = zip(*self._over_slices(work), strict=True)
        self._places, self._keys = np.concatenate(places), np.concatenate(keys)
        return self._keys, ids[self._places]

    def rank(self, t: int, key: int, law: Law) -> None:
        """Give every surviving stream the key that ranks who ends first; all are in one group."""
        ids, _, entered = self.streams.living()
        kept, keys = self._kept, np.empty(ids.size)
        self._over_slices(
            lambda part: kernels.surplus_keys(
                ids[part], entered[part], kept[part], t, np.uint64(key), *law, keys[part]
            )
        )
        self._keys, self._groups = keys, np.zeros(ids.size, np.uint16)

    def group_by_age(self, t: int) -> npt.NDArray[np.int64]:
        """Assign every stream to the group of its age bucket; return the group sizes."""
        _, _, entered = self.streams.living()
        places = np.searchsorted(AGE_EDGES, t - entered, side="right") - 1
        self._groups = places.astype(np.uint16)
        return np.bincount(places, minlength=AGE_EDGES.size)

    def group_together(self) -> None:
        """Assign every stream to a single group."""
        self._groups = np.zeros(self.streams.n, np.uint16)

    def leave_ended(self) -> npt.NDArray[np.int64]:
        """Remove ended streams; return how many are left per class and cell."""
        self._remove_ended()
        ids, cells, _ = self.streams.living()
        n_cells = self.grid.n_cells
        self._counts = self._over_slices(
            lambda part: (part.start, kernels.count_classes(ids[part], cells[part], n_cells))
        )
        return total([counts for _, counts in self._counts])

    def move(
        self,
        words: npt.NDArray[np.uint64],
        limits: npt.NDArray[np.uint64],
        targets: npt.NDArray[np.uint16],
        law: PointLaw,
    ) -> None:
        """Move every stream and, if paths are continuous, its point.

        `words` [n_classes, n_cells] are those of the first stream of each class and cell.
        """
        streams = self.streams
        ids, cells, _ = streams.living()
        moved = self._fresh_marks()
        words, starts = words.copy(), {}
        for begin, counts in self._counts:
            starts[begin], words = words, words + counts.astype(np.uint64) * STRIDE

        def work(part: slice) -> None:
            start = starts[part.start]
            kernels.move_streams(ids[part], cells[part], start, limits, targets, moved[part])
            if self.continuous:
                law.step(
                    ids[part],
                    cells[part],
                    moved[part],
                    streams.x[: ids.size][part],
                    streams.y[: ids.size][part],
                )

        self._over_slices(work)
        cells[:] = moved


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedPlan:
    """A plan carried out in order: quits, surplus, moves, births.

    A stream of age a in cell c quits with probability by_age[a] x by_cell[c], scaled so that the
    sum stays that of by_age alone where `keeps_sum`, and so that at least `at_least` are expected
    to quit.
    """

    by_age: npt.NDArray[np.float64]  # from age 1 on; the last value holds for all older streams
    by_cell: npt.NDArray[np.float64]  # [n_cells]
    keeps_sum: bool
    at_least: int
    cap: float
    ends: npt.NDArray[np.int64] | None  # number of ends per age bucket; None: as drawn
    target: int
    enter: npt.NDArray[np.float64]  # [n_cells], where new streams begin
    mass: npt.NDArray[np.float64] | None  # [n_cells, 9], of all moves, sums to 1; None: unknown
    pull: npt.NDArray[np.float64]  # [n_cells], attraction of each cell at the last timestamp
    fine_map: FineMap | None = None  # where in their cells streams are; None: by density
    parked: float = 0.0  # share of streams that do not move at all, on a map

    def advance(
        self, shards: Workers[OrderedShard], step: StepInputs
    ) -> tuple[int, npt.NDArray[np.float64]]:
        """Draw quits, end a surplus, move the rest; return how many are left, and the pull."""
        if self.ends is None:
            self._quit(shards, step)
        else:
            self._end_as_seen(shards, step, self.ends)
        movers = total(shards.each(OrderedShard.leave_ended))  # [n_classes, n_cells]
        return int(movers.sum()), self._move(shards, step, movers)

    def _quit(self, shards: Workers[OrderedShard], step: StepInputs) -> None:
        """Draw who quits, then end a surplus by the same probabilities."""
        law = self._law(shards, step)
        n_alive = sum(shards.each(OrderedShard.draw_quits, step.t, step.key("quit"), law))
        n_surplus = n_alive - self.target
        if n_surplus > 0:
            self._end_surplus(shards, step, law, n_alive=n_alive, n_surplus=n_surplus)

    def _end_surplus(
        self,
        shards: Workers[OrderedShard],
        step: StepInputs,
        law: Law,
        *,
        n_alive: int,
        n_surplus: int,
    ) -> None:
        """End the n_surplus surviving streams with the smallest keys -ln(U) / p.

        Only streams with keys up to `reach`, a guess, are listed; it is raised until they are
        enough, so that the result never depends on it.
        """
        by_age, by_cell, factor, cap = law
        weights = np.minimum(cap, factor * (by_age[:, None] * by_cell)) + _FLOOR
        counts = total(shards.each(OrderedShard.count_ages, step.t, by_age.size))
        wanted = max(n_surplus + _SPARE * (n_surplus + 1) ** 0.5, 1.0)
        reach = wanted / max(_sum(counts, weights) / _UNITS, _FLOOR)
        while True:
            floors = np.exp(-weights * reach) * _BIT_BELOW  # [n_ages, n_cells]
            found = shards.each(
                OrderedShard.list_surplus,
                step.t,
                step.key("surplus"),
                weights,
                (floors * 2.0**53).astype(np.uint64) << np.uint64(11),
            )
            keys, ids = (np.concatenate(column) for column in zip(*found, strict=True))
            if keys.size == n_alive or np.count_nonzero(keys <= reach) >= n_surplus:
                break
            reach *= _FARTHER
        last = np.lexsort((ids, keys))[n_surplus - 1]
        shards.each(OrderedShard.end_found, float(keys[last]), int(ids[last]))

    def _law(self, shards: Workers[OrderedShard], step: StepInputs) -> Law:
        """Return the quitting law, scaled so that the sum is kept and enough streams quit."""
        factor, cap = 1.0, self.cap
        if self.keeps_sum and step.n_streams:
            counts = total(shards.each(OrderedShard.count_ages, step.t, self.by_age.size))
            hazards = self.by_age[:, None] * self.by_cell  # [n_ages, n_cells]
            plain, tilted = _sum(counts, self.by_age[:, None]), _sum(counts, hazards)
            factor = plain / tilted if tilted > 0 else 1.0
            expected = _sum(counts, np.minimum(cap, factor * hazards)) / _UNITS
            if 0 < expected < self.at_least:
                more = self.at_least / expected
                factor, cap = factor * more, min(_MOST, cap * more)
        return self.by_age, self.by_cell, factor, cap

    def _end_as_seen(
        self, shards: Workers[OrderedShard], step: StepInputs, ends: npt.NDArray[np.int64]
    ) -> None:
        """End as many streams of each age bucket as asked; a shortage is made up by other buckets.

        More end only if the size requires it, which it does not if it counts the active users.
        """
        shards.each(OrderedShard.quit_nobody)
        law = self.by_age, self.by_cell, 1.0, self.cap
        shards.each(OrderedShard.rank, step.t, step.key("surplus"), law)
        sizes = total(shards.each(OrderedShard.group_by_age, step.t))
        chosen = np.minimum(ends, sizes)
        end_smallest(shards, chosen, sizes)
        n, n_chosen = step.n_streams, int(chosen.sum())
        n_missing = max(min(int(ends.sum()), n), n - self.target) - n_chosen
        if n_missing > 0:
            shards.each(OrderedShard.group_together)
            end_smallest(shards, np.array([n_missing]), np.array([n - n_chosen]))

    def _move(
        self, shards: Workers[OrderedShard], step: StepInputs, movers: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """Move all remaining streams; return the attraction of each cell."""
        table, pull = step.grid.neighbour_table, self.pull
        near = table >= 0
        kernel = near / near.sum(axis=1, keepdims=True)
        if self.mass is not None:
            rows = self.mass.sum(axis=1, keepdims=True)
            kernel = np.where(rows > 0, self.mass / np.where(rows > 0, rows, 1.0), kernel)
            if step.steers:
                pull = self.pull.copy()
                pull **= _KEPT_PULL
                movers_in = movers.sum(axis=0)  # [n_cells]
                kernel = kernels.steer(kernel, self.mass, movers_in, table, pull, _ROUNDS)
        if movers.any():
            shards.each(
                OrderedShard.move,
                first_words(step, movers),
                *kernels.build_limits(kernel, table),
                self.point_law(step, np.pi / 4.0 * (1.0 - kernel[:, 4])),
            )
        return pull

    def point_law(
        self, step: StepInputs, lengths: npt.NDArray[np.float64] | None = None
    ) -> PointLaw:
        """Return where streams are in their cells; `lengths` of steps are for those that stay."""
        lengths = np.zeros(step.grid.n_cells) if lengths is None else lengths
        if self.fine_map is None:
            return ByDensity.of(step, self.mass, lengths)
        return ByMap.of(step, self.fine_map, lengths, self.parked)


def _sum(counts: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> int:
    """Sum values by age and cell over streams, in _UNITS: integers add up alike on any machine."""
    return int((counts * (values * _UNITS).astype(np.int64)).sum())
