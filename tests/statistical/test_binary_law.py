"""Randomised response has the law it claims. Every test states its significance level."""

import math

import numpy as np
import pytest
from scipy import stats

from retrasyn.messages import Grant, Question
from retrasyn.oracles.binary import BinaryResponse
from retrasyn.simulation.report_sources import Counts, Reports

N_USERS, N_TRUE, N_ROUNDS = 60, 23, 4000
LEVEL = 1e-6  # of each test
QUESTION = Question(about="older", threshold=6)


def _sums(door, epsilon):
    """Add the answers of the same people up over many independent rounds: [n_rounds]."""
    states = np.where(np.arange(N_USERS) < N_TRUE, 0, -1).astype(np.int32)
    keys = np.arange(N_USERS)
    return np.array(
        [
            door.collect(
                Grant(t=t, epsilon=epsilon, reporters=keys, question=QUESTION, n_answers=1),
                states,
                keys.astype(np.uint64),
                lane="older/6",
            ).counts[0]
            for t in range(N_ROUNDS)
        ]
    )


@pytest.mark.parametrize("epsilon", [500_000, 1_000_000, 2_000_000])
def test_counts_and_reports_have_the_same_law(epsilon):
    counts, reports = _sums(Counts(21), epsilon), _sums(Reports(22), epsilon)
    table = np.stack([np.bincount(sums, minlength=N_USERS + 1) for sums in (counts, reports)])
    table = table[:, table.sum(axis=0) >= 20]
    assert stats.chi2_contingency(table).pvalue > LEVEL


@pytest.mark.parametrize("door", [Counts(23), Reports(24)], ids=["counts", "reports"])
def test_estimates_are_unbiased_and_have_the_stated_variance(door):
    oracle = BinaryResponse(1_000_000)
    estimates = (_sums(door, 1_000_000) / N_USERS - oracle.q) / (1 - 2 * oracle.q)
    variance = oracle.variance(N_USERS)
    z = (estimates.mean() - N_TRUE / N_USERS) / math.sqrt(variance / N_ROUNDS)
    far = stats.norm.isf(LEVEL / 2)
    assert abs(z) < far
    assert abs(estimates.var() / variance - 1) < far * math.sqrt(2 / N_ROUNDS) * 1.1


def test_answers_of_different_people_and_times_are_independent():
    oracle, states = BinaryResponse(1_000_000), np.zeros(40, np.int32)
    addresses = np.arange(40, dtype=np.uint64)
    bits = np.array(
        [oracle.perturb(states, addresses, key=key, n_answers=1)[:, 0] for key in range(2000)]
    )
    for table in (bits, bits.reshape(40, -1).T):
        correlation = np.corrcoef(table.T) - np.eye(table.shape[1])
        pairs = table.shape[1] * (table.shape[1] - 1) / 2
        assert np.abs(correlation).max() < stats.norm.isf(LEVEL / pairs / 2) / math.sqrt(len(table))
