"""Statistical tests for fake reports: duplicates, weights, bits, pairs, spectrum.

Honest bits are independent given the state, whatever the population does. Duplicates are looked for
among the reports of one round. The other tests need sums only: the evidence of one round, or of all
rounds of a gap. Since a report is about one state, two bits never go together in any mixture of
honest crowds more than by chance; so it does not matter if people move from round to round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import scipy  # loads its parts when they are used: not at the start of every service

from retrasyn.poisoning.evidence import MOST_STATES, Evidence, blocks

Packed = npt.NDArray[np.uint8]
"""The reports of one round, one per row."""


def nobody() -> npt.NDArray[np.int64]:
    """Return an empty array of row numbers."""
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One finding that honest devices are unlikely to cause."""

    test: str  # duplicates, weights, bits, pairs or spectrum; "pooled" before it: of several rounds
    reason: str  # what was observed and what was expected, in a sentence
    suspects: npt.NDArray[np.int64]  # rows of the reports that caused it, where identifiable


def more_than(k: npt.ArrayLike, n: int, p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the chance that more than k of n events of probability p happen.

    >>> more_than([-1, 0, 1, 2, 3], 2, 0.5).tolist()
    [1.0, 0.75, 0.25, 0.0, 0.0]
    """
    tail: npt.NDArray[np.float64] = scipy.special.bdtrc(np.minimum(k, n), n, p)
    return tail


def at_most(k: npt.ArrayLike, n: int, p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the chance that k or fewer of n events of probability p happen; k is 0 or more."""
    tail: npt.NDArray[np.float64] = scipy.special.bdtr(np.minimum(k, n), n, p)
    return tail


def exactly(k: npt.NDArray[np.int64], n: int, p: float) -> npt.NDArray[np.float64]:
    """Return the chance that k of n events of probability p happen.

    >>> exactly(np.arange(4), 2, 0.5).round(12).tolist()
    [0.25, 0.5, 0.25, 0.0]
    """
    few = np.minimum(k, n)
    special = scipy.special
    choices = special.gammaln(n + 1) - special.gammaln(few + 1) - special.gammaln(n - few + 1)
    chances: npt.NDArray[np.float64] = np.exp(
        choices + special.xlogy(few, p) + special.xlog1py(n - few, -p)
    )
    return np.where(k > n, 0.0, chances)


def too_few_for_bits(n: int) -> str | None:
    """Return why bits cannot be tested; None if they can."""
    return None if n else "bits: there are no reports"


def find_bits(
    sample: Evidence, level: float, expected: npt.NDArray[np.float64] | None, drift: float
) -> Alarm | None:
    """Look for bits set more or less often than any plausible frequency allows.

    No report is suspected: every honest device sets such a bit now and then.
    """
    n, q, counts = sample.n, sample.q, sample.counts
    if expected is None:
        least, most = np.zeros(sample.n_states), np.ones(sample.n_states)
    else:
        least = np.clip(expected - drift, 0.0, 1.0)
        most = np.clip(expected + drift, 0.0, 1.0)
    low, high = (q + share * (0.5 - q) for share in (least, most))
    limit = level / (2 * sample.n_states)
    rare = at_most(counts, n, low)
    often = more_than(counts - 1, n, high)
    odd = np.flatnonzero((rare < limit) | (often < limit))
    if odd.size == 0:
        return None
    worst = odd[np.argmin(np.minimum(rare, often)[odd])]
    reason = (
        f"bit {worst} is set in {counts[worst]:,} of {n:,} reports, where {n * low[worst]:,.0f} "
        f"to {n * high[worst]:,.0f} would be plausible; {odd.size} bits are like it"
    )
    return Alarm(test="bits", reason=reason, suspects=nobody())


def too_few_for_duplicates(n: int, n_states: int, q: float, level: float) -> str | None:
    """Return why duplicates prove nothing here; None if they do.

    Two honest bits are equal with probability at most q^2 + (1 - q)^2 (1/2 if one or both of them
    are true bits), which bounds the number of equal pairs that occur by chance.
    """
    pairs = n * (n - 1) / 2
    if pairs == 0:
        return "duplicates: there are fewer than two reports"
    log_expected = math.log(pairs) + n_states * math.log(q * q + (1 - q) ** 2)
    if log_expected > math.log(level):
        return f"duplicates: {n:,} reports of {n_states} bits may be equal by chance"
    return None


def find_duplicates(packed: Packed) -> Alarm | None:
    """Suspect all reports that occur more than once."""
    rows = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, which, sizes = np.unique(rows, return_inverse=True, return_counts=True)
    suspects = np.flatnonzero(sizes[which] > 1)
    if suspects.size == 0:
        return None
    reason = (
        f"{suspects.size:,} of {len(packed):,} reports are equal to another, the most frequent "
        f"{sizes.max():,} times; honest noise makes no twins"
    )
    return Alarm(test="duplicates", reason=reason, suspects=suspects)


_NAMED = 0.8  # suspects are named only if at least this share of them must be fake


def too_few_for_weights(n: int) -> str | None:
    """Return why weights cannot be tested; None if they can."""
    return None if n else "weights: there are no reports"


def weights_of(packed: Packed, n_states: int) -> npt.NDArray[np.int64]:
    """Count the ones in every report: [n]."""
    parts = [bits.sum(axis=1, dtype=np.int64) for _, bits in blocks(packed, n_states)]
    return np.concatenate([nobody(), *parts])


@dataclass(frozen=True, slots=True)
class WeightLaw:
    """Bounds on the distribution of an honest report's weight: [n_states + 1] each."""

    exactly: npt.NDArray[np.float64]
    at_least: npt.NDArray[np.float64]
    at_most: npt.NDArray[np.float64]

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, n_states: int, q: float) -> WeightLaw:
        """Return the bounds for reports of so many bits."""
        ones = np.arange(n_states + 1)
        null = exactly(ones, n_states, q)
        others = exactly(ones, n_states - 1, q)
        stated = (others + np.concatenate([[0.0], others[:-1]])) / 2
        # With q < 1/2 a true bit only adds ones: its weight dominates that of a null report.
        return cls(
            exactly=np.maximum(null, stated),
            at_least=np.minimum(np.cumsum(stated[::-1])[::-1], 1.0),
            at_most=np.minimum(np.cumsum(null), 1.0),
        )


def weight_limit(level: float, n_states: int) -> float:
    """Return the level of one comparison: three for every number of ones."""
    return level / (3 * (n_states + 1))


def find_weights(sample: Evidence, level: float, packed: Packed) -> Alarm | None:
    """Test the number of reports with exactly, at least and at most k ones, for every k.

    Suspects are those of `packed`, the round at hand.
    """
    n, n_states, weights = sample.n, sample.n_states, sample.weights
    law = WeightLaw.of(n_states, sample.q)
    looks = {
        "exactly": (weights, law.exactly, np.equal),
        "at least": (np.cumsum(weights[::-1])[::-1], law.at_least, np.greater_equal),
        "at most": (np.cumsum(weights), law.at_most, np.less_equal),
    }
    reasons: dict[str, float] = {}
    suspects = [nobody()]
    for word, (seen, chance, belongs) in looks.items():
        tails = more_than(seen - 1, n, chance)  # [n_states + 1]
        for ones in np.flatnonzero((tails < weight_limit(level, n_states)) & (seen > 0)):
            usual = n * chance[ones]
            reason = (
                f"{seen[ones]:,} of {n:,} reports have {word} {ones} ones, {usual:.3g} is usual"
            )
            reasons[reason] = float(tails[ones])
            if seen[ones] - usual >= _NAMED * seen[ones]:
                suspects.append(np.flatnonzero(belongs(weights_of(packed, n_states), ones)))
    if not reasons:
        return None
    return Alarm(
        test="weights",
        reason=min(reasons, key=reasons.__getitem__),
        suspects=np.unique(np.concatenate(suspects)),
    )


_FEWEST = 200
_FEWEST_ONES = 100  # of each bit; with fewer, the law of the spectrum does not apply
_FEWEST_BOTH = 25  # of any two bits; with fewer, the law of pairs does not apply
_SCORE = 3.5  # standard deviations along the eigenvector above which a report is suspected


def too_few_for_pairs(n: int, n_states: int, q: float) -> str | None:
    """Return why pairs cannot be tested; None if they can."""
    if n_states > MOST_STATES:
        return f"pairs: {n_states:,} states are too many, the most {MOST_STATES:,}"
    if n * q * q < _FEWEST_BOTH or n_states < 2:  # noqa: PLR2004 - a bit needs another
        return f"pairs: {n:,} reports of {n_states} bits set too few of them together"
    return None


def pair_limit(
    n: int, n_states: int, level: float, skewness: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """Return what honest pairs' correlations, times the root of n, stay below.

    `skewness` is that of one report's product; the sum of n has a root of n less of it (Cornish
    and Fisher's expansion).
    """
    quantile = -NormalDist().inv_cdf(level / math.comb(n_states, 2))
    return quantile + np.asarray(skewness) * ((quantile**2 - 1) / (6 * math.sqrt(n)))


def find_pairs(
    sample: Evidence, level: float, covariances: npt.NDArray[np.float64]
) -> Alarm | None:
    """Look for two bits that are set together more often than by chance.

    This sees few targets, the spectrum sees many. No report is suspected.
    """
    n, mean = sample.n, sample.counts / sample.n
    spread = np.sqrt(np.diag(covariances))
    varies = np.flatnonzero(spread > 0)  # a constant bit correlates with none
    if varies.size < 2:  # noqa: PLR2004 - a bit needs another
        return None
    mean, spread = mean[varies], spread[varies]
    scores = math.sqrt(n) * covariances[np.ix_(varies, varies)] / np.outer(spread, spread)
    skew = (1 - 2 * mean) / spread
    limits = pair_limit(n, sample.n_states, level, np.outer(skew, skew))
    excess = scores - limits
    np.fill_diagonal(excess, -np.inf)
    if excess.max() <= 0:
        return None
    first, second = np.unravel_index(int(excess.argmax()), excess.shape)
    reason = (
        f"bits {varies[first]} and {varies[second]} are set together more often than by chance, by "
        f"{scores[first, second]:.1f} standard deviations where {limits[first, second]:.1f} are "
        f"the most; {np.count_nonzero(excess > 0) // 2} pairs of {sample.n:,} reports are like it"
    )
    return Alarm(test="pairs", reason=reason, suspects=nobody())


def too_few_for_spectrum(n: int, n_states: int, q: float) -> str | None:
    """Return why the spectrum cannot be tested; None if it can."""
    if n_states > MOST_STATES:
        return f"spectrum: {n_states:,} states are too many, the most {MOST_STATES:,}"
    if n < _FEWEST or n * q < _FEWEST_ONES or n_states < 2:  # noqa: PLR2004 - a bit needs another
        return f"spectrum: {n:,} reports of {n_states} bits have no law to compare with"
    return None


_LARGEST_TAIL = 0.01  # below it, the asymptotic form errs on the safe side


def tracy_widom(tail: float) -> float:
    """Return the upper quantile of the Tracy-Widom law of order 1, for tails of 1 % at most.

    Far out, a share exp(-2/3 x^(3/2)) / (4 sqrt(pi) x^(3/4)) lies beyond x.

    >>> [round(tracy_widom(tail), 2) for tail in (0.01, 0.001, 0.0001)]
    [2.13, 3.33, 4.39]
    """
    x, logarithm = 2.0, math.log(min(tail, _LARGEST_TAIL) * 4 * math.sqrt(math.pi))
    for _ in range(50):
        x = (-1.5 * (logarithm + 0.75 * math.log(x))) ** (2 / 3)
    return x


def edge(n: int, n_states: int, level: float) -> float:
    """Return the value that pure noise's top eigenvalue exceeds with probability `level`."""
    rows, columns = math.sqrt(n - 1), math.sqrt(n_states)
    centre = (rows + columns) ** 2
    scale = (rows + columns) * math.cbrt(1 / rows + 1 / columns)
    return (centre + scale * tracy_widom(level)) / n


def find_spectrum(
    sample: Evidence, level: float, covariances: npt.NDArray[np.float64], packed: Packed
) -> Alarm | None:
    """Test the top eigenvalue of the correlations against its edge.

    Suspects are the reports of `packed`, the round at hand, far along its eigenvector.
    """
    spread = np.sqrt(np.diag(covariances))
    varies = spread > 0  # a constant bit correlates with none
    if np.count_nonzero(varies) < 2:  # noqa: PLR2004 - a bit needs another
        return None
    mean, spread = (sample.counts / sample.n)[varies], spread[varies]
    correlation = covariances[np.ix_(varies, varies)] / np.outer(spread, spread)
    last = len(correlation) - 1
    values, vectors = scipy.linalg.eigh(correlation, subset_by_index=[last, last])
    top, limit = float(values[0]), edge(sample.n, last + 1, level)
    if top <= limit:
        return None
    along = vectors[:, 0] / spread
    scores = np.concatenate(
        [(bits[:, varies] - mean) @ along for _, bits in blocks(packed, sample.n_states)]
    )
    if np.mean(scores**3) < 0:
        scores = -scores  # a correlated minority stands out on one side
    suspects = np.flatnonzero(scores > _SCORE)
    reason = (
        f"bits go together: the top eigenvalue of their correlations is {top:.3f}, above "
        f"{limit:.3f}, where independent noise stays; {suspects.size:,} of {len(packed):,} "
        "reports stand out"
    )
    return Alarm(test="spectrum", reason=reason, suspects=suspects if suspects.size else nobody())
