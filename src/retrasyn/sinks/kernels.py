"""Releases by timestamp to columns by stream, compiled."""

import numpy as np
import numpy.typing as npt
from numba import njit


@njit(nogil=True, cache=True)
def scatter(
    ids: npt.NDArray[np.int64],
    t: int,
    shift: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    column: npt.NDArray[np.float64],
) -> None:
    """Put each stream's value of timestamp t where it belongs: at row shift[id] + t."""
    for i in range(ids.size):
        column[shift[ids[i]] + t] = values[i]
