"""Straight lines through measured times: how a cost grows (Sec. IV-B)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Fit:
    """y = slope x + intercept by least squares, and the part of the variance it explains."""

    slope: float
    intercept: float
    explained: float


def straight_line(x: Sequence[float], y: Sequence[float]) -> Fit | None:
    """Fit a line, or return None if there are not two different x.

    >>> straight_line([1, 2, 3], [3, 5, 7]).slope
    2.0
    """
    across, up = np.asarray(x, float), np.asarray(y, float)
    if np.unique(across).size < 2:  # noqa: PLR2004 - a line needs two points
        return None
    far, high = across - across.mean(), up - up.mean()
    slope = float(far @ high / (far @ far))
    left, total = float(((high - slope * far) ** 2).sum()), float(high @ high)
    explained = 1 - left / total if total > 0 else 1.0
    return Fit(slope, float(up.mean() - slope * across.mean()), explained)


def power_law(x: Sequence[float], y: Sequence[float]) -> Fit | None:
    """Fit y = exp(intercept) x^slope on logarithms, leaving out what is not positive.

    >>> round(power_law([1, 10, 100], [2, 200, 20_000]).slope, 6)
    2.0
    """
    known = [(a, b) for a, b in zip(x, y, strict=True) if a > 0 and b > 0]
    return straight_line([np.log(a) for a, _ in known], [np.log(b) for _, b in known])
