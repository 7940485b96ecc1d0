"""Demand: where trips start and end, and how many begin when."""

import numpy as np
import pytest

from retrasyn.data.moving_objects.city_network import city_network
from retrasyn.data.moving_objects.demand import Demand, count_births, tides, uniforms


@pytest.fixture(scope="module")
def city():
    return city_network(1_000)


def distance_from_middle(network, nodes):
    return np.hypot(network.x[nodes] - network.x.mean(), network.y[nodes] - network.y.mean())


def test_draws_depend_on_seed_purpose_and_object_only():
    objects = np.arange(1_000)

    drawn = uniforms(3, "start", objects)

    assert np.array_equal(drawn[500:], uniforms(3, "start", objects[500:]))
    assert not np.array_equal(drawn, uniforms(4, "start", objects))
    assert not np.array_equal(drawn, uniforms(3, "class", objects))
    assert 0 <= drawn.min() <= drawn.max() < 1


def test_without_a_rhythm_every_node_is_as_likely_a_start(city):
    n = 200_000
    start, goal = Demand.over(city, seed=1).starts_and_goals(np.arange(n), np.zeros(n, int), None)

    counts = np.bincount(start, minlength=city.n_nodes)
    expected = n / city.n_nodes
    chi_squared = ((counts - expected) ** 2 / expected).sum()
    # Significance 1e-6: chi-squared is about normal with that many degrees of freedom.
    freedom = city.n_nodes - 1
    assert abs(chi_squared - freedom) < 4.9 * np.sqrt(2 * freedom)
    assert (start != goal).all()


def test_trips_are_shorter_than_between_random_nodes(city):
    n = 20_000
    demand = Demand.over(city, seed=1)
    start, goal = demand.starts_and_goals(np.arange(n), np.zeros(n, int), None)

    trip = np.hypot(city.x[start] - city.x[goal], city.y[start] - city.y[goal]).mean()

    apart = np.hypot(city.x[start] - city.x[goal[::-1]], city.y[start] - city.y[goal[::-1]]).mean()
    assert 0.3 * apart < trip < 0.8 * apart


def test_in_the_morning_people_go_to_the_middle_and_in_the_evening_away_from_it(city):
    n, day = 20_000, 240
    demand = Demand.over(city, seed=2)
    drawn = {
        hour: demand.starts_and_goals(np.arange(n), np.full(n, day * hour // 24), day)
        for hour in (3, 8, 17)
    }

    inwards = {
        hour: (distance_from_middle(city, start) - distance_from_middle(city, goal)).mean()
        for hour, (start, goal) in drawn.items()
    }

    scale = distance_from_middle(city, np.arange(city.n_nodes)).mean()
    assert inwards[8] > 0.2 * scale
    assert inwards[17] < -0.2 * scale
    assert abs(inwards[3]) < 0.1 * scale


def test_births_follow_the_tides_and_keep_their_mean():
    births = count_births(n_objects=7, n_new=50, n_steps=1 + 3 * 100, day=100)

    assert births[0] == 7
    assert births[1:].sum() == pytest.approx(50 * 300, rel=0.001)
    assert births[133] > 2 * births[105]
    assert np.argmax(tides(np.arange(100), 100)[1]) == 33


def test_without_a_rhythm_births_are_even():
    births = count_births(n_objects=10, n_new=3, n_steps=5, day=None)

    assert births.tolist() == [10, 3, 3, 3, 3]


def test_elsewhere_is_one_place_away_from_the_middle(city):
    n = 5_000
    start = np.zeros(n, np.int64)

    goal = Demand.over(city, seed=5).elsewhere(np.arange(n), start)

    spread = np.hypot(np.std(city.x[goal]), np.std(city.y[goal]))
    assert spread < 0.1 * city.extent
    assert distance_from_middle(city, goal).mean() > 0.1 * city.extent
    assert (goal != start).all()
