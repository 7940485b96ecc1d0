"""Runs all tests on one round of unary reports, and sums the round without the suspects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from retrasyn.errors import InputError, SettingError
from retrasyn.messages import Aggregate
from retrasyn.oracles.oue import OUE
from retrasyn.poisoning import statistics
from retrasyn.poisoning.statistics import Alarm, Inspection


def inspect(
    packed: npt.NDArray[np.uint8],
    n_states: int,
    *,
    epsilon: int,
    expected: npt.NDArray[np.float64] | None = None,
    drift: float = 0.05,
    false_alarms: float = 0.01,
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

    Returns:
        The alarms, and the tests that could not be made.
    """
    _check(packed, n_states, expected, drift, false_alarms)
    q = OUE(epsilon).q
    level = false_alarms / 4  # four tests
    n = len(packed)
    tests: dict[Callable[[], Alarm | None], str | None] = {
        partial(statistics.find_duplicates, packed): statistics.too_few_for_duplicates(
            n, n_states, q, level
        ),
        partial(
            statistics.find_weights, packed, n_states, q, level
        ): statistics.too_few_for_weights(n),
        partial(
            statistics.find_bits, packed, n_states, q, level, expected, drift
        ): statistics.too_few_for_bits(n),
        partial(statistics.find_spectrum, packed, n_states, level): statistics.too_few_for_spectrum(
            n, n_states, q
        ),
    }
    found = [test() for test, reason in tests.items() if reason is None]
    return Inspection(
        n=n,
        alarms=tuple(alarm for alarm in found if alarm is not None),
        not_tested=tuple(reason for reason in tests.values() if reason is not None),
    )


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
