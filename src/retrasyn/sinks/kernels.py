"""Compiled kernel: regroups points from timestamps to streams."""

import numpy as np
import numpy.typing as npt
from numba import njit


@njit(nogil=True, cache=True)
def scatter(
    ids: npt.NDArray[np.int64],
    t: int,
    shift: npt.NDArray[np.int64],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    x_out: npt.NDArray[np.float64],
    y_out: npt.NDArray[np.float64],
) -> None:
    """Write each stream's point of timestamp t to row shift[id] + t."""
    for i in range(ids.size):
        row = shift[ids[i]] + t
        x_out[row] = x[i]
        y_out[row] = y[i]
