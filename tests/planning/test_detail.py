"""What a coarse grid cannot show."""

import numpy as np
import pytest

from retrasyn.planning.closed_forms import FINEST, lost_detail


@pytest.fixture
def lumpy():
    shares = np.random.default_rng(3).gamma(0.5, size=(FINEST, FINEST))
    return shares / shares.sum()


def divergence(one, other):
    middle = (one + other) / 2
    return sum(np.sum(side * np.log(side / middle)) for side in (one, other)) / 2


def in_blocks(fine, side):
    """Return the same map with every cell of a coarser grid levelled, by plain means."""
    size = FINEST // side
    means = fine.reshape(side, size, side, size).mean(axis=(1, 3))
    return np.kron(means, np.ones((size, size)))


@pytest.mark.parametrize("side", [2, 3, 4, 6, 8, 12])
def test_detail_is_the_divergence_from_levelled_cells(side, lumpy):
    assert lost_detail(lumpy, side) == pytest.approx(divergence(lumpy, in_blocks(lumpy, side)))


def test_a_finer_grid_loses_less_and_the_finest_nothing(lumpy):
    lost = [lost_detail(lumpy, side) for side in (2, 4, 8, 24)]
    assert lost == sorted(lost, reverse=True)
    assert lost[-1] == pytest.approx(0)


def test_a_grid_that_does_not_divide_the_finest_loses_about_as_much(lumpy):
    assert lost_detail(lumpy, 12) < lost_detail(lumpy, 10) < lost_detail(lumpy, 6)


def test_error_of_the_coarse_map_and_lost_detail_add_up(lumpy):
    coarse = in_blocks(lumpy, 6)
    wrong = 1 + 0.3 * np.random.default_rng(1).uniform(-1, 1, (6, 6))
    off = coarse * np.kron(wrong, np.ones((4, 4)))
    off /= off.sum()
    assert divergence(lumpy, off) == pytest.approx(
        divergence(coarse, off) + lost_detail(lumpy, 6), rel=0.02
    )
