"""The cities that stand for the planner's own."""

import numpy as np
import pytest

from retrasyn.planning.trial import built_in_cities


@pytest.fixture(scope="module")
def cities():
    return built_in_cities(n_timestamps=60)


def test_about_five_thousand_people_are_on_their_way(cities):
    for city in cities:
        assert 2_000 < city.n_active < 8_000
        assert city.weight == 1


def test_one_city_breathes_and_the_other_does_not(cities):
    at_rest, busy = (np.bincount(city.trips.t, minlength=60)[30:] for city in cities)
    assert at_rest.max() < 1.2 * at_rest.min()
    assert busy.max() > 1.5 * busy.min()


def test_a_small_city_keeps_some_people_with_all_their_trips(cities):
    for city in cities:
        small = city.of_size(200)
        assert small.weight == 1
        assert small.n_active == pytest.approx(200, rel=0.25)
        kept = np.isin(city.drivers, small.drivers)
        assert np.array_equal(city.trips.stream_ids[kept], small.trips.stream_ids)
        assert city.trips.lengths[kept].sum() == small.trips.n_points


def test_the_smallest_city_has_somebody(cities):
    for city in cities:
        assert 1 <= np.unique(city.of_size(1).drivers).size <= 5


def test_a_large_city_has_the_same_people_who_stand_for_more(cities):
    for city in cities:
        large = city.of_size(1_000_000)
        assert large.trips is city.trips
        assert large.weight * large.n_active == pytest.approx(1_000_000)
