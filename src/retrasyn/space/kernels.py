"""Compiled kernels that map points to cells."""

import numpy as np
import numpy.typing as npt
from numba import njit

OUTSIDE = np.uint16(0xFFFF)


@njit(nogil=True, cache=True)
def cells_of(
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    x0: float,
    y0: float,
    x1: float,
    y1: float,
    side: int,
) -> npt.NDArray[np.uint16]:
    """Return the cell of each point; points outside are assigned to the nearest cell."""
    last = side - 1.0
    width, height = x1 - x0, y1 - y0
    cells = np.empty(x.size, np.uint16)
    for i in range(x.size):
        column = min(max((x[i] - x0) / width * side, 0.0), last)
        row = min(max((y[i] - y0) / height * side, 0.0), last)
        cells[i] = int(row) * side + int(column)
    return cells


@njit(nogil=True, cache=True)
def mark_outside(
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    x0: float,
    y0: float,
    x1: float,
    y1: float,
    cells: npt.NDArray[np.uint16],
) -> int:
    """Mark the cells of points outside the box as OUTSIDE; return their number."""
    n_outside = 0
    for i in range(x.size):
        if not (x0 <= x[i] <= x1 and y0 <= y[i] <= y1):
            cells[i] = OUTSIDE
            n_outside += 1
    return n_outside
