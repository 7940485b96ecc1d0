"""Random spans of time, the same for the same seed and purpose."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from retrasyn.errors import SettingError
from retrasyn.randomness.addresses import address


def random_spans(
    n_timestamps: int, span: int, n: int, *, seed: int, purpose: str
) -> npt.NDArray[np.int64]:
    """Draw the first timestamps of n spans that lie wholly on the timeline: [n].

    >>> random_spans(5, 20, 3, seed=0, purpose="pattern").tolist()
    [0, 0, 0]
    """
    if span < 1 or n < 1:
        raise SettingError(f"span {span} and the number of spans {n} must be at least 1")
    draw = np.random.default_rng(address(seed, 0, purpose))
    return draw.integers(0, max(n_timestamps - span, 0), size=n, endpoint=True)
