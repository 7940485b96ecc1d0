"""Statistical checks on many reports, lower bounds on epsilon from counts, and the verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from retrasyn.audit.laws import Events
from retrasyn.audit.subject import Subject

MARGINALS_LEVEL = 1e-4
"""Probability that a correct oracle fails the marginals check, over all events together."""
N_CORRELATED = 50_000
"""Reports used to estimate correlations."""
CORRELATION_SLACK = 1.03
BIAS_LIMIT = 4.0
VARIANCE_LIMIT = 0.05
N_GROUPS = 20_000
"""Groups whose estimates are compared; this many determine their variance to 1 %."""
_ROW = 8  # consecutive reports compared with each other
_STANDARD_ERRORS = 5.0


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check: the value found, its limit, and what it means."""

    name: str
    value: float
    limit: float

    @property
    def ok(self) -> bool:
        """Whether the value is within its limit; NaN is not."""
        return self.value <= self.limit


def check_marginals(
    tables: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], int]],
) -> CheckResult:
    """Test how often every event happened against its probability: (counts, chances, n) per input.

    The value is the smallest p-value of exact two-sided tests, times their number (Bonferroni).
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
    """Test the top eigenvalue of the events' correlation matrix against that of independent events.

    Covers events within one report (where several are independent) and consecutive reports.
    The value is the ratio to (1 + sqrt(d / n))^2.
    """
    own = events[:, state]
    rows = own[: own.size // _ROW * _ROW].reshape(-1, _ROW)
    within = events[:N_CORRELATED, : subject.n_independent]
    return CheckResult("independence", max(_excess(within), _excess(rows)), CORRELATION_SLACK)


def _excess(events: Events) -> float:
    """Return the ratio of the top eigenvalue to its value under independence."""
    varying = events[:, events.any(axis=0) & ~events.all(axis=0)].astype(np.float64)
    n, d = varying.shape
    if d < 2:  # noqa: PLR2004 - one column has nothing to go with
        return 0.0
    top = np.linalg.eigvalsh(np.corrcoef(varying.T))[-1]
    return float(top) / (1 + math.sqrt(d / n)) ** 2


def group_estimates(
    subject: Subject, ours: Events, theirs: Events, state: int
) -> tuple[npt.NDArray[np.float64], int]:
    """Estimate a state's share in groups half of which hold it: [n_groups], and the group size."""
    half = max(1, len(ours) // N_GROUPS)
    n_groups = len(ours) // half
    hits = sum(
        events[: n_groups * half, state].reshape(n_groups, half).sum(axis=1)
        for events in (ours, theirs)
    )
    oracle, size = subject.oracle, 2 * half
    return (hits / size - oracle.q) / (oracle.p - oracle.q), size


def check_bias(subject: Subject, estimates: npt.NDArray[np.float64], size: int) -> CheckResult:
    """Test the mean estimate against the truth, 1/2; the value is in standard errors."""
    variance = subject.oracle.variance_at(size, 0.5)
    error = math.sqrt(variance / estimates.size)
    return CheckResult("unbiased", abs(float(estimates.mean()) - 0.5) / error, BIAS_LIMIT)


def check_variance(subject: Subject, estimates: npt.NDArray[np.float64], size: int) -> CheckResult:
    """Test the variance of the estimates against the oracle's formula.

    The value is the relative deviation. With few groups the variance itself is poorly known;
    then five of its standard errors are allowed.
    """
    oracle = subject.oracle
    variance = oracle.variance_at(size, 0.5)
    spreads = [chance * (1 - chance) for chance in (oracle.p, oracle.q)]
    kurtosis = sum(s * (1 - 6 * s) for s in spreads) / (size / 2 * sum(spreads) ** 2)
    limit = max(VARIANCE_LIMIT, _STANDARD_ERRORS * math.sqrt((2 + kurtosis) / estimates.size))
    return CheckResult("variance", abs(float(estimates.var()) / variance - 1), limit)


def chance_bounds(hits: int, n: int, *, alpha: float) -> tuple[float, float]:
    """Return lower and upper confidence bounds of a probability, each missed with chance alpha.

    >>> low, high = chance_bounds(0, 100, alpha=0.01)
    >>> low, round(high, 4)
    (0.0, 0.045)
    """
    low = 0.0 if hits == 0 else float(stats.beta.ppf(alpha, hits, n - hits + 1))
    high = 1.0 if hits == n else float(stats.beta.isf(alpha, hits + 1, n - hits))
    return low, high


def epsilon_lower_bound(hits: int, other_hits: int, n: int, *, alpha: float) -> float:
    """Return a lower confidence bound on epsilon, from the hits of an event in n reports per input.

    >>> round(epsilon_lower_bound(365_529, 134_471, 1_000_000, alpha=1e-6), 3)
    0.981
    """
    low, _ = chance_bounds(hits, n, alpha=alpha / 2)
    _, high = chance_bounds(other_hits, n, alpha=alpha / 2)
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of an audit, with every value beside its limit."""

    oracle: str
    path: str
    epsilon: float
    n_answers: int
    reports_per_input: int
    alpha: float
    epsilon_lower_bound: float
    margin: float  # distance of the lower bound from the point estimate
    exact_fault: str | None  # in the exact law; None: it holds, or the path was not examined
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
