"""Bits that go together: the top eigenvalue of their correlations.

Bits of honest reports are independent given the state, and a state only sets one of them: across a
population their correlations are zero or a little negative, whatever the frequencies. So the top
eigenvalue of the sample's correlations stays where pure noise puts it (the edge of Marchenko and
Pastur, with fluctuations after Tracy and Widom). Fakes that set the same bits together add an
eigenvalue beyond the edge once there are enough of them, or of their bits.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from retrasyn.poisoning.alarms import Alarm, nobody
from retrasyn.poisoning.unpacking import blocks

_FEWEST = 200
_FEWEST_ONES = 100  # of each bit; rarer ones are too lumpy for the law below
_SCORE = 3.5  # standard deviations along the eigenvector from which on a report is suspected
# Upper quantiles of the Tracy-Widom law of order 1.
_TAILS = (0.1, 0.05, 0.025, 0.01, 0.005, 0.0025, 0.001, 0.0001)
_QUANTILES = (0.4501, 0.9793, 1.4538, 2.0234, 2.4224, 2.7973, 3.2724, 4.3655)


def too_small(n: int, n_states: int, q: float) -> str | None:
    """Say why the spectrum cannot be tested, if so."""
    if n < _FEWEST or n * q < _FEWEST_ONES or n_states < 2:  # noqa: PLR2004 - a bit needs another
        return f"spectrum: {n:,} reports of {n_states} bits have no law to compare with"
    return None


def edge(n: int, n_states: int, level: float) -> float:
    """Return what the top eigenvalue of pure noise exceeds with the given probability."""
    rows, columns = math.sqrt(n - 1), math.sqrt(n_states)
    centre = (rows + columns) ** 2
    scale = (rows + columns) * math.cbrt(1 / rows + 1 / columns)
    quantile = float(np.interp(-math.log(level), -np.log(_TAILS), _QUANTILES))
    return (centre + scale * quantile) / n


def find(packed: npt.NDArray[np.uint8], n_states: int, level: float) -> Alarm | None:
    """Compare the top eigenvalue with the edge, and suspect reports far along its vector."""
    n = len(packed)
    total = np.zeros(n_states)
    products = np.zeros((n_states, n_states))
    for _, bits in blocks(packed, n_states):
        block = bits.astype(np.float32)  # whole numbers below 2^24: sums are exact
        total += block.sum(axis=0, dtype=np.float64)
        products += block.T @ block
    mean = total / n
    spread = np.sqrt(mean * (1 - mean))
    varies = spread > 0  # a bit that never changes goes with none
    if np.count_nonzero(varies) < 2:  # noqa: PLR2004 - as above
        return None
    mean, spread = mean[varies], spread[varies]
    covariance = products[np.ix_(varies, varies)] / n - np.outer(mean, mean)
    correlation = covariance / np.outer(spread, spread)
    last = len(correlation) - 1
    values, vectors = eigh(correlation, subset_by_index=[last, last])
    top, limit = float(values[0]), edge(n, last + 1, level)
    if top <= limit:
        return None
    along = vectors[:, 0] / spread
    scores = np.concatenate(
        [(bits[:, varies] - mean) @ along for _, bits in blocks(packed, n_states)]
    )
    if np.mean(scores**3) < 0:
        scores = -scores  # a minority that goes together stands out on one side
    suspects = np.flatnonzero(scores > _SCORE)
    reason = (
        f"bits go together: the top eigenvalue of their correlations is {top:.3f}, above "
        f"{limit:.3f}, where independent noise stays; {suspects.size:,} of {n:,} reports stand out"
    )
    return Alarm(test="spectrum", reason=reason, suspects=suspects if suspects.size else nobody())
