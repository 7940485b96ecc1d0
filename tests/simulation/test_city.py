"""The city of the demo: reproducible, and rerouted if asked for."""

import numpy as np
import pytest

from retrasyn.errors import SettingError
from retrasyn.simulation.city import city_roads, demo_city


def test_a_reroute_changes_the_city_from_its_timestamp_on():
    plain, turned, again = (
        demo_city(n_users=2_000, n_timestamps=100, reroute=reroute, seed=2)
        for reroute in (None, 40, 40)
    )

    for column in ("traj_id", "user_id", "t", "x", "y"):
        first, second = (getattr(made, column)[made.t < 40] for made in (plain, turned))
        assert np.array_equal(first, second)
        assert np.array_equal(getattr(turned, column), getattr(again, column))
    late = [np.stack([made.x, made.y])[:, made.t > 70] for made in (plain, turned)]
    crowds = [np.median(points, axis=1) for points in late]
    assert np.hypot(*(crowds[0] - crowds[1])) > 2  # of ten


def test_a_reroute_outside_the_run_is_refused():
    with pytest.raises(SettingError, match="reroute=50 must be a step of the run, 0 to 49"):
        demo_city(n_users=20, n_timestamps=50, reroute=50)


def test_everybody_in_the_city_drives_on_the_roads_that_are_drawn():
    city, roads = demo_city(n_users=100, n_timestamps=30, seed=1), city_roads()

    tail = np.stack([roads.x[roads.tail], roads.y[roads.tail]])[:, None]  # [2, 1, n_edges]
    along = np.stack([roads.x[roads.head], roads.y[roads.head]])[:, None] - tail
    to_point = np.stack([city.x, city.y])[:, :, None] - tail  # [2, n_points, n_edges]
    share = np.clip((to_point * along).sum(axis=0) / (along**2).sum(axis=0), 0, 1)
    distance = np.hypot(*(to_point - share * along)).min(axis=1)  # [n_points]

    assert distance.max() < 1e-6
