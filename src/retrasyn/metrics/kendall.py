"""Kendall's tau: whether cells are passed by as many streams, in order (Sec. IV-B)."""

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
    """Return agreeing minus reversed pairs of cells over all pairs; NaN on a grid of one cell."""
    return pair_tau(Pair.of(real, synthetic, grid))


def pair_tau(pair: Pair) -> float:
    """Compare the numbers of streams that pass each cell.

    A tie in the synthetic numbers counts as reversed, a tie in the real ones as neither.
    """
    n_cells = pair.grid.n_cells
    n_pairs = n_cells * (n_cells - 1) // 2
    if not n_pairs:
        return math.nan
    agreement = kernels.count_agreement(visits(pair.real, n_cells), visits(pair.synthetic, n_cells))
    return agreement / n_pairs


def visits(data: Gridded, n_cells: int) -> npt.NDArray[np.int64]:
    """Count the streams that pass each cell: [n_cells]."""
    return kernels.count_visits(data.cells, data.starts, n_cells)
