"""Compiled loops over reporters, for the replay."""

import numpy as np
import numpy.typing as npt
from numba import njit


@njit(nogil=True, cache=True)
def add_spend(
    total: npt.NDArray[np.int64],
    worst: npt.NDArray[np.int64],
    keys: npt.NDArray[np.int64],
    epsilon: int,
) -> None:
    """Add one report of each key to its running total, and update the key's maximum."""
    for i in range(keys.size):
        key = keys[i]
        total[key] += epsilon
        worst[key] = max(worst[key], total[key])


@njit(nogil=True, cache=True)
def remove_spend(total: npt.NDArray[np.int64], keys: npt.NDArray[np.int64], epsilon: int) -> None:
    """Subtract one report of each key from its running total."""
    for i in range(keys.size):
        total[keys[i]] -= epsilon
