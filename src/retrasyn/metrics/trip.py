"""Trip error: distribution of origin and destination cells of streams (Sec. IV-B)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from retrasyn.metrics.divergence import sparse_jsd
from retrasyn.metrics.pair import Gridded, Pair

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories
    from retrasyn.space.grid import Grid


def trip_error(real: Trajectories, synthetic: Trajectories, grid: Grid) -> float:
    """Return the divergence between the distributions of (first cell, last cell)."""
    return trip_divergence(Pair.of(real, synthetic, grid))


def trip_divergence(pair: Pair) -> float:
    """Return the divergence between the trips of a pair."""
    n_cells = pair.grid.n_cells
    return sparse_jsd(trips(pair.real, n_cells), trips(pair.synthetic, n_cells))


def trips(data: Gridded, n_cells: int) -> npt.NDArray[np.int64]:
    """Encode the trip of every stream as first * n_cells + last: [n_streams]."""
    first, last = data.cells[data.starts[:-1]], data.cells[data.starts[1:] - 1]
    codes: npt.NDArray[np.int64] = first.astype(np.int64) * n_cells + last
    return codes


def trip_counts(data: Gridded, n_cells: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the distinct trips, as first * n_cells + last, and their counts."""
    return np.unique(trips(data, n_cells), return_counts=True)
