"""Intervals follow from how far replicas are from the release, and reach farther up."""

import math

import numpy as np
import pytest
from scipy.stats import t as student

from retrasyn.answers.intervals import COVERS, Intervals


def test_the_standard_error_is_the_distance_from_the_release_and_not_from_the_replicas_mean():
    found = Intervals.of([10.0], [[13.0], [13.0]])
    assert found.standard_error == pytest.approx([3.0])


@pytest.mark.parametrize("n", [5, 20, 100])
def test_an_interval_is_of_student_s_law_below_and_of_its_logarithm_above(n):
    replicas = np.resize([80.0, 120.0], n)[:, None]
    found = Intervals.of([100.0], replicas)
    quantile = student.ppf((1 + COVERS) / 2, n)
    assert found.low == pytest.approx([100 - quantile * 20], rel=0.01)
    assert found.high == pytest.approx([100 * math.exp(quantile * math.sqrt(math.log(1.04)))], 0.01)
    assert not found.unclear.any()


def test_nothing_is_negative_and_what_may_be_nothing_is_unclear():
    found = Intervals.of([1.0, 0.0, 0.0], [[0.0, 2.0, 0.0], [3.0, 0.0, 0.0]])
    assert found.low.tolist() == [0.0, 0.0, 0.0]
    assert found.unclear.tolist() == [True, True, False]
    assert found.high[1] > math.sqrt(2)
    assert found.high[2] == 0.0


def test_shapes_are_kept():
    found = Intervals.of(np.ones((3, 2)), np.ones((4, 3, 2)))
    assert {part.shape for part in (found.low, found.high, found.unclear)} == {(3, 2)}
