"""The global mobility model (Sec. III-B, Eq. 6), and how well its shares are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Uncertainty
from retrasyn.mobility import kernels
from retrasyn.space import StateSpace

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.space import Grid


@dataclass(frozen=True, slots=True, kw_only=True)
class MobilityModel:
    """Probabilities of moving, entering and quitting. Rows without mass are all zero."""

    move: npt.NDArray[np.float64]  # [n_cells, 9], in the order of the grid's neighbour table
    quit_hazard: npt.NDArray[np.float64]  # [n_cells], per cell; with `move` a row sums to 1
    enter: npt.NDArray[np.float64]  # [n_cells], sums to 1 or 0
    quit_share: npt.NDArray[np.float64]  # [n_cells], sums to 1 or 0

    @classmethod
    def from_frequencies(
        cls, released: npt.NDArray[np.float64] | None, states: StateSpace
    ) -> MobilityModel:
        """Turn released frequencies into the model; None is the model of no report at all."""
        n_cells = states.grid.n_cells
        model = cls(
            move=np.zeros((n_cells, 9)),
            quit_hazard=np.zeros(n_cells),
            enter=np.zeros(n_cells),
            quit_share=np.zeros(n_cells),
        )
        if released is not None:
            kernels.build_model(
                released,
                states.move_index,
                states.n_moves,
                model.move,
                model.quit_hazard,
                model.enter,
                model.quit_share,
            )
        return model


def masses(released: npt.NDArray[np.float64], states: StateSpace) -> tuple[float, float]:
    """Return the mass that goes on (moves and enters) and the mass that quits."""
    if not states.endpoints:
        return float(released.sum()), 0.0
    first_quit = states.n_moves + states.grid.n_cells
    return float(released[:first_quit].sum()), float(released[first_quit:].sum())


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
