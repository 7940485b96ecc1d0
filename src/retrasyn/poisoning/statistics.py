"""Statistical tests for fake reports: weights, bits, duplicates, correlations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.stats import binom

from retrasyn.oracles.kernels import count_bits


def nobody() -> npt.NDArray[np.int64]:
    """Return an empty array of row numbers."""
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One finding that honest devices are unlikely to cause."""

    test: str  # duplicates, weights, bits or spectrum
    reason: str  # what was observed and what was expected, in a sentence
    suspects: npt.NDArray[np.int64]  # rows of the reports that caused it, where identifiable


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """All alarms of one round, and the tests it was too small for."""

    n: int
    alarms: tuple[Alarm, ...]
    not_tested: tuple[str, ...]  # each names a test and the reason

    @property
    def alarmed(self) -> bool:
        """Whether there is any alarm."""
        return bool(self.alarms)

    @property
    def suspects(self) -> npt.NDArray[np.int64]:
        """Rows named by any alarm, ascending."""
        return np.unique(np.concatenate([nobody(), *(alarm.suspects for alarm in self.alarms)]))


def too_few_for_bits(n: int) -> str | None:
    """Return why bits cannot be tested; None if they can."""
    return None if n else "bits: there are no reports"


def find_bits(
    packed: npt.NDArray[np.uint8],
    n_states: int,
    q: float,
    level: float,
    expected: npt.NDArray[np.float64] | None,
    drift: float,
) -> Alarm | None:
    """Look for bits set more or less often than any plausible frequency allows.

    No report is suspected: every honest device sets such a bit now and then.
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


def find_duplicates(packed: npt.NDArray[np.uint8]) -> Alarm | None:
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


_BITS_AT_ONCE = 1 << 24


def blocks(
    packed: npt.NDArray[np.uint8], n_states: int
) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """Yield the first row of each block, and its bits: [n_block, n_states]."""
    size = max(_BITS_AT_ONCE // n_states, 1)
    for start in range(0, len(packed), size):
        part = packed[start : start + size]
        yield start, np.unpackbits(part, axis=1, count=n_states, bitorder="little")


_NAMED = 0.8  # suspects are named only if at least this share of them must be fake


def too_few_for_weights(n: int) -> str | None:
    """Return why weights cannot be tested; None if they can."""
    return None if n else "weights: there are no reports"


def weights_of(packed: npt.NDArray[np.uint8], n_states: int) -> npt.NDArray[np.int64]:
    """Count the ones in every report: [n]."""
    parts = [bits.sum(axis=1, dtype=np.int64) for _, bits in blocks(packed, n_states)]
    return np.concatenate([nobody(), *parts])


@dataclass(frozen=True, slots=True)
class _Law:
    """Bounds on the distribution of a report's weight: [n_states + 1] each."""

    exactly: npt.NDArray[np.float64]
    at_least: npt.NDArray[np.float64]
    at_most: npt.NDArray[np.float64]

    @classmethod
    def of(cls, n_states: int, q: float) -> _Law:
        ones = np.arange(n_states + 1)
        null = binom.pmf(ones, n_states, q)
        others = binom.pmf(ones, n_states - 1, q)
        stated = (others + np.concatenate([[0.0], others[:-1]])) / 2
        # With q < 1/2 a true bit only adds ones: its weight dominates that of a null report.
        return cls(
            exactly=np.maximum(null, stated),
            at_least=np.minimum(np.cumsum(stated[::-1])[::-1], 1.0),
            at_most=np.minimum(np.cumsum(null), 1.0),
        )


def find_weights(
    packed: npt.NDArray[np.uint8], n_states: int, q: float, level: float
) -> Alarm | None:
    """Test the number of reports with exactly, at least and at most k ones, for every k."""
    n = len(packed)
    weights = weights_of(packed, n_states)
    law = _Law.of(n_states, q)
    exactly = np.bincount(weights, minlength=n_states + 1)
    looks = {
        "exactly": (exactly, law.exactly, np.equal),
        "at least": (np.cumsum(exactly[::-1])[::-1], law.at_least, np.greater_equal),
        "at most": (np.cumsum(exactly), law.at_most, np.less_equal),
    }
    limit = level / (len(looks) * (n_states + 1))
    reasons: dict[str, float] = {}
    suspects = [nobody()]
    for word, (seen, chance, belongs) in looks.items():
        tails = binom.sf(seen - 1, n, chance)  # [n_states + 1]
        for ones in np.flatnonzero((tails < limit) & (seen > 0)):
            usual = n * chance[ones]
            reason = (
                f"{seen[ones]:,} of {n:,} reports have {word} {ones} ones, {usual:.3g} is usual"
            )
            reasons[reason] = float(tails[ones])
            if seen[ones] - usual >= _NAMED * seen[ones]:
                suspects.append(np.flatnonzero(belongs(weights, ones)))
    if not reasons:
        return None
    return Alarm(
        test="weights",
        reason=min(reasons, key=reasons.__getitem__),
        suspects=np.unique(np.concatenate(suspects)),
    )


_FEWEST = 200
_FEWEST_ONES = 100  # of each bit; with fewer, the limit law below does not apply
_SCORE = 3.5  # standard deviations along the eigenvector above which a report is suspected
# Upper quantiles of the Tracy-Widom law of order 1.
_TAILS = (0.1, 0.05, 0.025, 0.01, 0.005, 0.0025, 0.001, 0.0001)
_QUANTILES = (0.4501, 0.9793, 1.4538, 2.0234, 2.4224, 2.7973, 3.2724, 4.3655)


def too_few_for_spectrum(n: int, n_states: int, q: float) -> str | None:
    """Return why the spectrum cannot be tested; None if it can."""
    if n < _FEWEST or n * q < _FEWEST_ONES or n_states < 2:  # noqa: PLR2004 - a bit needs another
        return f"spectrum: {n:,} reports of {n_states} bits have no law to compare with"
    return None


def edge(n: int, n_states: int, level: float) -> float:
    """Return the value that pure noise's top eigenvalue exceeds with probability `level`."""
    rows, columns = math.sqrt(n - 1), math.sqrt(n_states)
    centre = (rows + columns) ** 2
    scale = (rows + columns) * math.cbrt(1 / rows + 1 / columns)
    quantile = float(np.interp(-math.log(level), -np.log(_TAILS), _QUANTILES))
    return (centre + scale * quantile) / n


def find_spectrum(packed: npt.NDArray[np.uint8], n_states: int, level: float) -> Alarm | None:
    """Test the top eigenvalue against its edge, and suspect reports far along its eigenvector."""
    n = len(packed)
    total = np.zeros(n_states)
    products = np.zeros((n_states, n_states))
    for _, bits in blocks(packed, n_states):
        block = bits.astype(np.float32)  # integers below 2^24: sums are exact
        total += block.sum(axis=0, dtype=np.float64)
        products += block.T @ block
    mean = total / n
    spread = np.sqrt(mean * (1 - mean))
    varies = spread > 0  # a constant bit correlates with none
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
        scores = -scores  # a correlated minority stands out on one side
    suspects = np.flatnonzero(scores > _SCORE)
    reason = (
        f"bits go together: the top eigenvalue of their correlations is {top:.3f}, above "
        f"{limit:.3f}, where independent noise stays; {suspects.size:,} of {n:,} reports stand out"
    )
    return Alarm(test="spectrum", reason=reason, suspects=suspects if suspects.size else nobody())
