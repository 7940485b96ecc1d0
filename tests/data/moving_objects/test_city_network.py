"""The built-in city: any size, connected, with roads of every kind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.data.moving_objects.city_network import city_network
from retrasyn.errors import SettingError


@given(st.integers(2, 3000))
def test_a_city_has_about_the_size_asked_for_and_no_part_is_cut_off(size):
    network = city_network(size)  # a cut-off part would warn, and warnings fail

    assert size <= network.n_nodes <= max(2 * size, 9)


def test_a_city_has_rings_arterials_and_local_streets():
    network = city_network(5_000)

    assert (np.bincount(network.road_class, minlength=5) > 0).all()
    centre = network.x.mean(), network.y.mean()
    radius = np.hypot(network.x - centre[0], network.y - centre[1])
    motorway = network.road_class == 0
    assert radius[network.tail[motorway]] == pytest.approx(radius.max(), rel=1e-3)
    assert (network.road_class == 2).sum() % 8 == 0  # eight arterials of the same length


def test_blocks_are_of_similar_size_wherever_they_lie():
    network = city_network(5_000)

    assert network.length.min() > 30
    assert network.length.max() < 250


def test_a_city_is_the_same_every_time():
    assert city_network(500).x.tobytes() == city_network(500).x.tobytes()


@pytest.mark.parametrize("size", [-1, 0, 1, 1_000_001])
def test_an_impossible_size_is_refused(size):
    with pytest.raises(SettingError, match=f"size={size}"):
        city_network(size)
