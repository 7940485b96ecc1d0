"""A probe estimates, without bias, how far the last release is from the truth."""

import math
import random

import numpy as np
import pytest

import naive
from retrasyn.mechanisms.probe_publish import dissimilarity
from retrasyn.messages import Aggregate
from retrasyn.oracles import OUE

LEVEL_IN_DEVIATIONS = 5.0  # two-sided level 6e-7 of each test
N_ROUNDS = 6_000
TRUE = np.array([120, 60, 20, 0, 0, 0])  # of the users who are asked
N = int(TRUE.sum())
RELEASED = np.array([0.4, 0.3, 0.1, 0.1, 0.1, 0.0])


def probes(epsilon):
    """Yield estimates of the same users over independent rounds."""
    oracle, generator = OUE(epsilon), np.random.default_rng(17)
    for _ in range(N_ROUNDS):
        yield oracle.estimate(oracle.draw_counts(TRUE, N, generator=generator))


def deviations(values, expected):
    """Return how many standard errors a mean is from what was expected."""
    return (np.mean(values) - expected) / (np.std(values, ddof=1) / math.sqrt(len(values)))


@pytest.mark.parametrize("epsilon", [25_000, 1_000_000, 4_000_000])
def test_the_dissimilarity_of_a_probe_is_unbiased(epsilon):
    expected = float(np.mean((TRUE / N - RELEASED) ** 2))
    found = [dissimilarity(RELEASED, probe) for probe in probes(epsilon)]
    assert abs(deviations(found, expected)) < LEVEL_IN_DEVIATIONS


def test_without_f_over_n_it_would_be_too_large():
    epsilon = 4_000_000
    expected = float(np.mean((TRUE / N - RELEASED) ** 2))
    partly = [
        float(np.mean((probe.frequencies - RELEASED) ** 2)) - probe.variance
        for probe in probes(epsilon)
    ]
    assert deviations(partly, expected) > LEVEL_IN_DEVIATIONS
    assert np.mean(partly) - expected == pytest.approx(1 / (N * TRUE.size), rel=0.2)


def test_the_plain_loop_is_unbiased_over_real_reports():
    generator, epsilon = random.Random(5), 1.0
    states = np.repeat(np.arange(TRUE.size), TRUE // 10).tolist()
    released = RELEASED.tolist()
    expected = float(np.mean((TRUE / N - RELEASED) ** 2))
    found = []
    for _ in range(800):
        reports = [naive.oue_perturb(state, TRUE.size, epsilon, generator) for state in states]
        estimated = naive.oue_estimate(reports, epsilon)
        found.append(naive.dissimilarity(estimated, released, epsilon, len(states)))
    assert abs(deviations(found, expected)) < LEVEL_IN_DEVIATIONS


def test_an_aggregate_of_one_report_has_a_dissimilarity():
    probe = OUE(1_000_000).estimate(Aggregate(counts=np.array([1, 0, 0, 0, 0, 0]), n=1))
    assert math.isfinite(dissimilarity(RELEASED, probe))
