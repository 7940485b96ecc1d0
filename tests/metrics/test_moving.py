"""Metrics while the stream goes on: timestamp by timestamp they are those of whole files."""

import math

import numpy as np
import pytest
from hypothesis import given

import naive
from retrasyn.metrics.density import density_errors
from retrasyn.metrics.moving import MovingScores, Points
from retrasyn.metrics.pair import Pair
from retrasyn.metrics.query import random_queries
from retrasyn.metrics.transition import transition_errors
from support.metric_pairs import UNIT, Case, cases, same

FEW = {"n_queries": 7, "top_cells": 4, "top_patterns": 9}
NOBODY = Points(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


def points_at(paths, t, random) -> Points:
    """Return who is where, in any order; a path's number is its identifier."""
    rows = [
        (identifier, *points[t - begin])
        for identifier, (begin, points) in enumerate(paths)
        if 0 <= t - begin < len(points)
    ]
    if not rows:
        return NOBODY
    ids, x, y = zip(*[rows[n] for n in random.permutation(len(rows))], strict=True)
    return Points(np.array(ids), np.array(x), np.array(y))


def steps_of(case):
    """Return the real timeline's timestamps: their number, real and synthetic points."""
    random = np.random.default_rng(case.seed)
    first = min(begin for begin, _ in case.real)
    for t in range(first, first + case.prepared.n_timestamps):
        yield t - first, points_at(case.real, t, random), points_at(case.synthetic, t, random)


def window(case, first, n_timestamps) -> naive.NaivePair:
    """Return some timestamps alone, numbered from the first real one."""
    first_t = min(begin for begin, _ in case.real) + first
    real, synthetic = (
        naive.cut_at_jumps(naive.on_timeline(paths, first_t, n_timestamps), case.box, case.side)
        for paths in (case.real, case.synthetic)
    )
    return naive.NaivePair(real, synthetic, n_timestamps, len(real), len(synthetic))


@given(cases())
def test_the_newest_timestamp_has_the_errors_it_has_in_the_whole_file(case):
    pair = Pair.of(*case.arguments)
    density, transition = density_errors(pair), transition_errors(pair)
    scores = MovingScores(case.grid, span=max(case.span, 2), **FEW)
    for t, real, synthetic in steps_of(case):
        latest = scores.update(real, synthetic)
        assert latest.density_error == same(density[t])
        assert latest.transition_error == same(transition[t])


@given(cases())
def test_the_latest_span_has_the_figures_of_the_plain_loop(case):
    span = min(case.span, 5)
    scores = MovingScores(case.grid, span=span, seed=case.seed, **FEW)
    for t, real, synthetic in steps_of(case):
        latest = scores.update(real, synthetic)
        span_figures = latest.query_error, latest.hotspot_ndcg, latest.pattern_f1
        if t + 1 < span:
            assert np.isnan(span_figures).all()
            continue
        alone = window(case, t + 1 - span, span)
        starts, squares = random_queries(scores.latest(span), span, 7, case.seed)
        assert not starts.any()
        queries = [(0, x, y) for x, y in squares[:, :2].tolist()]
        known = bool(alone.real)
        expected = naive.query_error(alone, case.box, queries, span) if known else math.nan
        assert latest.query_error == same(expected)
        assert latest.hotspot_ndcg == same(naive.hotspot_ndcg(alone, [0], span, 4))
        assert latest.pattern_f1 == same(naive.pattern_f1(alone, [0], span, 9))


def test_moves_are_compared_even_if_a_span_is_one_timestamp():
    scores = MovingScores(Case([], [], UNIT, 4, 1, 0).grid, span=1)
    here = Points(np.array([1]), np.array([0.1]), np.array([0.1]))
    there = Points(np.array([1]), np.array([0.3]), np.array([0.1]))
    scores.update(here, here)
    assert scores.update(there, here).transition_error == pytest.approx(math.log(2))
    assert scores.update(there, here).transition_error == pytest.approx(math.log(2))


@pytest.mark.parametrize("somebody", [True, False])
def test_a_span_without_real_points_cannot_be_queried(somebody):
    scores = MovingScores(Case([], [], UNIT, 4, 1, 0).grid, span=2, n_queries=50)
    crowd = Points(np.arange(50), np.linspace(0, 1, 50), np.linspace(0, 1, 50))
    for _ in range(3):
        latest = scores.update(NOBODY, crowd if somebody else NOBODY)
    assert math.isnan(latest.query_error)
    assert math.isnan(latest.hotspot_ndcg)
    assert latest.density_error == same(math.log(2) if somebody else math.nan)


def test_somebody_who_pauses_makes_no_move_over_the_pause():
    scores = MovingScores(Case([], [], UNIT, 4, 1, 0).grid, span=3)
    here = Points(np.array([7]), np.array([0.1]), np.array([0.1]))
    scores.update(here, here)
    scores.update(NOBODY, here)
    latest = scores.update(here, here)
    assert latest.transition_error == pytest.approx(math.log(2))
    assert latest.pattern_f1 == 0.0
    assert scores.latest(3).real.begins.tolist() == [0, 2]
