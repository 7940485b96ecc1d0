"""Road networks: what is kept, what is refused, which class an edge gets."""

import warnings

import numpy as np
import pytest
from hypothesis import given

from retrasyn.errors import InputError
from retrasyn.roads.network import (
    Arcs,
    DisconnectedNetworkWarning,
    RoadNetwork,
    classify,
)
from support.road_networks import road_networks


def test_the_largest_part_is_kept_and_one_warning_counts_the_rest():
    with pytest.warns(DisconnectedNetworkWarning, match="3 of 6 nodes") as caught:
        network = RoadNetwork.from_edges(
            x=[9, 0, 1, 2, 8, 7], y=[0, 0, 0, 1, 0, 0], tail=[1, 2, 4], head=[2, 3, 5]
        )

    assert len(caught) == 1
    assert network.x.tolist() == [0, 1, 2]
    assert sorted(zip(network.tail.tolist(), network.head.tolist(), strict=True)) == [
        (0, 1),
        (1, 2),
    ]


@pytest.mark.parametrize(
    ("x", "tail", "head", "named"),
    [
        ([], [], [], "at least 2 connected nodes"),
        ([1], [], [], "at least 2 connected nodes"),
        ([1, 2], [], [], "at least 2 connected nodes"),
        ([1, 2], [1], [1], "at least 2 connected nodes"),
        ([3, 3], [0], [1], "one place"),
        ([1, 2], [0], [2], "one joins 2"),
        ([1, 2], [-1], [1], "one joins -1"),
        ([1, float("nan")], [0], [1], "x of node 1 is nan"),
        ([1, 1e200], [0], [1], "x of node 1 is 1e\\+200"),
    ],
)
def test_a_network_nothing_can_move_on_is_refused(x, tail, head, named):
    with pytest.raises(InputError, match=named):
        RoadNetwork.from_edges(x=x, y=[0.0] * len(x), tail=tail, head=head)


@pytest.mark.parametrize(
    ("column", "named"),
    [
        ({"length": [-1]}, "edge 0 is -1"),
        ({"length": [float("inf")]}, "edge 0 is inf"),
        ({"length": [1, 2]}, "one entry per edge"),
        ({"road_class": [7]}, "0 to 6"),
        ({"road_class": [-1]}, "0 to 6"),
    ],
)
def test_impossible_lengths_and_classes_are_refused(column, named):
    with pytest.raises(InputError, match=named):
        RoadNetwork.from_edges(x=[0, 1], y=[0, 0], tail=[0], head=[1], **column)


def test_of_parallel_edges_the_fastest_is_kept_and_loops_vanish():
    network = RoadNetwork.from_edges(
        x=[0, 4], y=[0, 3], tail=[0, 1, 0, 0], head=[1, 0, 1, 0], road_class=[3, 1, 2, 0]
    )

    assert network.n_edges == 1
    assert network.road_class.tolist() == [1]


def test_no_edge_is_shorter_than_its_straight_line():
    network = RoadNetwork.from_edges(
        x=[0, 3, 6], y=[0, 4, 8], tail=[0, 1], head=[1, 2], length=[1, 9]
    )

    assert network.length.tolist() == [5, 9]


def test_edges_without_a_class_get_one_by_length_and_degree():
    # A ladder: 0 - 1 - 2 ... along the bottom, a rung each, so that inner nodes are junctions.
    length = np.concatenate([np.full(50, 1.0), np.full(100, 2.0), np.arange(3.0, 53.0)])
    ends = np.array([np.arange(200), np.arange(200) + 1])
    degree_3 = np.array([[20, 21, 22, 23], [160, 161, 162, 163]])
    ends, length = np.hstack([ends, degree_3]), np.append(length, [2.0] * 4)

    road_class = classify(length, ends, 201)

    assert road_class[0] == 6  # a short dead end
    assert road_class[199] == 5  # a long dead end is no motorway
    assert road_class[[20, 21, 22]].tolist() == [4, 4, 4]  # short, between junctions
    assert road_class[30] == 3  # short, but on a road without junctions
    assert road_class[100] == 3
    assert road_class[198] == road_class[197] == 0
    assert road_class[190] == 1
    assert road_class[170] == 2
    assert np.bincount(road_class).tolist()[:3] == [2, 18, 16]


def test_edges_of_one_length_are_all_ordinary_or_smaller():
    network = RoadNetwork.from_edges(x=[0, 1, 2, 3], y=[0] * 4, tail=[0, 1, 2], head=[1, 2, 3])

    assert network.road_class.tolist() == [6, 3, 6]


@given(road_networks())
def test_every_network_is_connected_simple_and_no_shorter_than_straight(network):
    reached = {0}
    for _ in range(network.n_nodes):
        for a, b in zip(network.tail.tolist(), network.head.tolist(), strict=True):
            reached |= {a, b} if reached & {a, b} else set()
    chord = np.hypot(
        network.x[network.tail] - network.x[network.head],
        network.y[network.tail] - network.y[network.head],
    )

    assert reached == set(range(network.n_nodes))
    assert (network.tail < network.head).all()
    assert len({*zip(network.tail.tolist(), network.head.tolist(), strict=True)}) == network.n_edges
    assert (network.length >= chord).all()


def test_a_connected_network_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RoadNetwork.from_edges(x=[0, 1], y=[0, 0], tail=[0], head=[1])


def test_a_one_way_road_keeps_its_direction_whichever_end_is_named_first():
    network = RoadNetwork.from_edges(
        x=[0, 1, 1], y=[0, 0, 1], tail=[1, 1, 0], head=[0, 2, 2], one_way=[1, -1, 1]
    )
    arcs = Arcs.of(network)
    driven = set(zip(arcs.tail.tolist(), arcs.head.tolist(), strict=True))

    assert driven == {(1, 0), (2, 1), (0, 2)}


def test_roads_that_cannot_be_left_are_left_out():
    ring = {"x": [0, 1, 1, 2], "y": [0, 0, 1, 2], "tail": [0, 1, 2, 2], "head": [1, 2, 0, 3]}
    with pytest.warns(DisconnectedNetworkWarning, match="1 of 4 nodes have no way .* and back"):
        network = RoadNetwork.from_edges(**ring, one_way=[1, 1, 1, 1])

    assert network.n_nodes == 3
    assert network.n_left_out == 1
    assert network.n_edges == 3
    assert RoadNetwork.from_edges(**ring, one_way=[1, 1, 1, 0]).n_nodes == 4


def test_two_one_way_roads_between_the_same_nodes_make_one_of_both_directions():
    network = RoadNetwork.from_edges(
        x=[0, 1, 2],
        y=[0, 0, 0],
        tail=[0, 1, 1],
        head=[1, 0, 2],
        length=[3, 2, 1],
        road_class=[3, 3, 3],
        one_way=[1, 1, 0],
    )

    assert network.one_way.tolist() == [0, 0]
    assert sorted(network.length.tolist()) == [1, 2]


@pytest.mark.parametrize("one_way", [[2], [0, 0], [0.5]])
def test_impossible_directions_are_refused(one_way):
    with pytest.raises(InputError, match="one_way"):
        RoadNetwork.from_edges(x=[0, 1], y=[0, 0], tail=[0], head=[1], one_way=one_way)
