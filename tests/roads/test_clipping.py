"""A network is cut at the walls of a box."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.errors import InputError
from retrasyn.roads.clipping import clip
from retrasyn.roads.network import RoadNetwork
from retrasyn.space import Box
from support.road_networks import distance_to_roads, road_networks


def test_a_road_that_crosses_a_wall_ends_there():
    network = RoadNetwork.from_edges(
        x=[0, 4, 4], y=[0, 0, 4], tail=[0, 1], head=[1, 2], length=[8, 4], road_class=[2, 3]
    )
    inside = clip(network, Box(1, -1, 5, 3))

    assert sorted(zip(inside.x.tolist(), inside.y.tolist(), strict=True)) == [
        (1, 0),
        (4, 0),
        (4, 3),
    ]
    assert sorted(inside.length.tolist()) == [3, 6]
    assert sorted(inside.road_class.tolist()) == [2, 3]
    assert inside.n_cut == 2
    assert inside.n_left_out == 0


def test_a_road_through_the_box_needs_no_node_in_it():
    network = RoadNetwork.from_edges(x=[-9, 9], y=[1, 1], tail=[0], head=[1])
    inside = clip(network, Box(0, 0, 3, 3))

    assert sorted(inside.x.tolist()) == [0, 3]
    assert inside.length.tolist() == [3]
    assert not inside.classed


def test_what_lost_its_connection_is_left_out_and_counted():
    x, y = [0, 1, 9, 1, 0], [0, 0, 1, 2, 2]  # a bow whose arc is outside
    network = RoadNetwork.from_edges(
        x=[*x, -1], y=[*y, 0], tail=[0, 1, 2, 3, 0], head=[1, 2, 3, 4, 5]
    )
    inside = clip(network, Box(-1, 0, 2, 2))

    assert inside.y.max() < 1
    assert inside.n_left_out == 3


def test_a_network_inside_the_box_stays_what_it_is():
    network = RoadNetwork.from_edges(x=[0, 1], y=[0, 0], tail=[0], head=[1])

    assert clip(network, Box(0, 0, 1, 1)) is network


def test_a_map_of_another_place_is_refused_with_both_boxes():
    network = RoadNetwork.from_edges(x=[100, 101], y=[0, 1], tail=[0], head=[1])

    with pytest.raises(InputError, match=r"roads of here lie .* 0,0,9,9; .* own is 100,0,101,1"):
        clip(network, Box(0, 0, 9, 9), "here")


@given(road_networks(), st.tuples(*[st.integers(0, 6)] * 2), st.tuples(*[st.integers(1, 6)] * 2))
def test_no_road_is_invented_and_none_reaches_beyond_the_box(network, corner, size):
    box = Box(corner[0], corner[1], corner[0] + size[0], corner[1] + size[1])
    try:
        inside = clip(network, box)
    except InputError:
        return

    assert inside.x.min() >= box.x0
    assert inside.x.max() <= box.x1
    assert inside.y.min() >= box.y0
    assert inside.y.max() <= box.y1
    assert distance_to_roads(network, inside.x, inside.y).max() < 1e-9
    assert inside.length.sum() <= network.length.sum() * (1 + 1e-9)
    assert math.isfinite(inside.extent)
    assert np.all(inside.length > -1e-12)
