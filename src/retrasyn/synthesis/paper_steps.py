"""The paper's steps: quits compete with moves, then the size is adjusted (Sec. III-D, Eq. 8).

First the work of one shard on its streams, then the plan of a timestamp and how all shards carry
it out together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from retrasyn.engines.base import total
from retrasyn.synthesis import kernels
from retrasyn.synthesis.shard import ShardBase

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.engines.base import Workers
    from retrasyn.space import Grid
    from retrasyn.synthesis.shard import StepInputs

Weighing = Literal["newest", "last"]
"""Which cell determines a stream's weight in a surplus: the one it moves to, or the last one."""
_BRACKET = 5.0  # standard deviations on each side of the first guess of the surplus threshold


class CompetingShard(ShardBase):
    """Draws moves or ends, and ends a surplus by cell weights."""

    __slots__ = ()

    def decide(
        self,
        t: int,
        key: int,
        table: npt.NDArray[np.uint64],
        quit_odds: npt.NDArray[np.float64],
        per_length: float,
        length_cap: float,
        against_moves: float,
    ) -> int:
        """Draw the next cell of every stream, or its end; return how many survive."""
        ids, cells, entered = self.streams.living()
        kept = self._fresh_marks()
        alive = self._over_slices(
            lambda part: kernels.decide(
                ids[part],
                cells[part],
                entered[part],
                kept[part],
                t,
                np.uint64(key),
                table,
                quit_odds,
                per_length,
                length_cap,
                against_moves,
            )
        )
        return sum(alive)

    def sample_alive(self, weighing: Weighing) -> tuple[npt.NDArray[np.int64], int]:
        """Estimate survivors per cell from a sample, [n_cells]; also return the sample's size."""
        stride = max(1, self.streams.n >> 16)
        counts = kernels.count_alive(self._weighed(weighing), self._kept, self.grid.n_cells, stride)
        return counts * stride, int(counts.sum())

    def find_surplus(
        self,
        key: int,
        weights: npt.NDArray[np.float64],
        floors: npt.NDArray[np.uint64],
        sure_floors: npt.NDArray[np.uint64],
        room: int,
        weighing: Weighing,
    ) -> tuple[int, int, npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Find the smallest keys.

        Returns how many streams pass the lower floors, how many of them also the higher ones, and
        the keys and ids of those in between.
        """
        ids, _, _ = self.streams.living()
        n_found, n_sure, self._places, self._keys = kernels.keys_above(
            ids,
            self._weighed(weighing),
            self._kept,
            np.uint64(key),
            weights,
            floors,
            sure_floors,
            min(room, self.streams.n),
        )
        between = self._keys >= 0
        return n_found, n_sure, self._keys[between], ids[self._places[between]]

    def settle(self) -> None:
        """Remove ended streams and move all others to their next cell."""
        self._remove_ended()

    def _weighed(self, weighing: Weighing) -> npt.NDArray[np.uint16]:
        """Return the cell that determines each stream's weight."""
        return self._kept if weighing == "newest" else self.streams.cells[: self.streams.n]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompetingPlan:
    """Each stream moves or quits, then streams end or begin until the size is right."""

    move: npt.NDArray[np.float64]  # [n_cells, 9], rows sum to 1, or to 0 where nothing is known
    quit_odds: npt.NDArray[np.float64]  # [n_cells], hazard / (1 - hazard), or the hazard
    against_moves: bool  # whether quitting competes with the moves or is drawn separately
    length_scale: float  # lambda
    target: int | None  # number of streams afterwards; None leaves it unchanged
    enter: npt.NDArray[np.float64]  # [n_cells], where new streams begin
    surplus_weights: npt.NDArray[np.float64]  # [n_cells], positive
    surplus_by_newest: bool
    wanders: bool = False  # in a cell without known moves: go to any neighbour instead of staying

    def advance(self, shards: Workers[CompetingShard], step: StepInputs) -> tuple[int, None]:
        """Move or end every stream; return how many survive, and no pull."""
        n_alive = self.decide(shards, step)
        if self.target is not None and n_alive > self.target:
            self.end_surplus(shards, step, n_alive=n_alive, n_surplus=n_alive - self.target)
            n_alive = self.target
        shards.each(CompetingShard.settle)
        return n_alive, None

    def point_law(self, step: StepInputs) -> None:
        """Return no law: points are drawn anew at every timestamp."""

    def decide(self, shards: Workers[CompetingShard], step: StepInputs) -> int:
        """Draw the next cell of every stream, or its end (Eq. 8); return how many survive."""
        grid = step.grid
        alive = shards.each(
            CompetingShard.decide,
            step.t,
            step.key("move"),
            kernels.build_alias(
                _wandering(self.move, grid) if self.wanders else self.move,
                grid.neighbour_table,
                np.arange(grid.n_cells, dtype=np.int32),
                kernels.MOVE_SLOTS,
            ),
            self.quit_odds,
            1.0 / self.length_scale,
            1.0 if self.against_moves else np.inf,
            1.0 if self.against_moves else 0.0,
        )
        return sum(alive)

    def end_surplus(
        self, shards: Workers[CompetingShard], step: StepInputs, *, n_alive: int, n_surplus: int
    ) -> None:
        """Mark as ended the n_surplus surviving streams with the smallest keys -ln(U) / weight.

        This is sampling without replacement by weight. Two floors found from the cell counts
        bracket the n_surplus-th key; only the few streams between them are ranked. If the
        bracket misses, it is widened: the result never depends on the guess.
        """
        weights, key = self.surplus_weights, step.key("surplus")
        weighing: Weighing = "newest" if self.surplus_by_newest else "last"
        samples = shards.each(CompetingShard.sample_alive, weighing)
        counts = total([counts for counts, _ in samples])
        n_sampled = max(sum(n for _, n in samples), 1)
        margin = _BRACKET * (n_surplus**0.5 + n_surplus / n_sampled**0.5 + 1)
        while True:
            low, high = (n_surplus - margin) / n_alive, (n_surplus + margin) / n_alive
            room = int(min(n_alive, n_surplus + 3 * margin))
            found = shards.each(
                CompetingShard.find_surplus,
                key,
                weights,
                kernels.find_floors(counts, weights, high),
                kernels.find_floors(counts, weights, low),
                room,
                weighing,
            )
            n_found, n_sure = sum(row[0] for row in found), sum(row[1] for row in found)
            if n_sure <= n_surplus <= n_found and all(row[0] <= room for row in found):
                break
            margin *= 4
        keys = np.concatenate([row[2] for row in found])
        ids = np.concatenate([row[3] for row in found])
        n_between = n_surplus - n_sure
        last_key, last_id = -1.0, np.iinfo(np.int64).max  # only those certain to end
        if n_between:
            last = np.lexsort((ids, keys))[n_between - 1]
            last_key, last_id = keys[last], ids[last]
        shards.each(CompetingShard.end_found, float(last_key), int(last_id))


def _wandering(move: npt.NDArray[np.float64], grid: Grid) -> npt.NDArray[np.float64]:
    """Make all neighbours equally likely where no move is known: [n_cells, 9]."""
    unknown = move.sum(axis=1, keepdims=True) == 0
    exists = (grid.neighbour_table >= 0).astype(np.float64)
    return np.where(unknown, exists / exists.sum(axis=1, keepdims=True), move)
