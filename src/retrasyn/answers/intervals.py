"""How far an answer may be off, from the same answer of every replica."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

COVERS = 0.9
_NORMAL = 1.645  # standard errors to each side that cover that much of a normal law


@dataclass(frozen=True, slots=True)
class Intervals:
    """Standard errors of values, and intervals that cover the true ones nine times of ten.

    What is not negative is off by a factor rather than by a sum, so an interval reaches farther
    up than down.

    >>> found = Intervals.of([100.0, 1.0], [[90.0, 0.0], [110.0, 2.0]])
    >>> found.standard_error.tolist(), found.unclear.tolist()
    ([10.0, 1.0], [False, True])
    >>> found.low.round().tolist(), found.high.round().tolist()
    ([72.0, 0.0], [132.0, 10.0])
    """

    standard_error: npt.NDArray[np.float64]  # [...] as the values
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    unclear: npt.NDArray[np.bool_]  # where the interval says next to nothing

    @classmethod
    def of(cls, values: npt.ArrayLike, replicas: npt.ArrayLike) -> Intervals:
        """Measure how far the replicas' answers are from the release's: replicas is [B, ...]."""
        value, others = np.asarray(values, np.float64), np.asarray(replicas, np.float64)
        error = np.sqrt(np.mean((others - value) ** 2, axis=0))
        width = _quantile(len(others))
        relative = np.divide(error, value, out=np.zeros_like(error), where=value > 0)
        upwards = value * np.exp(width * np.sqrt(np.log1p(relative**2)))
        low, high = (
            np.maximum(value - width * error, 0.0),
            np.maximum(upwards, value + width * error),
        )
        return cls(error, low, high, (low <= 0.0) & (high > 0.0))


def _quantile(n: int) -> float:
    """Return the 95 % quantile of Student's law with n degrees of freedom, near enough from 5."""
    z = _NORMAL
    more = (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
    return z + more
