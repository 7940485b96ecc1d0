"""One timestamp of the synthetic stream: quits, moves, size adjustment, births, points.

The synthesiser asks all shards the same, combines what they answer and tells them how to go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.engines.base import total
from retrasyn.randomness.words import address
from retrasyn.synthesis import kernels
from retrasyn.synthesis.lifecycle import CompetingPlan, OrderedPlan
from retrasyn.synthesis.steered_steps import OrderedSteps
from retrasyn.synthesis.streams import Columns, merged

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.mobility.model import MobilityModel
    from retrasyn.space import Grid
    from retrasyn.synthesis.sharded import ShardedStreams

_BRACKET = 5.0  # standard deviations to either side of the first guess of the surplus threshold


@dataclass(frozen=True, slots=True)
class Synthesizer:
    """Extends streams by one timestamp. All draws are addressed by (seed, t, purpose, id)."""

    grid: Grid
    seed: int
    steers: bool = False

    def step(
        self,
        streams: ShardedStreams,
        model: MobilityModel,
        plan: CompetingPlan | OrderedPlan,
        t: int,
    ) -> tuple[int, int]:
        """Advance every stream to t; return how many were born and how many ended."""
        before = streams.n
        if isinstance(plan, OrderedPlan):
            target, n_alive = plan.target, self.ordered.advance(streams, plan, t)
        else:
            n_alive = self.decide(streams, model, plan, t)
            target = n_alive if plan.target is None else plan.target
            if n_alive > target:
                self.end_surplus(streams, plan, t, n_alive=n_alive, n_surplus=n_alive - target)
                n_alive = target
            streams.engine.each("settle")
        n_born = max(target - n_alive, 0)
        if n_born:
            self._give_birth(streams, plan.enter, n_born, t)
        streams.changed(n=n_alive + n_born, n_born=n_born)
        return n_born, before - n_alive

    @property
    def ordered(self) -> OrderedSteps:
        """The steps of plans that have an order."""
        return OrderedSteps(self.grid, self.seed, self.steers)

    def release(self, streams: ShardedStreams, t: int) -> Columns:
        """Return id, cell and point of every stream: where its path led, or uniformly drawn.

        Where shards have sinks of their own, the points are there, and not in what is returned.
        """
        return merged(streams.engine.each("release", t, address(self.seed, t, "point")))

    def decide(
        self, streams: ShardedStreams, model: MobilityModel, plan: CompetingPlan, t: int
    ) -> int:
        """Let every stream draw its next cell, or its end; return how many live on."""
        table = kernels.build_alias(
            self._wandering(model.move) if plan.wanders else model.move,
            self.grid.neighbour_table,
            np.arange(self.grid.n_cells, dtype=np.int32),
            kernels.MOVE_SLOTS,
        )
        alive = streams.engine.each(
            "decide",
            t,
            address(self.seed, t, "move"),
            table,
            plan.quit_odds,
            1.0 / plan.length_scale,
            1.0 if plan.against_moves else np.inf,
            1.0 if plan.against_moves else 0.0,
        )
        return sum(alive)

    def _wandering(self, move: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Let every neighbour be as likely where no move is known: [n_cells, 9]."""
        unknown = move.sum(axis=1, keepdims=True) == 0
        exists = (self.grid.neighbour_table >= 0).astype(np.float64)
        return np.where(unknown, exists / exists.sum(axis=1, keepdims=True), move)

    def end_surplus(
        self, streams: ShardedStreams, plan: CompetingPlan, t: int, *, n_alive: int, n_surplus: int
    ) -> None:
        """Mark the n_surplus living streams with the smallest keys -ln(U) / weight as ended.

        That is drawing without replacement by weight. Two floors found from the cell counts
        bracket the n_surplus-th key; only the few streams between them are ranked. Should the
        bracket miss, it is widened: the outcome never depends on the guess.
        """
        engine, weights = streams.engine, plan.surplus_weights
        weighing = "newest" if plan.surplus_by_newest else "last"
        key = address(self.seed, t, "surplus")
        samples = engine.each("sample_alive", weighing)
        counts = total([counts for counts, _ in samples])
        n_sampled = max(sum(n for _, n in samples), 1)
        margin = _BRACKET * (n_surplus**0.5 + n_surplus / n_sampled**0.5 + 1)
        while True:
            low, high = (n_surplus - margin) / n_alive, (n_surplus + margin) / n_alive
            room = int(min(n_alive, n_surplus + 3 * margin))
            found = engine.each(
                "find_surplus",
                key,
                weights,
                kernels.find_floors(counts, weights, high),
                kernels.find_floors(counts, weights, low),
                room,
                weighing,
            )
            n_found, n_sure = (sum(row[column] for row in found) for column in (0, 1))
            if n_sure <= n_surplus <= n_found and all(row[0] <= room for row in found):
                break
            margin *= 4
        keys, ids = (np.concatenate([row[column] for row in found]) for column in (2, 3))
        n_between = n_surplus - n_sure
        last_key, last_id = -1.0, np.iinfo(np.int64).max  # those sure of it, and nobody else
        if n_between:
            last = np.lexsort((ids, keys))[n_between - 1]
            last_key, last_id = keys[last], ids[last]
        engine.each("end_surplus", float(last_key), int(last_id))

    def _give_birth(
        self, streams: ShardedStreams, enter: npt.NDArray[np.float64], n_born: int, t: int
    ) -> None:
        """Begin n_born streams at t."""
        cells = np.arange(self.grid.n_cells, dtype=np.int32)[None, :]  # [1, n_cells]
        n_slots = 1 << (self.grid.n_cells - 1).bit_length()
        table = kernels.build_alias(enter[None, :], cells, cells[0], n_slots)
        keys = address(self.seed, t, "birth"), address(self.seed, t, "first point")
        streams.engine.each("give_birth", t, keys, streams.next_id, n_born, table)
