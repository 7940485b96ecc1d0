"""What is checked about many reports, each with a figure and the limit it must keep."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from retrasyn.audit.subject import Events, Subject
from retrasyn.oracles.base import variance_at

MARGINALS_LEVEL = 1e-4
"""Chance that the marginals of a faultless oracle are found wrong, over all events together."""
N_CORRELATED = 50_000
"""Reports from which correlations are taken."""
CORRELATION_SLACK = 1.03
BIAS_LIMIT = 4.0
VARIANCE_LIMIT = 0.05
N_GROUPS = 20_000
"""Groups whose estimates are compared: their variance is then known to 1 %."""
_ROW = 8  # consecutive reports set side by side
_STANDARD_ERRORS = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: the figure, the most it may be, and what that means."""

    name: str
    value: float
    limit: float

    @property
    def ok(self) -> bool:
        """Whether the figure keeps its limit; what is not a number does not."""
        return self.value <= self.limit


def check_marginals(
    tables: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], int]],
) -> Finding:
    """Compare how often every event happened with its chance: (counts, chances, n) per input.

    The figure is the smallest p-value of exact two-sided tests, times their number.
    """
    worst, n_tests = 1.0, 0
    pooled: dict[float, tuple[int, int]] = {}
    for counts, chances, n in tables:
        worst = min(worst, _smallest_p(counts, chances, n))
        n_tests += chances.size
        for chance in set(chances.tolist()):
            same = chances == chance
            hits, trials = pooled.get(chance, (0, 0))
            pooled[chance] = hits + int(counts[same].sum()), trials + n * int(same.sum())
    for chance, (hits, trials) in pooled.items():
        worst = min(worst, _smallest_p(np.array([hits]), np.array([chance]), trials))
    n_tests += len(pooled)
    return Finding("marginals", -min(1.0, worst * n_tests), -MARGINALS_LEVEL)


def _smallest_p(counts: npt.NDArray[np.int64], chances: npt.NDArray[np.float64], n: int) -> float:
    below = stats.binom.cdf(counts, n, chances)
    above = stats.binom.sf(counts - 1, n, chances)
    return float(np.minimum(1.0, 2 * np.minimum(below, above)).min())


def check_independence(subject: Subject, events: Events, state: int) -> Finding:
    """Compare the top eigenvalue of the events' correlations with that of independent ones.

    Events of one report (where it has several that are independent), then consecutive reports.
    The figure is the excess over (1 + sqrt(d / n))^2, as a ratio.
    """
    own = events[:, state]
    rows = own[: own.size // _ROW * _ROW].reshape(-1, _ROW)
    within = events[:N_CORRELATED, : subject.n_independent]
    return Finding("independence", max(_excess(within), _excess(rows)), CORRELATION_SLACK)


def _excess(events: Events) -> float:
    """Return the top eigenvalue over what independence would make it."""
    varying = events[:, events.any(axis=0) & ~events.all(axis=0)].astype(np.float64)
    n, d = varying.shape
    if d < 2:  # noqa: PLR2004 - one column has nothing to go with
        return 0.0
    top = np.linalg.eigvalsh(np.corrcoef(varying.T))[-1]
    return float(top) / (1 + math.sqrt(d / n)) ** 2


def group_estimates(
    subject: Subject, ours: Events, theirs: Events, state: int
) -> tuple[npt.NDArray[np.float64], int]:
    """Estimate a state's share in groups of which half hold it: [n_groups], and their size."""
    half = max(1, len(ours) // N_GROUPS)
    n_groups = len(ours) // half
    hits = sum(
        events[: n_groups * half, state].reshape(n_groups, half).sum(axis=1)
        for events in (ours, theirs)
    )
    oracle, size = subject.oracle, 2 * half
    return (hits / size - oracle.q) / (oracle.p - oracle.q), size


def check_bias(subject: Subject, estimates: npt.NDArray[np.float64], size: int) -> Finding:
    """Compare the mean estimate with the truth, a half; the figure is in standard errors."""
    variance = variance_at(subject.oracle, size, 0.5)
    error = math.sqrt(variance / estimates.size)
    return Finding("unbiased", abs(float(estimates.mean()) - 0.5) / error, BIAS_LIMIT)


def check_variance(subject: Subject, estimates: npt.NDArray[np.float64], size: int) -> Finding:
    """Compare the variance of the estimates with what the oracle says of it.

    The figure is the deviation, as a share. From few groups the variance itself is known badly;
    then five of its standard errors are allowed.
    """
    oracle = subject.oracle
    variance = variance_at(oracle, size, 0.5)
    spreads = [chance * (1 - chance) for chance in (oracle.p, oracle.q)]
    kurtosis = sum(s * (1 - 6 * s) for s in spreads) / (size / 2 * sum(spreads) ** 2)
    limit = max(VARIANCE_LIMIT, _STANDARD_ERRORS * math.sqrt((2 + kurtosis) / estimates.size))
    return Finding("variance", abs(float(estimates.var()) / variance - 1), limit)
