"""Density and transition error, timestamp by timestamp, against plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from retrasyn.metrics import divergence
from retrasyn.metrics.density import cell_counts, density_error, density_errors
from retrasyn.metrics.pair import Pair
from retrasyn.metrics.transition import transition_error, transition_errors
from support.metric_pairs import UNIT, Case, cases, same

A, B, FAR = (0.1, 0.1), (0.4, 0.1), (0.9, 0.9)  # on a 4 x 4 grid: neighbours, and far from both


@given(cases())
def test_density_errors_are_those_of_the_plain_loop(case):
    expected = naive.density_errors(case.prepared)
    assert density_errors(Pair.of(*case.arguments)).tolist() == same(expected)
    assert density_error(*case.arguments) == same(naive.mean(expected))


@given(cases())
def test_transition_errors_are_those_of_the_plain_loop(case):
    expected = naive.transition_errors(case.prepared)
    assert transition_errors(Pair.of(*case.arguments)).tolist() == same(expected)
    assert transition_error(*case.arguments) == same(naive.mean(expected))


@given(cases())
def test_cells_are_counted_as_in_the_plain_loop(case):
    pair, expected = Pair.of(*case.arguments), case.prepared
    for gridded, trips in ((pair.real, expected.real), (pair.synthetic, expected.synthetic)):
        counts = cell_counts(gridded, pair.n_timestamps, case.grid.n_cells)
        assert counts.shape == (pair.n_timestamps, case.grid.n_cells)
        for t, row in enumerate(counts):
            found = {int(cell): int(row[cell]) for cell in np.flatnonzero(row)}
            assert found == naive.cells_within(trips, t, t + 1)


@given(cases(), st.integers(1, 200))
def test_how_much_is_counted_at_once_changes_nothing(case, table):
    pair = Pair.of(*case.arguments)
    expected = density_errors(pair).tolist(), transition_errors(pair).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divergence, "_TABLE", table)
        found = density_errors(pair).tolist(), transition_errors(pair).tolist()
    np.testing.assert_array_equal(found, expected)


def test_timestamps_with_nobody_are_as_bad_as_can_be_or_left_out():
    real = [(0, [A]), (1, [A]), (4, [A])]
    synthetic = [(0, [A]), (2, [A]), (4, [A])]
    pair = Pair.of(*Case(real, synthetic, UNIT, 4, span=1, seed=0).arguments)
    expected = [0, math.log(2), math.log(2), math.nan, 0]
    assert density_errors(pair).tolist() == same(expected)
    assert np.isnan(transition_errors(pair)).all()


def test_streams_that_follow_each_other_make_no_move_and_neither_does_a_jump():
    real = [(0, [A, A, A])]
    synthetic = [(0, [A]), (1, [A, FAR]), (2, [B])]
    case = Case(real, synthetic, UNIT, 4, span=1, seed=0)
    expected = [math.nan, math.log(2), math.log(2)]
    assert transition_errors(Pair.of(*case.arguments)).tolist() == same(expected)
    assert transition_error(*case.arguments) == same(math.log(2))


def test_the_moves_of_a_data_set_of_one_timestamp_cannot_be_compared():
    case = Case([(3, [A])], [(2, [A, A, A])], UNIT, 4, span=1, seed=0)
    assert math.isnan(transition_error(*case.arguments))
    assert density_error(*case.arguments) == 0
