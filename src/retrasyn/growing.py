"""Arrays that grow by doubling, so that appending stays cheap."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

_Number = TypeVar("_Number", bound=np.generic)


def grown(array: npt.NDArray[_Number], size: int, fill: float) -> npt.NDArray[_Number]:
    """Return the array with room for at least `size` entries, new ones filled.

    >>> grown(np.array([1, 2]), 3, 0).tolist()
    [1, 2, 0, 0]
    """
    if size <= array.size:
        return array
    larger = np.full(max(size, 2 * array.size), fill, array.dtype)
    larger[: array.size] = array
    return larger
