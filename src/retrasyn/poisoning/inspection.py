"""Runs all tests on a round of unary reports, and sums the round without the suspects."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from retrasyn.errors import InputError, SettingError
from retrasyn.messages import Aggregate
from retrasyn.oracles.oue import OUE
from retrasyn.poisoning import statistics
from retrasyn.poisoning.evidence import Evidence
from retrasyn.poisoning.power import weak_against
from retrasyn.poisoning.statistics import Alarm, Packed, nobody

_TESTS, _POOLED_TESTS = 5, 4  # duplicates are looked for in the round alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """All alarms of one round, what it was too small for, and what later rounds need of it."""

    n: int
    alarms: tuple[Alarm, ...]
    not_tested: tuple[str, ...]  # tests that were not made, and fakes they would rather not see
    evidence: Evidence

    @property
    def alarmed(self) -> bool:
        """Whether there is any alarm."""
        return bool(self.alarms)

    @property
    def suspects(self) -> npt.NDArray[np.int64]:
        """Rows named by any alarm, ascending."""
        return np.unique(np.concatenate([nobody(), *(alarm.suspects for alarm in self.alarms)]))


def inspect(
    packed: Packed,
    n_states: int,
    *,
    epsilon: int,
    expected: npt.NDArray[np.float64] | None = None,
    drift: float = 0.05,
    false_alarms: float = 0.01,
    before: Evidence | None = None,
) -> Inspection:
    """Look for reports that honest devices are unlikely to send.

    Args:
        packed: One row per report, bits packed little-endian: [n, ceil(n_states / 8)].
        n_states: Number of bits of a report.
        epsilon: Budget each report spent, in micro-nats.
        expected: Plausible frequencies, such as the previous release: [n_states]. Without them, a
            state that suddenly becomes frequent is no reason for an alarm.
        drift: How much a frequency may have changed since then.
        false_alarms: Probability that a round of honest reports raises an alarm.
        before: The sum of what inspections of earlier rounds returned as evidence; no device may
            have reported twice in them and this round. The tests are then made on all of it, too.

    Returns:
        The alarms, what could not be tested, and the evidence of this round.
    """
    _check(packed, n_states, expected, drift, false_alarms)
    own = Evidence.of(packed, n_states, epsilon=epsilon)
    pool = own if before is None else before + own
    level = false_alarms / (_TESTS if before is None else _TESTS + _POOLED_TESTS)
    no_twins = statistics.too_few_for_duplicates(own.n, n_states, own.q, level)
    found = [] if no_twins else [statistics.find_duplicates(packed)]
    found += _found(own, level, packed, expected, drift)
    if before is not None:
        found += [
            alarm and dataclasses.replace(alarm, test=f"pooled {alarm.test}")
            for alarm in _found(pool, level, packed, None, drift)
        ]
    return Inspection(
        n=own.n,
        alarms=tuple(alarm for alarm in found if alarm is not None),
        not_tested=(
            *filter(None, [no_twins, *_reasons(pool).values()]),
            *weak_against(pool, level, n_round=own.n),
        ),
        evidence=own,
    )


def _reasons(sample: Evidence) -> dict[str, str | None]:
    """Return why each test on sums cannot be made, by its name; None if it can."""
    n, n_states, q = sample.n, sample.n_states, sample.q
    return {
        "weights": statistics.too_few_for_weights(n),
        "bits": statistics.too_few_for_bits(n),
        "pairs": statistics.too_few_for_pairs(n, n_states, q),
        "spectrum": statistics.too_few_for_spectrum(n, n_states, q),
    }


def _found(
    sample: Evidence,
    level: float,
    packed: Packed,
    expected: npt.NDArray[np.float64] | None,
    drift: float,
) -> Iterator[Alarm | None]:
    """Make every test on sums that the sample is large enough for."""
    possible = [test for test, reason in _reasons(sample).items() if reason is None]
    if "weights" in possible:
        yield statistics.find_weights(sample, level, packed)
    if "bits" in possible:
        yield statistics.find_bits(sample, level, expected, drift)
    if "pairs" in possible or "spectrum" in possible:
        covariances = sample.covariances()
        if "pairs" in possible:
            yield statistics.find_pairs(sample, level, covariances)
        if "spectrum" in possible:
            yield statistics.find_spectrum(sample, level, covariances, packed)


def _check(
    packed: npt.NDArray[np.uint8],
    n_states: int,
    expected: npt.NDArray[np.float64] | None,
    drift: float,
    false_alarms: float,
) -> None:
    """Refuse arguments that do not describe a round of reports."""
    n_bytes = (n_states + 7) // 8
    if n_states < 1 or packed.ndim != 2 or packed.shape[1] != n_bytes or packed.dtype != np.uint8:  # noqa: PLR2004 - rows and columns
        raise InputError(
            f"reports of {n_states} states are rows of {n_bytes} bytes, not an array of "
            f"{packed.dtype} with shape {packed.shape}"
        )
    if expected is not None and (
        expected.shape != (n_states,) or not (np.isfinite(expected).all())
    ):
        raise InputError(
            f"expected has shape {expected.shape}; it needs one finite frequency for each of the "
            f"{n_states} states"
        )
    if not 0 <= drift <= 1 or not 0 < false_alarms < 1:
        raise SettingError(
            f"drift={drift:g} must lie in 0..1 and false_alarms={false_alarms:g} between 0 and 1"
        )


def influence_of_one(epsilon: int) -> float:
    """Return how many users' worth one fake report adds to a state's estimate.

    Epsilon is in micro-nats. An honest device in another state sets the bit with probability q. A
    fake always sets it, which counts (1 - q) / (1/2 - q) = 2 e^eps / (e^eps - 1) users more.

    >>> round(influence_of_one(1_000_000), 2)
    3.16
    """
    q = OUE(epsilon).q
    return (1 - q) / (0.5 - q)


def trimmed(
    packed: npt.NDArray[np.uint8], n_states: int, *, epsilon: int, inspection: Inspection
) -> Aggregate:
    """Sum the reports of a round, leaving out the suspects of its inspection."""
    if len(packed) != inspection.n:
        raise InputError(
            f"the inspection saw {inspection.n} reports, these are {len(packed)}; "
            "give the reports that were inspected"
        )
    kept = np.delete(packed, inspection.suspects, axis=0)
    return OUE(epsilon).aggregate(kept, n_answers=n_states)
