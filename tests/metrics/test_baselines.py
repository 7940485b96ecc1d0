"""A crowd that knows nothing, and one half of the real data against the other."""

import numpy as np
import pytest

from retrasyn.metrics.baselines import halves, plain_baselines, uniform_crowd
from retrasyn.metrics.suite import evaluate_pair
from support.report_pairs import EDGES, make_pair


def present(data, n_timestamps):
    """Count the points of every timestamp."""
    counts = np.zeros(n_timestamps, int)
    for begin, length in zip(data.begins, data.lengths, strict=True):
        counts[begin : begin + length] += 1
    return counts.tolist()


@pytest.mark.parametrize("shape", [{}, *EDGES.values()])
def test_a_uniform_crowd_has_as_many_points_at_every_timestamp_and_nobody_moves(shape):
    pair = make_pair(**shape)
    crowd = uniform_crowd(pair, np.random.default_rng(1))
    assert present(crowd, pair.n_timestamps) == present(pair.real, pair.n_timestamps)
    assert crowd.lengths.min() > 0
    for low, high in zip(crowd.starts[:-1], crowd.starts[1:], strict=True):
        assert np.ptp(crowd.x[low:high]) == np.ptp(crowd.y[low:high]) == 0
    assert np.array_equal(crowd.cells, pair.grid.cells_of(crowd.x, crowd.y))


def test_a_uniform_crowd_is_everywhere_alike():
    pair = make_pair(n=4_000, side=4)
    cells = uniform_crowd(pair, np.random.default_rng(1)).cells
    shares = np.bincount(cells, minlength=16) / cells.size
    assert np.abs(shares - 1 / 16).max() < 0.02


def test_both_halves_are_all_of_the_real_streams():
    pair = make_pair(n=31)
    both = halves(pair, np.random.default_rng(1))
    assert abs(both.n_streams_real - both.n_streams_synthetic) <= 1
    assert sorted([*both.real.x, *both.synthetic.x]) == sorted(pair.real.x)
    assert sorted([*both.real.begins, *both.synthetic.begins]) == sorted(pair.real.begins)


def test_halves_are_nearer_than_a_uniform_crowd():
    found = plain_baselines(make_pair(n=3_000, side=3), evaluate_pair)
    for figure in ("transition_error", "length_error", "query_error"):
        assert found["half"][figure] < 0.4 * found["uniform"][figure]


def test_a_single_stream_has_no_other_half():
    assert set(plain_baselines(make_pair(n=1, n_timestamps=7), evaluate_pair)) == {"uniform"}
