"""Random spans and random queries: where they lie, and how they are spread.

Tests of distributions are seeded; their significance level is 1e-6.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from retrasyn.errors import SettingError
from retrasyn.metrics.pair import Gridded, Pair
from retrasyn.metrics.query import random_queries
from retrasyn.metrics.spans import random_spans
from retrasyn.space import Box, Grid
from support.metric_pairs import BOXES

SIGNIFICANCE = 1e-6
NOBODY = Gridded(
    np.zeros(0, np.uint16), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
)


def pair_over(box, n_timestamps=50, side=3):
    return Pair(NOBODY, NOBODY, Grid(Box(*box), side), 0, n_timestamps, 0, 0, ())


@given(st.integers(1, 40), st.integers(1, 60), st.integers(1, 50), st.integers(0, 2**40))
def test_spans_lie_on_the_timeline_and_are_drawn_again(n_timestamps, span, n, seed):
    starts = random_spans(n_timestamps, span, n, seed=seed, purpose="hotspot")
    assert starts.shape == (n,)
    assert starts.min() >= 0
    assert starts.max() <= max(n_timestamps - span, 0)
    again = random_spans(n_timestamps, span, n, seed=seed, purpose="hotspot")
    assert again.tolist() == starts.tolist()


@pytest.mark.parametrize(("n_timestamps", "span"), [(29, 20), (10, 1), (2, 1), (40, 33)])
@pytest.mark.parametrize("purpose", ["hotspot", "pattern", "query span"])
def test_spans_begin_anywhere_alike(n_timestamps, span, purpose):
    starts = random_spans(n_timestamps, span, 20_000, seed=3, purpose=purpose)
    counts = np.bincount(starts, minlength=n_timestamps - span + 1)
    assert counts.size == n_timestamps - span + 1
    assert stats.chisquare(counts).pvalue > SIGNIFICANCE


def test_every_seed_and_purpose_has_spans_of_its_own():
    drawn = {
        tuple(random_spans(1000, 20, 100, seed=seed, purpose=purpose).tolist())
        for seed in (0, 1, 2, 10**9)
        for purpose in ("hotspot", "pattern", "query span")
    }
    assert len(drawn) == 12


@pytest.mark.parametrize(("span", "n"), [(0, 5), (-1, 5), (5, 0)])
def test_no_span_and_no_length_are_refused(span, n):
    with pytest.raises(SettingError, match="whole number from 1"):
        random_spans(10, span, n, seed=0, purpose="hotspot")


@pytest.mark.parametrize("box", [*BOXES, (-0.54, 0.0, 0.41, 50.0), (1e6, 1e6, 1e6 + 1, 1e6 + 9)])
def test_queries_are_squares_of_a_ninth_of_the_box_inside_it(box):
    starts, squares = random_queries(pair_over(box), 20, 2000, 7)
    x0, y0, x1, y1 = squares.T
    width, height = box[2] - box[0], box[3] - box[1]
    side = np.sqrt(width * height / 9)
    assert starts.shape == (2000,)
    assert (x0 >= box[0]).all()
    assert (y0 >= box[1]).all()
    assert (x1 <= box[2]).all()
    assert (y1 <= box[3]).all()
    np.testing.assert_allclose(x1 - x0, min(side, width), rtol=1e-8)
    np.testing.assert_allclose(y1 - y0, min(side, height), rtol=1e-8)


@pytest.mark.parametrize("box", BOXES)
def test_queries_lie_anywhere_alike(box):
    starts, squares = random_queries(pair_over(box), 20, 5000, 11)
    width, height = box[2] - box[0], box[3] - box[1]
    side = np.sqrt(width * height / 9)
    samples = [starts + np.random.default_rng(0).random(5000)]  # spread inside a timestamp
    uniform = [stats.uniform(0, 31)]
    for corner, low, slack in ((0, box[0], width - side), (1, box[1], height - side)):
        if slack > 0:
            samples.append(squares[:, corner])
            uniform.append(stats.uniform(low, slack))
    for sample, law in zip(samples, uniform, strict=True):
        assert stats.kstest(sample, law.cdf).pvalue > SIGNIFICANCE
    for i, one in enumerate(samples):
        for other in samples[:i]:
            assert stats.spearmanr(one, other).pvalue > SIGNIFICANCE


def test_queries_are_given_by_the_seed():
    first, second, third = (random_queries(pair_over(BOXES[0]), 20, 50, seed) for seed in (5, 5, 6))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(first, third, strict=True))


def test_squares_are_the_same_whatever_the_grid_and_the_timeline():
    _, squares = random_queries(pair_over(BOXES[1]), 20, 50, 5)
    _, others = random_queries(pair_over(BOXES[1], n_timestamps=7, side=9), 3, 50, 5)
    np.testing.assert_array_equal(squares, others)
