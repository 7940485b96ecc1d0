"""Movement in compiled code does what plain loops do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.data.moving_objects.objects import CAPACITIES, Traffic, loaded_speed
from retrasyn.data.moving_objects.routes import find_routes
from retrasyn.roads.network import Arcs, RoadNetwork
from support.road_networks import naive_drive, road_networks


def drive(network, routes, arcs, births, top_speed, fastest):
    """Drive a fleet; return every object's points."""
    fleet = Traffic.waiting(network, arcs, routes, fastest=fastest, top_speed=top_speed)
    points = [[] for _ in range(top_speed.size)]
    n_born = np.cumsum(births)
    for t in range(births.size):
        seen = fleet.advance(int(n_born[t] - births[t]), int(births[t]))
        x, y = np.empty((2, top_speed.size))
        fleet.write_points(seen, np.arange(top_speed.size) - t, t, x, y)
        for i in seen.tolist():
            points[i].append((x[i], y[i]))
    return points


@given(st.data(), road_networks(), st.floats(0.05, 8.0))
def test_the_kernel_moves_objects_as_plain_loops_do(data, network, fastest):
    births = np.array(data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=8)))
    n = int(births.sum())
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    origin = random.integers(0, network.n_nodes, n)
    destination = (origin + random.integers(1, network.n_nodes, n)) % network.n_nodes
    top_speed = fastest * random.choice([1.0, 0.5, 0.25], n)
    arcs = Arcs.of(network)
    routes = find_routes(arcs, origin, destination)

    points = drive(network, routes, arcs, births, top_speed, fastest)

    ways = [
        [int(origin[i]), *arcs.head[routes.arcs[routes.begin[i] : routes.last[i] + 1]].tolist()]
        for i in range(n)
    ]
    expected = naive_drive(
        network,
        ways,
        np.repeat(np.arange(births.size), births).tolist(),
        top_speed.tolist(),
        fastest=fastest,
        n_steps=births.size,
        capacities=CAPACITIES,
    )
    for own, other in zip(points, expected, strict=True):
        assert len(own) == len(other)
        assert np.array(own) == pytest.approx(np.array(other), abs=1e-9)


def test_speed_falls_to_a_half_and_to_a_quarter_under_load():
    network = RoadNetwork.from_edges(x=[0, 9], y=[0, 0], tail=[0], head=[1], road_class=[1])
    capacity = CAPACITIES[1]

    speeds = [
        loaded_speed(network, np.array([load]), 3.0)[0]
        for load in (0, capacity, capacity + 1, 2 * capacity, 2 * capacity + 1, 10**6)
    ]

    assert speeds == [2.0, 2.0, 1.0, 1.0, 0.5, 0.5]


def test_an_object_is_no_faster_than_its_class():
    network = RoadNetwork.from_edges(x=[0, 9], y=[0, 0], tail=[0], head=[1], road_class=[0])
    arcs = Arcs.of(network)
    routes = find_routes(arcs, np.array([0, 0]), np.array([1, 1]))

    slow, quick = drive(network, routes, arcs, np.array([2, 0, 0]), np.array([1.0, 4.0]), 4.0)

    assert slow == [(0, 0), (1, 0), (2, 0)]
    assert quick == [(0, 0), (4, 0), (8, 0)]


def test_who_arrives_stands_exactly_on_the_destination_once():
    network = RoadNetwork.from_edges(x=[0.1, 0.7], y=[0.3, 0.9], tail=[0], head=[1], road_class=[0])
    arcs = Arcs.of(network)
    routes = find_routes(arcs, np.array([1]), np.array([0]))

    (points,) = drive(network, routes, arcs, np.array([1, 0, 0, 0]), np.array([0.5]), 0.5)

    assert points[0] == (0.7, 0.9)
    assert points[-1] == (0.1, 0.3)
    assert len(points) == 3
