"""Kendall's tau: rank correlation of how many streams visit each cell (Sec. IV-B)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from retrasyn.metrics import kernels
from retrasyn.metrics.pair import Gridded, Pair

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories
    from retrasyn.space.grid import Grid


def kendall_tau(real: Trajectories, synthetic: Trajectories, grid: Grid) -> float:
    """Return (concordant - discordant) / all pairs of cells; NaN on a grid of one cell."""
    return pair_tau(Pair.of(real, synthetic, grid))


def pair_tau(pair: Pair) -> float:
    """Return Kendall's tau of the number of streams that visit each cell.

    A tie in the synthetic counts is discordant; a tie in the real ones is neither.
    """
    n_cells = pair.grid.n_cells
    n_pairs = n_cells * (n_cells - 1) // 2
    if not n_pairs:
        return math.nan
    agreement = kernels.count_agreement(visits(pair.real, n_cells), visits(pair.synthetic, n_cells))
    return agreement / n_pairs


def visits(data: Gridded, n_cells: int) -> npt.NDArray[np.int64]:
    """Count the streams that visit each cell: [n_cells]."""
    return kernels.count_visits(data.cells, data.starts, n_cells)
