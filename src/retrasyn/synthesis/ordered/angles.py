"""Directions that a step can take."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from retrasyn.synthesis.ordered.kernels import ANGLES


@lru_cache(maxsize=1)
def angles() -> npt.NDArray[np.float64]:
    """Return cosine and sine of evenly spread directions: [4096, 2]."""
    turn = (np.arange(ANGLES) + 0.5) * (2.0 * np.pi / ANGLES)
    return np.stack([np.cos(turn), np.sin(turn)], axis=1)
