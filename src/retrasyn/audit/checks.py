"""What is checked about many reports, with bounds on epsilon from counts, and the verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from retrasyn.audit.laws import Events
from retrasyn.audit.subject import Subject

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
class CheckResult:
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
) -> CheckResult:
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
    return CheckResult("marginals", -min(1.0, worst * n_tests), -MARGINALS_LEVEL)


def _smallest_p(counts: npt.NDArray[np.int64], chances: npt.NDArray[np.float64], n: int) -> float:
    below = stats.binom.cdf(counts, n, chances)
    above = stats.binom.sf(counts - 1, n, chances)
    return float(np.minimum(1.0, 2 * np.minimum(below, above)).min())


def check_independence(subject: Subject, events: Events, state: int) -> CheckResult:
    """Compare the top eigenvalue of the events' correlations with that of independent ones.

    Events of one report (where it has several that are independent), then consecutive reports.
    The figure is the excess over (1 + sqrt(d / n))^2, as a ratio.
    """
    own = events[:, state]
    rows = own[: own.size // _ROW * _ROW].reshape(-1, _ROW)
    within = events[:N_CORRELATED, : subject.n_independent]
    return CheckResult("independence", max(_excess(within), _excess(rows)), CORRELATION_SLACK)


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


def check_bias(subject: Subject, estimates: npt.NDArray[np.float64], size: int) -> CheckResult:
    """Compare the mean estimate with the truth, a half; the figure is in standard errors."""
    variance = subject.oracle.variance_at(size, 0.5)
    error = math.sqrt(variance / estimates.size)
    return CheckResult("unbiased", abs(float(estimates.mean()) - 0.5) / error, BIAS_LIMIT)


def check_variance(subject: Subject, estimates: npt.NDArray[np.float64], size: int) -> CheckResult:
    """Compare the variance of the estimates with what the oracle says of it.

    The figure is the deviation, as a share. From few groups the variance itself is known badly;
    then five of its standard errors are allowed.
    """
    oracle = subject.oracle
    variance = oracle.variance_at(size, 0.5)
    spreads = [chance * (1 - chance) for chance in (oracle.p, oracle.q)]
    kurtosis = sum(s * (1 - 6 * s) for s in spreads) / (size / 2 * sum(spreads) ** 2)
    limit = max(VARIANCE_LIMIT, _STANDARD_ERRORS * math.sqrt((2 + kurtosis) / estimates.size))
    return CheckResult("variance", abs(float(estimates.var()) / variance - 1), limit)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What an audit found. Every figure stands beside its limit."""

    oracle: str
    path: str
    epsilon: float
    n_answers: int
    reports_per_input: int
    alpha: float
    epsilon_lower_bound: float
    margin: float  # by how much the bound lies below what was seen
    exact_fault: str | None  # of the exact law; None: it holds, or the path was not asked
    repeats_after_fork: bool
    marginals: CheckResult
    independence: CheckResult
    unbiased: CheckResult
    variance: CheckResult

    @property
    def violations(self) -> tuple[str, ...]:
        """The names of the checks that failed."""
        failed = {
            "epsilon": self.epsilon_lower_bound > self.epsilon,
            "exact": self.exact_fault is not None,
            "marginals": not self.marginals.ok,
            "independence": not self.independence.ok or self.repeats_after_fork,
            "unbiased": not self.unbiased.ok,
            "variance": not self.variance.ok,
        }
        return tuple(name for name, fails in failed.items() if fails)

    def to_dict(self) -> dict[str, object]:
        """Return plain values, ready for JSON."""
        failed = self.violations
        return {
            "oracle": self.oracle,
            "path": self.path,
            "epsilon": self.epsilon,
            "epsilon_lower_bound": self.epsilon_lower_bound,
            "alpha": self.alpha,
            "reports_per_input": self.reports_per_input,
            "answers": self.n_answers,
            "exact_ok": "exact" not in failed if self.path == "devices" else None,
            "marginals_ok": "marginals" not in failed,
            "independence_ok": "independence" not in failed,
            "unbiased_ok": "unbiased" not in failed,
            "variance_ok": "variance" not in failed,
            "violations": list(failed),
        }
