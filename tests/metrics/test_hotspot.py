"""Hotspot NDCG against plain ranking."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from retrasyn.metrics.hotspot import hotspot_ndcg, ndcg
from retrasyn.metrics.spans import random_spans
from support.metric_pairs import UNIT, Case, cases, same

N_SPANS = 9
CENTRES = [((cell % 3 + 0.5) / 3, (cell // 3 + 0.5) / 3) for cell in range(9)]


@given(cases(), st.sampled_from([10, 1, 3]))
def test_hotspot_ndcg_is_that_of_the_plain_loop(case, top):
    pair = case.prepared
    starts = random_spans(pair.n_timestamps, case.span, N_SPANS, seed=case.seed, purpose="hotspot")
    expected = naive.hotspot_ndcg(pair, starts.tolist(), case.span, top)
    found = hotspot_ndcg(*case.arguments, span=case.span, n_spans=N_SPANS, top=top, seed=case.seed)
    assert found == same(expected)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1), st.integers(1, 12))
def test_rankings_full_of_ties_are_rated_as_in_the_plain_loop(counts, top):
    real, synthetic = (np.array(column) for column in zip(*counts, strict=True))
    expected = naive.ndcg(*(dict(enumerate(row.tolist())) for row in (real, synthetic)), top)
    assert ndcg(real, synthetic, top) == same(expected)


def test_two_cells_exchanged_cost_what_the_formula_says():
    real, synthetic = np.array([5, 3, 0]), np.array([3, 5, 0])
    expected = (1 / 2 + 1 / math.log2(3)) / (1 + 1 / 2 / math.log2(3))
    assert ndcg(real, synthetic, 10) == pytest.approx(expected)


def test_a_span_without_real_points_is_left_out_and_one_without_synthetic_is_0():
    busy = [(0, [CENTRES[4]] * 3)]
    real = [*busy, (9, [CENTRES[4]])]
    case = Case(real, busy, UNIT, 3, span=1, seed=0)
    starts = random_spans(10, 1, 200, seed=0, purpose="hotspot").tolist()
    found, missed = sum(start < 3 for start in starts), starts.count(9)
    value = hotspot_ndcg(*case.arguments, span=1, n_spans=200)
    assert value == pytest.approx(found / (found + missed))
