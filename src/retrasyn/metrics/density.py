"""Density error: where people are at each timestamp (Sec. IV-B)."""

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


def density_error(real: Trajectories, synthetic: Trajectories, grid: Grid) -> float:
    """Return the mean over timestamps of the divergence between points per cell."""
    return mean_known(density_errors(Pair.of(real, synthetic, grid)))


def density_errors(pair: Pair, *, since: int = 0) -> npt.NDArray[np.float64]:
    """Return the divergence at every timestamp >= `since`; NaN where neither side has points."""
    n_cells = pair.grid.n_cells

    def count(first: int, last: int) -> tuple[Counts, Counts]:
        return (
            cell_counts(pair.real, last - first, n_cells, first=first),
            cell_counts(pair.synthetic, last - first, n_cells, first=first),
        )

    return by_timestamp(count, since, pair.n_timestamps, n_cells)


def cell_counts(data: Gridded, n_timestamps: int, n_cells: int, *, first: int = 0) -> Counts:
    """Count points per cell at n_timestamps timestamps from `first` on: [n_timestamps, n_cells]."""
    return kernels.count_cells(
        data.cells, data.starts, data.begins, first, first + n_timestamps, n_cells
    )
