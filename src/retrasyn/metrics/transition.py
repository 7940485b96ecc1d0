"""Transition error: distribution of moves at each timestamp (Sec. IV-B)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrasyn.metrics import kernels
from retrasyn.metrics.divergence import Counts, by_timestamp, mean_known
from retrasyn.metrics.pair import Gridded, Pair

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories
    from retrasyn.space.grid import Grid


def transition_error(real: Trajectories, synthetic: Trajectories, grid: Grid) -> float:
    """Return the mean over timestamps of the divergence between moves, stays included."""
    return mean_known(transition_errors(Pair.of(real, synthetic, grid)))


def transition_errors(pair: Pair, *, since: int = 0) -> npt.NDArray[np.float64]:
    """Return the divergence at every timestamp >= `since`; NaN where neither side has moves."""

    def count(first: int, last: int) -> tuple[Counts, Counts]:
        return (
            move_counts(pair.real, pair.grid, first, last),
            move_counts(pair.synthetic, pair.grid, first, last),
        )

    n_columns = pair.grid.n_cells * kernels.N_DIRECTIONS
    return by_timestamp(count, since, pair.n_timestamps, n_columns)


def move_counts(data: Gridded, grid: Grid, first: int, last: int) -> Counts:
    """Count moves per arrival timestamp first..last-1: [last - first, n_cells * 9].

    Nine columns per cell, in the order of its row in the grid's neighbour table.
    """
    return kernels.count_moves(data.cells, data.starts, data.begins, first, last, grid.side)
