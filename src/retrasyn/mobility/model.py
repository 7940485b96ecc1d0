"""The global mobility model (Sec. III-B, Eq. 6)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from retrasyn.space import StateSpace


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
    ) -> "MobilityModel":
        """Turn released frequencies into the model; None is the model of no report at all."""
        if released is None:
            released = np.zeros(states.n_states)
        n_moves, n_cells = states.n_moves, states.grid.n_cells
        padded = np.append(released[:n_moves], 0.0)  # index -1, off the grid, reads the zero
        moving = padded[states.move_index]  # [n_cells, 9]
        if states.endpoints:
            entering = released[n_moves : n_moves + n_cells]
            quitting = released[n_moves + n_cells :]
        else:
            entering = quitting = np.zeros(n_cells)
        leaving = moving.sum(axis=1) + quitting  # [n_cells]
        return cls(
            move=_share(moving, leaving[:, None]),
            quit_hazard=_share(quitting, leaving),
            enter=_share(entering, entering.sum()),
            quit_share=_share(quitting, quitting.sum()),
        )


def _share(
    part: npt.NDArray[np.float64], whole: npt.NDArray[np.float64] | np.float64
) -> npt.NDArray[np.float64]:
    """Divide, with nothing out of nothing being nothing."""
    return np.divide(part, whole, out=np.zeros_like(part), where=np.asarray(whole) > 0)


def masses(released: npt.NDArray[np.float64], states: StateSpace) -> tuple[float, float]:
    """Return the mass that goes on (moves and enters) and the mass that quits."""
    if not states.endpoints:
        return float(released.sum()), 0.0
    first_quit = states.n_moves + states.grid.n_cells
    return float(released[:first_quit].sum()), float(released[first_quit:].sum())
