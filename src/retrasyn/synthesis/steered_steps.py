"""Streams taken through one timestamp in order: quits, surplus, steered moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.engines.base import total
from retrasyn.randomness.words import address
from retrasyn.synthesis import kernels
from retrasyn.synthesis import kernels as shared
from retrasyn.synthesis.lifecycle import OrderedPlan
from retrasyn.synthesis.ranking import choose_smallest

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.engines.base import Engine
    from retrasyn.space import Grid
    from retrasyn.synthesis.sharded import ShardedStreams
    from retrasyn.synthesis.steered_plan import Law


_ROUNDS = 16
_KEPT_PULL = 0.95  # power of the last pull that the next timestamp begins with
_MOST = 0.98
_FLOOR = 1e-12  # lets a stream that would never quit end, last of all


@dataclass(frozen=True, slots=True)
class OrderedSteps:
    """Moves a population in order. All draws are addressed by (seed, t, purpose, id)."""

    grid: Grid
    seed: int
    steers: bool

    def advance(self, streams: ShardedStreams, plan: OrderedPlan, t: int) -> int:
        """Let streams quit, end a surplus and move the rest; return how many are left."""
        engine = streams.engine
        if plan.ends is None:
            self._quit(engine, plan, t, streams.n)
        else:
            self._end_as_seen(engine, plan, plan.ends, t, streams.n)
        movers = total(engine.each("leave_ended"))  # [n_cells]
        self._move(engine, plan, movers, t)
        return int(movers.sum())

    def _key(self, t: int, purpose: str) -> int:
        return address(self.seed, t, purpose)

    def _quit(self, engine: Engine, plan: OrderedPlan, t: int, n: int) -> None:
        """Draw who quits, then end what is too many by the same probabilities."""
        law = self._law(engine, plan, t, n)
        n_alive = sum(engine.each("draw_quits", t, self._key(t, "quit"), law))
        n_surplus = n_alive - plan.target
        if n_surplus > 0:
            engine.each("rank", t, self._key(t, "surplus"), law, _FLOOR)
            _end_smallest(engine, np.array([n_surplus]), np.array([n_alive]))

    def _law(self, engine: Engine, plan: OrderedPlan, t: int, n: int) -> Law:
        """Return how likely who quits: scaled, so that the sum is kept and enough quit."""
        factor, cap = 1.0, plan.cap
        if plan.keeps_sum and n:
            plain, tilted = _sums(engine, t, (plan.by_age, plan.by_cell, 1.0, np.inf))
            factor = plain / tilted if tilted > 0 else 1.0
            _, quitting = _sums(engine, t, (plan.by_age, plan.by_cell, factor, cap))
            expected = quitting / kernels.UNITS
            if 0 < expected < plan.at_least:
                more = plan.at_least / expected
                factor, cap = factor * more, min(_MOST, cap * more)
        return plan.by_age, plan.by_cell, factor, cap

    def _end_as_seen(
        self, engine: Engine, plan: OrderedPlan, ends: npt.NDArray[np.int64], t: int, n: int
    ) -> None:
        """End as many streams of each age bucket as asked; what one lacks, others make up for.

        More end only where the size demands it, which it does not if it counts the active.
        """
        engine.each("quit_nobody")
        law = plan.by_age, plan.by_cell, 1.0, plan.cap
        engine.each("rank", t, self._key(t, "surplus"), law, 0.0)
        sizes = total(engine.each("group_by_age", t))
        chosen = np.minimum(ends, sizes)
        _end_smallest(engine, chosen, sizes)
        n_chosen = int(chosen.sum())
        n_missing = max(min(int(ends.sum()), n), n - plan.target) - n_chosen
        if n_missing > 0:
            engine.each("group_together")
            _end_smallest(engine, np.array([n_missing]), np.array([n - n_chosen]))

    def _move(
        self, engine: Engine, plan: OrderedPlan, movers: npt.NDArray[np.int64], t: int
    ) -> None:
        """Move everybody who is left."""
        table = self.grid.neighbour_table
        near = table >= 0
        kernel = near / near.sum(axis=1, keepdims=True)
        if plan.mass is not None:
            rows = plan.mass.sum(axis=1, keepdims=True)
            kernel = np.where(rows > 0, plan.mass / np.where(rows > 0, rows, 1.0), kernel)
            if self.steers:
                plan.pull[:] **= _KEPT_PULL
                kernel = kernels.steer(kernel, plan.mass, movers, table, plan.pull, _ROUNDS)
        alias = shared.build_alias(
            kernel, table, np.arange(self.grid.n_cells, dtype=np.int32), shared.MOVE_SLOTS
        )
        lengths = np.pi / 4.0 * (1.0 - kernel[:, 4])
        engine.each("move", self._key(t, "move"), self._key(t, "step"), alias, lengths)


def _sums(engine: Engine, t: int, law: Law) -> tuple[int, int]:
    """Add up, over all streams, by_age alone and the probability to quit; whole numbers."""
    sums = engine.each("sum_hazards", t, law)
    return sum(plain for plain, _ in sums), sum(capped for _, capped in sums)


def _end_smallest(
    engine: Engine, wanted: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> None:
    """End the streams of each group with the smallest keys."""
    engine.each("end_ranked", *choose_smallest(engine, wanted, sizes))
