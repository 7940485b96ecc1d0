"""Random spans of time, determined by the seed and the purpose."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from retrasyn.errors import SettingError
from retrasyn.randomness.words import address

MOST = 10_000_000
"""Upper limit for numbers of timestamps, queries or ranks; anything above is a mistake."""


def random_spans(
    n_timestamps: int, span: int, n: int, *, seed: int, purpose: str
) -> npt.NDArray[np.int64]:
    """Draw the first timestamps of n spans that lie entirely on the timeline: [n].

    >>> random_spans(5, 20, 3, seed=0, purpose="pattern").tolist()
    [0, 0, 0]
    """
    check_settings(span=span, spans=n, seed=seed)
    draw = np.random.default_rng(address(seed, 0, purpose))
    return draw.integers(0, max(n_timestamps - span, 0), size=n, endpoint=True)


def check_settings(**settings: int) -> None:
    """Refuse out-of-range settings before any data is read."""
    for name, value in settings.items():
        if name == "seed" and value < 0:
            raise SettingError(f"seed={value} must be a whole number from 0 on")
        if name != "seed" and (int(value) != value or not 1 <= value <= MOST):
            raise SettingError(f"{name}={value} must be a whole number from 1 to {MOST:,}")
