"""The mobility model of released frequencies, compiled."""

import numpy as np
import numpy.typing as npt
from numba import njit


@njit(nogil=True, cache=True)
def build_model(
    released: npt.NDArray[np.float64],
    move_index: npt.NDArray[np.int32],
    n_moves: int,
    move: npt.NDArray[np.float64],
    quit_hazard: npt.NDArray[np.float64],
    enter: npt.NDArray[np.float64],
    quit_share: npt.NDArray[np.float64],
) -> None:
    """Fill a model in which everything is zero; what has no mass stays so (Eq. 6)."""
    n_cells = quit_hazard.size
    endpoints = released.size > n_moves
    entering = quitting = 0.0
    for cell in range(n_cells):
        quits = 0.0
        if endpoints:
            quits = released[n_moves + n_cells + cell]
            entering += released[n_moves + cell]
            quitting += quits
        leaving = quits
        for direction in range(9):
            if move_index[cell, direction] >= 0:
                leaving += released[move_index[cell, direction]]
        if leaving > 0.0:
            quit_hazard[cell] = quits / leaving
            for direction in range(9):
                if move_index[cell, direction] >= 0:
                    move[cell, direction] = released[move_index[cell, direction]] / leaving
    for cell in range(n_cells):
        if entering > 0.0:
            enter[cell] = released[n_moves + cell] / entering
        if quitting > 0.0:
            quit_share[cell] = released[n_moves + n_cells + cell] / quitting
