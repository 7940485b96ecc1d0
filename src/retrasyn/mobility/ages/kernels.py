"""Age histograms of many experts at once, compiled."""

import numpy as np
import numpy.typing as npt
from numba import njit


@njit(nogil=True, cache=True)
def step_ages(
    histograms: npt.NDArray[np.float64],
    hazards: npt.NDArray[np.float64],
    size: float,
    entering: npt.NDArray[np.float64],
    quitting: npt.NDArray[np.float64],
) -> None:
    """Let every expert's population grow a timestamp older and fill it up to its size.

    Rows are experts, columns ages from 1 on; the last column holds that age and above. Should
    more survive than there are people, all survivors are scaled down and the excess quits.
    """
    n_experts, oldest = histograms.shape
    for e in range(n_experts):
        gone = survivors = 0.0
        carried = 0.0
        for a in range(oldest):
            here = histograms[e, a]
            left = here * hazards[e, a]
            gone += left
            stayed = here - left
            survivors += stayed
            if a == oldest - 1:
                histograms[e, a] = carried + stayed
            else:
                histograms[e, a] = carried
                carried = stayed
        if survivors > size:
            for a in range(1, oldest):
                histograms[e, a] *= size / survivors
            gone += survivors - size
            survivors = size
        histograms[e, 0] = size - survivors
        entering[e] = size - survivors
        quitting[e] = gone
