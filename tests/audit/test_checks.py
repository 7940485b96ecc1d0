"""The lower bound on epsilon: exact at its edges, honest, and near the truth."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from retrasyn.audit.checks import chance_bounds, epsilon_lower_bound


@given(st.integers(1, 200), st.data(), st.sampled_from([1e-6, 1e-3, 0.05]))
def test_each_bound_is_the_chance_at_which_the_count_would_surprise(n, data, alpha):
    hits = data.draw(st.integers(0, n))
    low, high = chance_bounds(hits, n, alpha=alpha)
    assert 0 <= low <= hits / n <= high <= 1
    if hits > 0:
        assert stats.binom.sf(hits - 1, n, low) == pytest.approx(alpha, rel=1e-6)
    if hits < n:
        assert stats.binom.cdf(hits, n, high) == pytest.approx(alpha, rel=1e-6)


def test_nothing_seen_bounds_nothing():
    assert epsilon_lower_bound(0, 0, 100, alpha=1e-6) == 0.0
    assert epsilon_lower_bound(5, 50, 100, alpha=1e-6) == 0.0
    assert math.isfinite(epsilon_lower_bound(100, 0, 100, alpha=1e-6))


@given(st.floats(0.1, 5), st.integers(0, 2**31))
def test_the_bound_stays_below_the_epsilon_that_made_the_counts(epsilon, seed):
    generator = stats.binom
    q = 1 / (math.exp(epsilon) + 1)
    n = 100_000
    hits = generator.rvs(n, (1 - q) / 2, random_state=seed)
    other_hits = generator.rvs(n, q / 2, random_state=seed + 1)
    assert epsilon_lower_bound(hits, other_hits, n, alpha=1e-6) <= epsilon
