"""Stream ratio: how many synthetic streams there are for each real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrasyn.metrics.pair import Pair

if TYPE_CHECKING:
    from retrasyn.data.trajectories import Trajectories
    from retrasyn.space.grid import Grid


def stream_ratio(real: Trajectories, synthetic: Trajectories, grid: Grid) -> float:
    """Return synthetic over real streams, both as they were before jumps split them."""
    return pair_ratio(Pair.of(real, synthetic, grid))


def pair_ratio(pair: Pair) -> float:
    """Return synthetic over real streams."""
    return pair.n_streams_synthetic / pair.n_streams_real
