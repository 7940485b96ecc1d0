"""The global mobility model (Eq. 6), its dynamic update (Eq. 7) and its standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from retrasyn.interpretation import Interpretation
from retrasyn.messages import Estimate, Uncertainty
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
        """Build the model from released frequencies; None gives the model before any report."""
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
    """Return the mass that continues (moves and enters) and the mass that quits."""
    if not states.endpoints:
        return float(released.sum()), 0.0
    first_quit = states.n_moves + states.grid.n_cells
    return float(released[:first_quit].sum()), float(released[first_quit:].sum())


def standard_errors(
    cell_counts: npt.NDArray[np.int64],
    mass: npt.NDArray[np.float64],
    variances: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    grid: Grid,
) -> Uncertainty:
    """Return shares and standard errors of synthetic points [n_cells] and moves [n_cells, 9].

    `variances` are those of the moves' shares and of the arrivals. Besides, real people in a cell
    are few enough to vary by chance, and the synthetic ones are not exactly where they should be.
    """
    n_points = max(int(cell_counts.sum()), 1)
    shares = cell_counts / n_points
    of_moves, of_arrivals = variances
    near = grid.neighbour_table >= 0
    arriving = np.bincount(grid.neighbour_table[near], mass[near], grid.n_cells)
    chance = shares * (1.0 - shares) / n_points
    return Uncertainty(
        cell_shares=shares,
        cell_errors=np.sqrt(of_arrivals + chance + (shares - arriving) ** 2),
        flow_shares=mass,
        flow_errors=np.sqrt(of_moves + mass * (1.0 - mass) / n_points),
    )


class Update(Protocol):
    """Merges an estimate into the previous release."""

    def __call__(
        self, previous: npt.NDArray[np.float64], estimate: Estimate, reading: Interpretation
    ) -> tuple[npt.NDArray[np.float64], int]:
        """Return the new release and the number of updated states."""
        ...  # pragma: no cover - a protocol has no body


def normalised(estimate: Estimate) -> npt.NDArray[np.float64] | None:
    """Clip negatives and normalise to sum 1; None if nothing positive is left."""
    clipped = np.maximum(estimate.frequencies, 0.0)
    total = clipped.sum()
    return clipped / total if total > 0 else None


def replace_all(
    previous: npt.NDArray[np.float64], estimate: Estimate, reading: Interpretation
) -> tuple[npt.NDArray[np.float64], int]:
    """Replace all states by the clipped estimate, unless it has no positive mass."""
    del reading
    fresh = normalised(estimate)
    return (previous, 0) if fresh is None else (fresh, fresh.size)


def select_significant(
    previous: npt.NDArray[np.float64], estimate: Estimate, reading: Interpretation
) -> tuple[npt.NDArray[np.float64], int]:
    """Update only the states whose change exceeds the noise (dynamic mobility update, Eq. 7).

    The objective separates over states, so its minimum is a comparison per state: update iff the
    squared gap between the previous release and the estimate exceeds the oracle's variance.
    """
    clipped = np.maximum(estimate.frequencies, 0.0)
    squared_gap = (previous - clipped) ** 2
    significant = squared_gap > estimate.variance
    scale = clipped.sum() if reading.unselected == "scaled" else 1.0
    merged = np.where(significant, clipped, previous * scale)
    total = merged.sum()
    n_significant = int(np.count_nonzero(significant))
    if total <= 0:
        return previous, n_significant
    return merged / total, n_significant
