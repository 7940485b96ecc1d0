"""Routes are ways through the network, and no way is faster."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.data.moving_objects import routes as routes_module
from retrasyn.data.moving_objects.routes import find_routes
from retrasyn.roads.network import Arcs, RoadNetwork
from support.road_networks import naive_durations, road_networks


def all_pairs(n_nodes):
    origin, destination = np.divmod(np.arange(n_nodes * n_nodes), n_nodes)
    apart = origin != destination
    return origin[apart], destination[apart]


@given(road_networks(), st.sampled_from([1, 25, 4_000_000]))
def test_every_route_leads_from_start_to_goal_as_fast_as_can_be(network, entries_at_once):
    arcs = Arcs.of(network)
    origin, destination = all_pairs(network.n_nodes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(routes_module, "_ENTRIES_AT_ONCE", entries_at_once)
        routes = find_routes(arcs, origin, destination)

    fastest = naive_durations(network)
    for i in range(origin.size):
        way = routes.arcs[routes.begin[i] : routes.last[i] + 1]
        assert arcs.tail[way[0]] == origin[i]
        assert arcs.head[way[-1]] == destination[i]
        assert np.array_equal(arcs.head[way[:-1]], arcs.tail[way[1:]])
        duration = fastest[origin[i]][destination[i]]
        assert arcs.duration[way].sum() == pytest.approx(duration, rel=1e-9, abs=1e-12)
    assert routes.arcs.size == (routes.last - routes.begin + 1).sum()


@given(road_networks())
def test_a_lead_arc_comes_first(network):
    arcs = Arcs.of(network)
    lead = np.arange(arcs.head.size, dtype=np.int32)
    origin = arcs.head.astype(np.int64)
    destination = (origin + 1) % network.n_nodes

    routes = find_routes(arcs, origin, destination, lead=lead)

    plain = find_routes(arcs, origin, destination)
    for i in range(lead.size):
        way = routes.arcs[routes.begin[i] : routes.last[i] + 1].tolist()
        assert way == [i, *plain.arcs[plain.begin[i] : plain.last[i] + 1].tolist()]


def test_no_trips_need_no_routes():
    from retrasyn.data.moving_objects.city_network import city_network

    none = np.empty(0, np.int64)

    assert find_routes(Arcs.of(city_network(10)), none, none).arcs.size == 0


def test_a_one_way_is_driven_in_its_direction_only():
    ring = RoadNetwork.from_edges(
        x=[0, 1, 1, 0], y=[0, 0, 1, 1], tail=[0, 1, 3, 3], head=[1, 2, 2, 0], one_way=[1, 1, -1, 1]
    )
    arcs = Arcs.of(ring)
    origin, destination = all_pairs(4)
    routes = find_routes(arcs, origin, destination)

    for i in range(origin.size):
        way = routes.arcs[routes.begin[i] : routes.last[i] + 1]
        nodes = [origin[i], *arcs.head[way]]
        assert nodes == [(origin[i] + step) % 4 for step in range(len(nodes))]
        assert nodes[-1] == destination[i]
