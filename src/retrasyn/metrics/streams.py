"""Stream ratio: number of synthetic streams per real stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrasyn.metrics.pair import Pair

if TYPE_CHECKING:
    from retrasyn.data.trajectories import Trajectories
    from retrasyn.space.grid import Grid


def stream_ratio(real: Trajectories, synthetic: Trajectories, grid: Grid) -> float:
    """Return the ratio of synthetic to real streams, both counted before cutting at jumps."""
    return pair_ratio(Pair.of(real, synthetic, grid))


def pair_ratio(pair: Pair) -> float:
    """Return the ratio of synthetic to real streams."""
    return pair.n_streams_synthetic / pair.n_streams_real
