"""All synthetic streams on the shards of an engine, extended by one timestamp at a time.

The plan of a timestamp (`paper_steps`, `steered_steps`) decides quits, ends and moves; births and
points are the same for every plan but that of `trips`, whose streams drive from node to node.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from retrasyn.engines.base import Engine, LocalEngine, Workers, total
from retrasyn.synthesis import kernels
from retrasyn.synthesis.paper_steps import CompetingPlan, CompetingShard
from retrasyn.synthesis.shard import Columns, StepInputs, Streams, merged
from retrasyn.synthesis.steered_steps import OrderedPlan, OrderedShard
from retrasyn.synthesis.trips import Pace, TripPlan, TripShard

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.roads.next_hops import NextHops
    from retrasyn.space import Grid
    from retrasyn.synthesis.shard import MakeSink


class Shard(CompetingShard, OrderedShard, TripShard):
    """A shard whose streams can follow any plan."""

    __slots__ = ()


def make_shard(
    index: int,
    n_shards: int,
    *,
    grid: Grid,
    continuous: bool = False,
    n_threads: int | None = None,
    make_sink: MakeSink | None = None,
    roads: NextHops | None = None,
) -> Shard:
    """Return an empty shard."""
    sink = None if make_sink is None else make_sink(index, n_shards)
    return Shard(index, n_shards, grid, continuous, n_threads, sink, roads)


@dataclass(slots=True)
class ShardedStreams:
    """Streams distributed over the shards of an engine, and their total number."""

    shards: Workers[Shard]
    n: int = 0
    next_id: int = 0
    _counts: npt.NDArray[np.int64] | None = field(default=None, repr=False)

    @classmethod
    def open(
        cls,
        grid: Grid,
        engine: Engine | None = None,
        *,
        continuous: bool = False,
        n_threads: int | None = None,
        make_sink: MakeSink | None = None,
        roads: NextHops | None = None,
    ) -> ShardedStreams:
        """Create shards without streams."""
        engine = LocalEngine() if engine is None else engine
        make = partial(
            make_shard,
            grid=grid,
            continuous=continuous,
            n_threads=engine.n_threads if n_threads is None else n_threads,
            make_sink=make_sink,
            roads=roads,
        )
        return cls(Workers.open(engine, make))

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Number of streams per cell: [n_cells]."""
        if self._counts is None:
            self._counts = total(self.shards.each(Shard.count_cells))
        return self._counts

    def changed(self, *, n: int, n_born: int) -> None:
        """Record the number of streams, and how many of them are new."""
        self.n, self._counts = n, None
        self.next_id += n_born

    def columns(self) -> Columns:
        """Return ids, cells and entering timestamps, and points if paths are continuous."""
        return merged(self.shards.each(Shard.to_arrays))

    def take(self, columns: Columns, next_id: int) -> None:
        """Replace all streams by these."""
        self.shards.each(Shard.take, columns)
        self.n, self.next_id, self._counts = columns["ids"].size, next_id, None

    def flush(self) -> None:
        """Flush shards that write their own points."""
        self.shards.each(Shard.flush)

    def living(
        self,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16], npt.NDArray[np.int32]]:
        """Return ids, cells and entering timestamps of all streams."""
        return Streams.of(self.columns()).living()


class StepChanges(NamedTuple):
    """What one timestamp changed, besides the streams themselves."""

    n_born: int
    n_ended: int
    pull: npt.NDArray[np.float64] | None = None  # of steering, for the next plan; None: not used
    pace: Pace | None = None  # of trips, for the next plan


@dataclass(frozen=True, slots=True)
class Synthesizer:
    """Extends streams by one timestamp. All draws are addressed by (seed, t, purpose, id)."""

    grid: Grid
    seed: int
    steers: bool = False

    def step(
        self, streams: ShardedStreams, plan: CompetingPlan | OrderedPlan | TripPlan, t: int
    ) -> StepChanges:
        """Advance every stream to t, and begin new ones; return what changed."""
        step = self.inputs(streams, t)
        if isinstance(plan, TripPlan):
            n_alive, n_born, pace = plan.advance(streams.shards, step, streams.next_id)
            streams.changed(n=n_alive + n_born, n_born=n_born)
            return StepChanges(n_born, step.n_streams - n_alive, pace=pace)
        n_alive, pull = plan.advance(streams.shards, step)
        n_born = 0 if plan.target is None else max(plan.target - n_alive, 0)
        if n_born:
            self._give_birth(streams, plan, n_born, step)
        streams.changed(n=n_alive + n_born, n_born=n_born)
        return StepChanges(n_born, step.n_streams - n_alive, pull)

    def inputs(self, streams: ShardedStreams, t: int) -> StepInputs:
        """Return the inputs a plan needs to advance streams to t."""
        return StepInputs(self.grid, self.seed, t, streams.n, self.steers)

    def release(self, streams: ShardedStreams, t: int) -> Columns:
        """Return id, cell and point of every stream; points follow its path or are drawn uniformly.

        Shards that write their own points return none.
        """
        key = self.inputs(streams, t).key("point")
        return merged(streams.shards.each(Shard.release, t, key))

    def _give_birth(
        self,
        streams: ShardedStreams,
        plan: CompetingPlan | OrderedPlan,
        n_born: int,
        step: StepInputs,
    ) -> None:
        """Create n_born new streams."""
        cells = np.arange(self.grid.n_cells, dtype=np.int32)[None, :]  # [1, n_cells]
        n_slots = 1 << (self.grid.n_cells - 1).bit_length()
        streams.shards.each(
            Shard.give_birth,
            step.t,
            step.key("birth"),
            streams.next_id,
            n_born,
            kernels.build_alias(plan.enter[None, :], cells, cells[0], n_slots),
            plan.point_law(step),
        )
