"""Pattern F1 against plain counting."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from retrasyn.metrics.pair import Pair
from retrasyn.metrics.pattern import pattern_f1, top_patterns
from retrasyn.metrics.spans import random_spans
from support.metric_pairs import UNIT, Case, cases, same

N_SPANS = 6
SIDE = 4
CENTRES = [((cell % SIDE + 0.5) / SIDE, (cell // SIDE + 0.5) / SIDE) for cell in range(SIDE**2)]


def through(*cells, begin=0):
    return (begin, [CENTRES[cell] for cell in cells])


def patterns(paths, first, last, n=1000):
    case = Case(paths, paths, UNIT, SIDE, span=1, seed=0)
    pair = Pair.of(*case.arguments)
    found = top_patterns(pair.real, case.grid, first, last, n)
    assert found == naive.top_patterns(case.prepared.real, first, last, n)
    return dict(found)


@given(cases(), st.sampled_from([100, 1, 4]))
def test_pattern_f1_is_that_of_the_plain_loop(case, top):
    pair = case.prepared
    starts = random_spans(pair.n_timestamps, case.span, N_SPANS, seed=case.seed, purpose="pattern")
    expected = naive.pattern_f1(pair, starts.tolist(), case.span, top)
    found = pattern_f1(*case.arguments, span=case.span, n_spans=N_SPANS, top=top, seed=case.seed)
    assert found == same(expected)


@given(cases(), st.integers(0, 8), st.integers(1, 16), st.sampled_from([1000, 1, 5, 30]))
def test_top_patterns_are_those_of_the_plain_loop(case, first, length, n):
    pair, expected = Pair.of(*case.arguments), case.prepared
    for gridded, trips in ((pair.real, expected.real), (pair.synthetic, expected.synthetic)):
        found = top_patterns(gridded, case.grid, first, first + length, n)
        assert found == naive.top_patterns(trips, first, first + length, n)


@given(st.integers(1, 5), st.data())
def test_random_walks_on_few_cells_have_the_patterns_of_the_plain_loop(side, data):
    walks = data.draw(st.lists(st.lists(st.integers(0, 8), max_size=12), min_size=1, max_size=12))
    paths = []
    for directions in walks:
        row = column = side // 2
        points = [(row, column)]
        for direction in directions:
            row = min(max(row + direction // 3 - 1, 0), side - 1)
            column = min(max(column + direction % 3 - 1, 0), side - 1)
            points.append((row, column))
        placed = [((column + 0.5) / side, (row + 0.5) / side) for row, column in points]
        paths.append((data.draw(st.integers(0, 3)), placed))
    case = Case(paths, paths, UNIT, side, span=1, seed=0)
    n = data.draw(st.sampled_from([1000, 3, 20]))
    found = top_patterns(Pair.of(*case.arguments).real, case.grid, 1, 9, n)
    shift = min(begin for begin, _ in paths)
    trips = naive.cut_at_jumps([(begin - shift, points) for begin, points in paths], UNIT, side)
    assert found == naive.top_patterns(trips, 1, 9, n)


def test_a_pattern_of_two_may_be_a_stay_and_a_longer_one_may_come_back():
    assert patterns([through(0, 0, 1, 0, 0, 0)], 0, 6) == {
        (0, 0): 3,
        (0, 1): 1,
        (1, 0): 1,
        (0, 1, 0): 1,
    }


def test_patterns_have_at_most_five_cells_and_lie_wholly_inside_the_span():
    line = [through(0, 1, 2, 3, 7, 11)]
    assert max(map(len, patterns(line, 0, 6))) == 5
    assert set(patterns(line, 1, 4)) == {(1, 2), (2, 3), (1, 2, 3)}
    assert patterns(line, 2, 3) == {}


def test_jumps_and_the_ends_of_streams_break_patterns():
    assert patterns([through(0, 1, 15, 14), through(0, begin=4), through(1, begin=5)], 0, 6) == {
        (0, 1): 1,
        (15, 14): 1,
    }


def test_of_patterns_as_frequent_the_shorter_goes_first_and_then_the_smaller_cells():
    found = patterns([through(10, 9, 5), through(1, 0, 4)], 0, 3)
    assert list(found) == [(0, 4), (1, 0), (9, 5), (10, 9), (1, 0, 4), (10, 9, 5)]
    assert list(patterns([through(10, 9, 5), through(1, 0, 4)], 0, 3, n=3)) == list(found)[:3]


def test_a_span_without_patterns_is_left_out_unless_only_one_side_has_none():
    real = [through(0, 1), through(0, begin=9)]
    case = Case(real, [through(0, 1), through(4, 4, begin=5)], UNIT, SIDE, span=2, seed=0)
    starts = random_spans(10, 2, 300, seed=0, purpose="pattern").tolist()
    found, missed = starts.count(0), starts.count(5)
    assert pattern_f1(*case.arguments, span=2, n_spans=300) == same(found / (found + missed))
    assert math.isnan(pattern_f1(*case.arguments, span=1))


@pytest.mark.parametrize("side", [1, 64])
def test_the_smallest_and_the_largest_grid_have_room_for_every_pattern(side):
    corner = 1 - 0.5 / side
    step = 1 / side
    down = [(corner - step * n, corner - step * n) for n in range(6)] if side > 1 else []
    points = [*down, *reversed(down), (corner, corner), (corner, corner)]
    case = Case([(0, points)], [(0, points)], UNIT, side, span=20, seed=0)
    found = top_patterns(Pair.of(*case.arguments).real, case.grid, 0, len(points), 1000)
    assert found == naive.top_patterns(case.prepared.real, 0, len(points), 1000)
