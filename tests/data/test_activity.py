"""Counting people at a time, also where a person has several streams."""

import numpy as np
import pytest

from retrasyn import demo_city
from retrasyn.data.activity import Activity
from retrasyn.data.trajectories import Trajectories
from support.folding import with_clock


def by_hand(real):
    people = real.traj_id if real.user_id is None else real.user_id
    present = set(zip(real.t.tolist(), people.tolist(), strict=True))
    return [sum(t == then for then, _ in present) for t in range(real.first_t, real.last_t + 1)]


@pytest.mark.parametrize("folds", [False, True])
def test_people_are_counted_as_a_plain_loop_counts_them(folds):
    real = with_clock(demo_city(n_users=40, n_timestamps=30, seed=2))
    real = real.folded() if folds else real

    active, counts = Activity.of(real), by_hand(real)

    assert (active.mean, active.median) == pytest.approx((np.mean(counts), np.median(counts)))
    assert (active.n_timestamps, active.least) == (len(counts), min(counts))


def test_empty_timestamps_are_counted_and_said():
    real = Trajectories.from_columns(traj_id=[1, 2], t=[5, 9], x=[0, 1], y=[0, 1])

    active = Activity.of(real)

    assert active == Activity(n_timestamps=5, n_empty=3, mean=0.4, median=0.0, least=0)
    assert active.words == (
        "0.4 people active at a time (median 0, least 0); 3 of 5 timestamps are empty"
    )
