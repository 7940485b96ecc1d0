"""The counts shortcut has the law of real reports. Every test states its significance level."""

import math
import random

import numpy as np
import pytest
from scipy import stats

import naive
from retrasyn.messages import Grant
from retrasyn.oracles import OUE
from retrasyn.simulation.report_sources import Counts, Reports

N_STATES, N_USERS, N_ROUNDS = 10, 60, 4000
LEVEL = 1e-6  # of each test, after Bonferroni over the states


def _sums(door, epsilon):
    """Aggregate the same users over many independent rounds: [n_rounds, n_states]."""
    states = np.repeat(np.arange(4), [30, 20, 9, 1]).astype(np.int32)
    states[-1] = -1  # one null report
    addresses = np.arange(N_USERS, dtype=np.uint64)
    keys = np.arange(N_USERS)
    return np.array(
        [
            door.collect(
                Grant(t=t, epsilon=epsilon, reporters=keys, n_answers=N_STATES),
                states,
                addresses,
                lane="publish",
            ).counts
            for t in range(N_ROUNDS)
        ]
    )


@pytest.mark.parametrize("epsilon", [500_000, 1_000_000, 2_000_000])
def test_counts_and_reports_have_the_same_law_state_by_state(epsilon):
    counts, reports = _sums(Counts(11), epsilon), _sums(Reports(12), epsilon)
    for state in range(N_STATES):
        top = int(max(counts[:, state].max(), reports[:, state].max())) + 1
        table = np.stack([np.bincount(sums[:, state], minlength=top) for sums in (counts, reports)])
        table = table[:, table.sum(axis=0) >= 20]
        assert stats.chi2_contingency(table).pvalue > LEVEL / N_STATES


@pytest.mark.parametrize("door", [Counts(3), Reports(4)], ids=["counts", "reports"])
def test_sums_have_the_exact_mean_and_variance(door):
    oracle = OUE(1_000_000)
    sums = _sums(door, 1_000_000)
    true = np.array([30, 20, 9, 0, 0, 0, 0, 0, 0, 0])
    mean = true / 2 + (N_USERS - true) * oracle.q
    variance = true / 4 + (N_USERS - true) * oracle.q * (1 - oracle.q)
    z = (sums.mean(axis=0) - mean) / np.sqrt(variance / N_ROUNDS)
    assert np.abs(z).max() < stats.norm.isf(LEVEL / N_STATES / 2)
    ratio = sums.var(axis=0) / variance
    assert (
        np.abs(ratio - 1).max()
        < stats.norm.isf(LEVEL / N_STATES / 2) * math.sqrt(2 / N_ROUNDS) * 1.1
    )


def test_bits_of_different_states_are_independent():
    sums = _sums(Reports(5), 1_000_000)
    correlation = np.corrcoef(sums.T) - np.eye(N_STATES)
    pairs = N_STATES * (N_STATES - 1) / 2
    assert np.abs(correlation).max() < stats.norm.isf(LEVEL / pairs / 2) / math.sqrt(N_ROUNDS)


def test_estimates_are_unbiased_and_their_variance_is_equation_3_plus_f_over_n():
    oracle = OUE(1_000_000)
    frequencies = (_sums(Counts(6), 1_000_000) / N_USERS - oracle.q) / (0.5 - oracle.q)
    true = np.array([30, 20, 9, 0, 0, 0, 0, 0, 0, 0]) / N_USERS
    variance = oracle.variance(N_USERS) + true / N_USERS
    standard_error = np.sqrt(variance / N_ROUNDS)
    assert (np.abs(frequencies.mean(axis=0) - true) < 5 * standard_error).all()
    np.testing.assert_allclose(frequencies.var(axis=0), variance, rtol=0.15)


def test_the_plain_loop_perturbs_with_the_same_probabilities():
    generator = random.Random(9)
    n, state = 20_000, 2
    ones = np.sum([naive.oue_perturb(state, 5, 1.0, generator) for _ in range(n)], axis=0)
    states = np.full(n, state, np.int32)
    oracle = OUE(1_000_000)
    packed = oracle.perturb(states, np.arange(n, dtype=np.uint64), key=8, n_answers=5)
    ours = oracle.aggregate(packed, n_answers=5).counts
    for bit in range(5):
        table = [[ones[bit], n - ones[bit]], [ours[bit], n - ours[bit]]]
        assert stats.chi2_contingency(table).pvalue > LEVEL / 5
