"""A lower bound on epsilon from counts (Clopper and Pearson, 1934).

If one event happens in k of n reports about one state and in fewer about another, epsilon is at
least the logarithm of the ratio of the two chances. Each chance is bounded exactly, with half of
alpha, so the result is above the true epsilon with probability alpha at most.
"""

import math

from scipy import stats


def chance_bounds(hits: int, n: int, *, alpha: float) -> tuple[float, float]:
    """Return bounds of a chance, each missed with probability alpha at most.

    >>> low, high = chance_bounds(0, 100, alpha=0.01)
    >>> low, round(high, 4)
    (0.0, 0.045)
    """
    low = 0.0 if hits == 0 else float(stats.beta.ppf(alpha, hits, n - hits + 1))
    high = 1.0 if hits == n else float(stats.beta.isf(alpha, hits + 1, n - hits))
    return low, high


def epsilon_lower_bound(hits: int, other_hits: int, n: int, *, alpha: float) -> float:
    """Return what epsilon is at least, from hits of an event among n reports of each input.

    >>> round(epsilon_lower_bound(365_529, 134_471, 1_000_000, alpha=1e-6), 3)
    0.981
    """
    low, _ = chance_bounds(hits, n, alpha=alpha / 2)
    _, high = chance_bounds(other_hits, n, alpha=alpha / 2)
    return max(0.0, math.log(low / high)) if low > 0 else 0.0
