"""Query error against plain counting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from retrasyn.metrics.pair import Pair
from retrasyn.metrics.query import query_error, query_errors, random_queries
from support.metric_pairs import BOXES, UNIT, Case, cases, same

N_QUERIES = 12


def expected_error(case, n_queries=N_QUERIES):
    """Ask the package's queries in the plain loop; only their lower left is taken over."""
    starts, squares = random_queries(Pair.of(*case.arguments), case.span, n_queries, case.seed)
    corners = squares[:, :2].tolist()
    queries = [(start, *corner) for start, corner in zip(starts.tolist(), corners, strict=True)]
    return naive.query_error(case.prepared, case.box, queries, case.span)


def error(case, n_queries=N_QUERIES):
    return query_error(*case.arguments, span=case.span, n_queries=n_queries, seed=case.seed)


@given(cases())
def test_query_error_is_that_of_the_plain_loop(case):
    assert error(case) == same(expected_error(case))


@given(st.sampled_from(BOXES), st.integers(0, 1000))
def test_points_on_the_edge_of_a_query_count_and_the_next_beyond_do_not(box, seed):
    clock = [(0, [(box[0], box[1])]), (3, [(box[0], box[1])])]
    blank = Case(clock, clock, box, 3, span=2, seed=seed)
    _, squares = random_queries(Pair.of(*blank.arguments), 2, N_QUERIES, seed)
    points = []
    for x0, y0, x1, y1 in squares.tolist():
        middle = (x0 + x1) / 2, (y0 + y1) / 2
        across = (x0, x1, np.nextafter(x0, box[0]), np.nextafter(x1, box[2]))
        along = (y0, y1, np.nextafter(y0, box[1]), np.nextafter(y1, box[3]))
        points += [(float(x), middle[1]) for x in across]
        points += [(middle[0], float(y)) for y in along]
    order = np.random.default_rng(seed).permutation(len(points)).tolist()
    half = len(points) // 2
    real = [(n % 4, [points[n]]) for n in order[:half]] + clock
    synthetic = [(n % 3, [points[n]]) for n in order[half:]] + clock
    case = Case(real, synthetic, box, 3, span=2, seed=seed)
    assert error(case) == same(expected_error(case))


def test_a_query_as_high_as_the_box_holds_the_upper_edge():
    box = (0.0, -0.54, 50.0, 0.41)  # -0.54 + (0.41 - -0.54) is less than 0.41 in floats
    points = [(50 * (n + 0.5) / 200, 0.41) for n in range(200)]
    case = Case([(0, points)], [(0, points[:100])], box, 3, span=200, seed=0)
    assert error(case) == same(expected_error(case))


def test_few_real_points_are_taken_for_a_hundredth_of_a_span():
    corner = [(0.001, 0.001)]  # hardly ever in a query
    everywhere = [((n % 20 + 0.5) / 20, (n // 20 + 0.5) / 20) for n in range(400)]
    case = Case([(0, corner * 10)] * 40, [(0, [point]) for point in everywhere], UNIT, 3, 10, 0)
    errors = query_errors(Pair.of(*case.arguments), span=10, n_queries=30, seed=0)
    # a ninth of 400 points, seen at one of ten timestamps, over 1 % of 400
    assert np.median(errors) == pytest.approx(400 / 9 / 4, rel=0.15)
    assert error(case) == same(expected_error(case))


def test_twice_as_many_points_everywhere_is_an_error_of_one():
    real = [(0, [((n % 20 + 0.5) / 20, (n // 20 + 0.5) / 20)]) for n in range(400)]
    case = Case(real, real * 2, UNIT, 3, span=4, seed=1)
    assert error(case) == pytest.approx(1.0)
