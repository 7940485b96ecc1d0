"""Some of the synthetic streams, and what they do at one timestamp when they are told to.

A shard answers small questions: how many of its streams live on, which keys lie in an interval,
how many stand in each cell. What it answers can be added up or merged, so whoever asks all shards
knows the same however the streams are dealt to them. Streams are dealt by their id; every draw is
addressed by (key of the timestamp and purpose, id).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrasyn.synthesis.paper_steps import CompetingSteps
from retrasyn.synthesis.steered_plan import OrderedWalk

if TYPE_CHECKING:
    from retrasyn.space import Grid
    from retrasyn.synthesis.shard_base import MakeSink


class Shard(CompetingSteps, OrderedWalk):
    """Streams that can follow any plan."""

    __slots__ = ()


def make_shard(
    index: int,
    n_shards: int,
    *,
    grid: Grid,
    continuous: bool = False,
    n_threads: int | None = None,
    make_sink: MakeSink | None = None,
) -> Shard:
    """Return an empty shard."""
    sink = None if make_sink is None else make_sink(index, n_shards)
    return Shard(index, n_shards, grid, continuous, n_threads, sink)
