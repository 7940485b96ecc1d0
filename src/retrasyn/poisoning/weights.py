"""How many ones a report has.

With a true state it is Binomial(n_states - 1, q) + Binomial(1, 1/2), without one (a null report)
Binomial(n_states, q). How many reports are null is not known, so every bound takes the worse of
the two laws; between them lies every mixture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from retrasyn.poisoning.alarms import Alarm, nobody
from retrasyn.poisoning.unpacking import blocks

_NAMED = 0.8  # suspects are named where at least this part of them must be fakes


def too_small(n: int) -> str | None:
    """Say why weights cannot be tested, if so."""
    return None if n else "weights: there are no reports"


def weights_of(packed: npt.NDArray[np.uint8], n_states: int) -> npt.NDArray[np.int64]:
    """Count the ones of every report: [n]."""
    parts = [bits.sum(axis=1, dtype=np.int64) for _, bits in blocks(packed, n_states)]
    return np.concatenate([nobody(), *parts])


@dataclass(frozen=True, slots=True)
class _Law:
    """Bounds on the law of a weight: [n_states + 1] each."""

    exactly: npt.NDArray[np.float64]
    at_least: npt.NDArray[np.float64]
    at_most: npt.NDArray[np.float64]

    @classmethod
    def of(cls, n_states: int, q: float) -> _Law:
        ones = np.arange(n_states + 1)
        null = binom.pmf(ones, n_states, q)
        others = binom.pmf(ones, n_states - 1, q)
        stated = (others + np.concatenate([[0.0], others[:-1]])) / 2
        # With q < 1/2 a true bit only adds ones: its law lies above that of a null report.
        return cls(
            exactly=np.maximum(null, stated),
            at_least=np.minimum(np.cumsum(stated[::-1])[::-1], 1.0),
            at_most=np.minimum(np.cumsum(null), 1.0),
        )


def find(packed: npt.NDArray[np.uint8], n_states: int, q: float, level: float) -> Alarm | None:
    """Compare the number of reports with exactly, at least and at most so many ones with chance."""
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
