"""Jensen-Shannon divergence against the plain sum."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from retrasyn.metrics import divergence
from support.metric_pairs import same

counts = st.one_of(st.just(0), st.integers(0, 5), st.integers(0, 10**12))
tables = st.lists(st.tuples(counts, counts), min_size=1, max_size=30)


def apart(rows):
    return tuple(list(column) for column in zip(*rows, strict=True))


@given(tables)
def test_divergence_is_the_plain_sum(rows):
    a, b = apart(rows)
    expected = naive.jsd(dict(enumerate(a)), dict(enumerate(b)))
    assert divergence.jsd(a, b) == same(expected)
    assert divergence.jsd(b, a) == same(expected)


@given(tables, st.integers(1, 1000))
def test_divergence_looks_at_shares_and_lies_between_0_and_ln_2(rows, factor):
    a, b = apart(rows)
    value = divergence.jsd(a, b)
    assert divergence.jsd(np.array(a) * factor, b) == same(value)
    assert math.isnan(value) == (not any(a) and not any(b))
    assert math.isnan(value) or 0 <= value <= math.log(2) + 1e-12


def test_counts_without_mass_are_as_far_as_can_be_and_unknown_if_both_are():
    assert divergence.jsd([0, 0], [0, 3]) == pytest.approx(math.log(2), abs=1e-15)
    assert divergence.jsd([4], [0]) == pytest.approx(math.log(2), abs=1e-15)
    assert math.isnan(divergence.jsd([0, 0], [0, 0]))


@given(st.lists(st.integers(0, 6)), st.lists(st.integers(0, 6)))
def test_outcomes_one_by_one_are_compared_as_their_counts_are(real, synthetic):
    codes = np.array([0, 3, 7, 1 << 20, 1 << 23, (1 << 24) - 1, 5])
    found = divergence.sparse_jsd(
        codes[np.array(real, np.int64)], codes[np.array(synthetic, np.int64)]
    )
    a, b = ({n: values.count(n) for n in values} for values in (real, synthetic))
    assert found == same(naive.jsd(a, b))


@given(st.lists(st.one_of(st.floats(-10, 10), st.just(math.nan))))
def test_a_mean_leaves_out_what_is_unknown(values):
    assert divergence.mean_known(np.array(values, np.float64)) == same(naive.mean(values))
