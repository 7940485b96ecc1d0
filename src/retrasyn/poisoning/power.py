"""How likely fakes are to be seen, by closed forms: what an inspection cannot promise.

Each figure is the power of the best single test against reports of which a share are fakes. It
rests on the limit laws of the tests; `tests/poisoning` compares it with what was counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from retrasyn.poisoning import statistics
from retrasyn.poisoning.evidence import Evidence
from retrasyn.poisoning.statistics import WeightLaw, at_most, more_than

SHARES = (0.02, 0.01)
"""Shares of fakes that power is stated for."""
TARGETS = (20, 10, 5, 2, 1)
"""Numbers of states that fakes push, with a plausible number of ones."""
NOISES = {"all ones": 1e6, "too few ones": 0.6, "too many ones": 1.5}
"""The noise of fakes with a wrong number of ones, in multiples of the honest noise."""
_EVEN = 0.5  # what is seen less often than this is named


def weak_against(sample: Evidence, level: float, *, n_round: int) -> Iterator[str]:
    """Yield a line for each kind of fakes that is missed more often than seen.

    Identical reports show within one round, of `n_round` reports; all else over the sample.
    """
    if not sample.n:
        return
    by_weight = {name: of_weights(sample, level, factor) for name, factor in NOISES.items()}
    for place, share in enumerate(SHARES):
        powers = {"identical reports": float(more_than(1, n_round, share))}
        powers |= {f"reports with {name}": power[place] for name, power in by_weight.items()}
        powers["reports with always as many ones"] = of_one_weight(sample, level, share)
        for k in TARGETS:
            tests = of_pairs, of_spectrum
            power = max(test(sample, level, share, k) for test in tests)
            powers[f"reports that push {k} state{'s' * (k > 1)}"] = power
        for kind, power in powers.items():
            if power < _EVEN:
                yield f"{share:.0%} of {sample.n:,} as {kind}: seen with probability {power:.2f}"


def of_weights(sample: Evidence, level: float, factor: float) -> list[float]:
    """Return the power of the test of weights against fakes of another noise, by their share."""
    n, n_states, noise = sample.n, sample.n_states, min(sample.q * factor, 1.0)
    law, ones = WeightLaw.of(n_states, sample.q), np.arange(n_states + 1)
    if noise < sample.q:
        honest, fake = law.at_most, at_most(ones, n_states, noise)
    else:
        honest, fake = law.at_least, more_than(ones - 1, n_states, noise)
    most = _quantile(statistics.weight_limit(level, n_states), n, honest)  # without an alarm
    shares = np.array(SHARES)[:, None]
    powers: list[float] = more_than(most, n, (1 - shares) * honest + shares * fake).max(1).tolist()
    return powers


def of_one_weight(sample: Evidence, level: float, share: float) -> float:
    """Return the power of the test of weights against fakes with the commonest number of ones."""
    commonest = np.array([WeightLaw.of(sample.n_states, sample.q).exactly.max()])
    most = _quantile(statistics.weight_limit(level, sample.n_states), sample.n, commonest)
    return float(more_than(most, sample.n, (1 - share) * commonest + share)[0])


def _quantile(tail: float, n: int, p: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the least numbers that n events exceed with a chance of at most `tail`."""
    below, found = np.full(p.shape, -1), np.full(p.shape, n)
    while (found - below > 1).any():
        middle = (below + found) // 2
        enough = more_than(middle, n, p) <= tail
        below, found = np.where(enough, below, middle), np.where(enough, middle, found)
    return found


def of_pairs(sample: Evidence, level: float, share: float, n_targets: int) -> float:
    """Return the power of the test of pairs; every two targets are taken as a chance of their own.

    The correlation of two targets spreads a little more than that of honest bits.
    """
    n, q = sample.n, sample.q
    if statistics.too_few_for_pairs(sample.n, sample.n_states, q):
        return 0.0
    mean, correlation = _targets(q, share)
    variance = mean * (1 - mean)
    honest, fake = q * (1 - q) + (q - mean) ** 2, (1 - mean) ** 2
    square = ((1 - share) * honest**2 + share * fake**2) / variance**2
    spread = math.sqrt(square - correlation**2)
    skewness = (1 - 2 * mean) ** 2 / variance
    limit = float(statistics.pair_limit(n, sample.n_states, level, skewness))
    missed = NormalDist(math.sqrt(n) * correlation, spread).cdf(limit)
    return 1.0 - missed ** math.comb(n_targets, 2)


def of_spectrum(sample: Evidence, level: float, share: float, n_targets: int) -> float:
    """Return the power of the test of the spectrum.

    k targets of correlation r raise one eigenvalue to 1 + (k - 1) r. If that exceeds
    1 + sqrt(n_states / n), it stands out of the noise, which lifts it further (Baik, Ben Arous and
    Peche); if not, it is lost in it.
    """
    n, n_states = sample.n, sample.n_states
    if statistics.too_few_for_spectrum(sample.n, n_states, sample.q):
        return 0.0
    spike, ratio = (n_targets - 1) * _targets(sample.q, share)[1], n_states / n
    if spike**2 <= ratio:
        return 0.0
    top = (1 + spike) * (1 + ratio / spike)
    spread = (1 + spike) * math.sqrt(2 / n * (1 - ratio / spike**2))
    return 1.0 - NormalDist(top, spread).cdf(statistics.edge(n, n_states, level))


def _targets(q: float, share: float) -> tuple[float, float]:
    """Return the mean of a target's bit, and the correlation of two, where fakes set both."""
    mean = q + share * (1 - q)
    return mean, share * (1 - share) * (1 - q) ** 2 / (mean * (1 - mean))
