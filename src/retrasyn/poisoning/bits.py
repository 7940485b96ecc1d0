"""How often each bit is set, against what frequencies could be.

A bit of a state with frequency f is set by n f fair coins and n (1 - f) coins with q. That sum is
less spread than a binomial with the mean probability, so binomial tails bound it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from retrasyn.oracles.kernels import count_bits
from retrasyn.poisoning.alarms import Alarm, nobody


def too_small(n: int) -> str | None:
    """Say why bits cannot be tested, if so."""
    return None if n else "bits: there are no reports"


def find(
    packed: npt.NDArray[np.uint8],
    n_states: int,
    q: float,
    level: float,
    expected: npt.NDArray[np.float64] | None,
    drift: float,
) -> Alarm | None:
    """Look for bits set more or less often than any plausible frequency allows.

    Nobody is suspected: every honest device sets such a bit now and then.
    """
    n = len(packed)
    counts = count_bits(packed, n_states)
    if expected is None:
        least, most = np.zeros(n_states), np.ones(n_states)
    else:
        least = np.clip(expected - drift, 0.0, 1.0)
        most = np.clip(expected + drift, 0.0, 1.0)
    low, high = (q + share * (0.5 - q) for share in (least, most))
    limit = level / (2 * n_states)
    rare = binom.cdf(counts, n, low)
    often = binom.sf(counts - 1, n, high)
    odd = np.flatnonzero((rare < limit) | (often < limit))
    if odd.size == 0:
        return None
    worst = odd[np.argmin(np.minimum(rare, often)[odd])]
    reason = (
        f"bit {worst} is set in {counts[worst]:,} of {n:,} reports, where {n * low[worst]:,.0f} "
        f"to {n * high[worst]:,.0f} would be plausible; {odd.size} bits are like it"
    )
    return Alarm(test="bits", reason=reason, suspects=nobody())
