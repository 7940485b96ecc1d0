"""How far an answer may be off, from the same answer of every replica."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

COVERS = 0.9
_WIDTH = 1.645  # standard errors to each side that cover that much of a normal law


@dataclass(frozen=True, slots=True)
class Intervals:
    """Standard errors of values, and intervals that cover the true ones nine times of ten."""

    standard_error: npt.NDArray[np.float64]  # [...] as the values
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    unclear: npt.NDArray[np.bool_]  # where the interval says next to nothing

    @classmethod
    def of(cls, values: npt.ArrayLike, replicas: npt.ArrayLike) -> Intervals:
        """Measure how far the replicas' answers are from the release's: replicas is [B, ...]."""
        value = np.asarray(values, np.float64)
        apart = np.asarray(replicas, np.float64) - value
        error = np.sqrt(np.mean(apart**2, axis=0))
        low, high = np.maximum(value - _WIDTH * error, 0.0), value + _WIDTH * error
        return cls(error, low, high, (low <= 0.0) & (high > 0.0))
