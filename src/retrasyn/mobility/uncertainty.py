"""Standard errors of what a release shows, per cell and per flow.

The shrinkage knows how far each share may be off because of noise. Two more things are wrong with
every share: the filters lag behind the truth, and the prior was fitted to the same data. On
recorded and generated streams these doubled to tripled the squared error, hence the factor below;
drawing a finite number of synthetic points adds the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from retrasyn.messages import Uncertainty

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.space import Grid

_INFLATION = 3.0


def standard_errors(
    cell_counts: npt.NDArray[np.int64],
    mass: npt.NDArray[np.float64],
    mass_variance: npt.NDArray[np.float64],
    grid: Grid,
) -> Uncertainty:
    """Return what is known of the synthetic points [n_cells] and of the moves [n_cells, 9]."""
    n_points = max(int(cell_counts.sum()), 1)
    shares = cell_counts / n_points
    near = grid.neighbour_table >= 0
    arriving = np.bincount(grid.neighbour_table[near], mass_variance[near], grid.n_cells)
    return Uncertainty(
        cell_shares=shares,
        cell_errors=np.sqrt(_INFLATION * arriving + shares * (1.0 - shares) / n_points),
        flow_shares=mass,
        flow_errors=np.sqrt(_INFLATION * mass_variance + mass * (1.0 - mass) / n_points),
    )
