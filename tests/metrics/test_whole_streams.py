"""Kendall's tau, trip, length and duration error and the stream ratio against plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from retrasyn.metrics import kernels
from retrasyn.metrics.duration import duration_counts, duration_error
from retrasyn.metrics.kendall import kendall_tau, visits
from retrasyn.metrics.length import length_error, length_histograms
from retrasyn.metrics.pair import Pair
from retrasyn.metrics.streams import stream_ratio
from retrasyn.metrics.trip import trip_counts, trip_error
from support.metric_pairs import SIDES, UNIT, Case, cases, same


def compared(real, synthetic, side=4):
    return Case(real, synthetic, UNIT, side, span=1, seed=0)


@given(cases(sides=SIDES))
def test_kendall_tau_is_that_of_the_plain_loop(case):
    assert kendall_tau(*case.arguments) == same(naive.kendall_tau(case.prepared, case.side))


@given(cases())
def test_visits_are_those_of_the_plain_loop(case):
    pair, expected = Pair.of(*case.arguments), case.prepared
    for gridded, trips in ((pair.real, expected.real), (pair.synthetic, expected.synthetic)):
        assert visits(gridded, case.grid.n_cells).tolist() == naive.visits(trips, case.side)


@given(st.integers(0, 2**32 - 1))
def test_agreement_of_orders_is_counted_as_with_matrices(seed):
    random = np.random.default_rng(seed)
    n_cells, most = int(random.integers(1, 300)), int(random.integers(1, 30))
    real, synthetic = random.integers(0, most + 1, (2, n_cells))
    order_real = np.sign(real[:, None] - real[None, :])
    order_synthetic = np.sign(synthetic[:, None] - synthetic[None, :])
    agreeing = np.where(order_real == order_synthetic, 1, -1) * (order_real != 0)
    assert kernels.count_agreement(real, synthetic) == np.triu(agreeing, 1).sum()


def test_kendall_tau_of_a_grid_of_4096_cells_is_that_of_the_plain_loop():
    random = np.random.default_rng(5)
    real, synthetic = (
        [(0, (random.random(2) * size).reshape(1, 2).tolist()) for _ in range(3000)]
        for size in (1.0, 0.9)
    )
    case = compared(real, synthetic, side=64)
    assert kendall_tau(*case.arguments) == same(naive.kendall_tau(case.prepared, 64))


def test_cells_ranked_backwards_are_minus_one_and_one_cell_cannot_be_ranked():
    def crowd(counts):
        places = [((cell % 2 + 0.5) / 2, (cell // 2 + 0.5) / 2) for cell in range(4)]
        return [(0, [place]) for place, n in zip(places, counts, strict=True) for _ in range(n)]

    assert kendall_tau(*compared(crowd([1, 2, 3, 4]), crowd([4, 3, 2, 1]), 2).arguments) == -1
    assert kendall_tau(*compared(crowd([1, 2, 3, 4]), crowd([1, 3, 5, 7]), 2).arguments) == 1
    assert kendall_tau(*compared(crowd([1, 2, 3, 4]), crowd([1, 1, 1, 1]), 2).arguments) == -1
    assert kendall_tau(*compared(crowd([1, 1, 1, 1]), crowd([1, 2, 3, 4]), 2).arguments) == 0
    assert math.isnan(kendall_tau(*compared(crowd([1, 2, 3, 4]), crowd([4, 3, 2, 1]), 1).arguments))


@given(cases())
def test_trip_error_is_that_of_the_plain_loop(case):
    assert trip_error(*case.arguments) == same(naive.trip_error(case.prepared))


@given(cases())
def test_trips_are_counted_by_first_and_last_cell(case):
    codes, counts = trip_counts(Pair.of(*case.arguments).real, case.grid.n_cells)
    ends = [(trip.cells[0], trip.cells[-1]) for trip in case.prepared.real]
    expected = {first * case.grid.n_cells + last: ends.count((first, last)) for first, last in ends}
    assert dict(zip(codes.tolist(), counts.tolist(), strict=True)) == expected


@given(cases(lattice=False))
def test_length_error_is_that_of_the_plain_loop(case):
    assert length_error(*case.arguments) == same(naive.length_error(case.prepared))


@given(cases(lattice=False), st.sampled_from([20, 1, 7]))
def test_lengths_are_counted_in_the_buckets_of_the_plain_loop(case, n_buckets):
    edges, real, synthetic = length_histograms(Pair.of(*case.arguments), n_buckets)
    pair = case.prepared
    assert (real.tolist(), synthetic.tolist()) == naive.length_buckets(pair, n_buckets)
    longest = max(naive.travelled(trip) for trip in [*pair.real, *pair.synthetic])
    assert edges.tolist() == same([longest * n / n_buckets for n in range(n_buckets + 1)])


def test_a_length_on_the_edge_of_two_buckets_belongs_to_the_upper_and_the_longest_to_the_last():
    def zigzag(length):  # steps of 1/64, which floats hold exactly
        return (0, [(0.5 + (n % 2) / 64, 0.5) for n in range(length + 1)])

    case = compared([zigzag(length) for length in range(21)], [zigzag(0)])
    edges, real, synthetic = length_histograms(Pair.of(*case.arguments))
    np.testing.assert_array_equal(edges * 64, np.arange(21))
    assert real.tolist() == [1] * 19 + [2]
    assert synthetic.tolist() == [1] + [0] * 19


def test_streams_that_never_move_all_fall_into_the_first_bucket():
    case = compared([(0, [(0.5, 0.5)] * 3)], [(0, [(0.1, 0.1)]), (1, [(0.2, 0.2)] * 2)])
    _, real, synthetic = length_histograms(Pair.of(*case.arguments))
    assert real.tolist() == [1] + [0] * 19
    assert synthetic.tolist() == [2] + [0] * 19
    assert length_error(*case.arguments) == 0


def test_a_jump_is_not_travelled():
    case = compared([(0, [(0.1, 0.1), (0.9, 0.9)])], [(0, [(0.1, 0.1)] * 2)])
    edges, real, synthetic = length_histograms(Pair.of(*case.arguments))
    assert edges.tolist() == [0.0] * 21
    assert (real[0], synthetic[0]) == (2, 1)


def test_points_outside_the_box_travel_from_where_they_are():
    far = [(0, [(0.5, 0.95)] * 99 + [(0.5, 3.95)])]
    edges, _, _ = length_histograms(Pair.of(*compared(far, [(0, [(0.5, 0.5)])]).arguments))
    assert edges[-1] == pytest.approx(3.0)


@given(cases())
def test_duration_error_is_that_of_the_plain_loop(case):
    assert duration_error(*case.arguments) == same(naive.duration_error(case.prepared))


@given(cases())
def test_durations_are_counted_one_by_one(case):
    pair = case.prepared
    real, synthetic = ([len(trip.cells) for trip in trips] for trips in (pair.real, pair.synthetic))
    numbers = range(max(*real, *synthetic) + 1)
    found = [counts.tolist() for counts in duration_counts(Pair.of(*case.arguments))]
    assert found == [[real.count(n) for n in numbers], [synthetic.count(n) for n in numbers]]


@given(cases())
def test_stream_ratio_is_that_of_the_plain_loop(case):
    assert stream_ratio(*case.arguments) == same(naive.stream_ratio(case.prepared))


def test_streams_off_the_timeline_do_not_count_and_jumps_make_no_more_of_them():
    real = [(0, [(0.1, 0.1), (0.9, 0.9), (0.1, 0.1)]), (1, [(0.1, 0.1)])]
    synthetic = [(-2, [(0.1, 0.1)] * 2), (-2, [(0.1, 0.1)] * 3), (3, [(0.1, 0.1)])]
    assert stream_ratio(*compared(real, synthetic).arguments) == 0.5
