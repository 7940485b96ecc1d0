"""Small road networks, and plain-loop versions of what drives on them."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from retrasyn.roads.network import RoadNetwork


@st.composite
def road_networks(draw, *, one_way=False):
    """A connected network of up to ten nodes; places may coincide, lengths may exceed chords.

    With `one_way`, the roads that are not needed to connect it may have a direction, and there may
    be no classes.
    """
    n_nodes = draw(st.integers(2, 10))
    coordinates = st.lists(st.integers(0, 12), min_size=n_nodes, max_size=n_nodes)
    x, y = draw(coordinates), draw(coordinates)
    assume(max(x) > min(x) or max(y) > min(y))
    tree = [(draw(st.integers(0, node - 1)), node) for node in range(1, n_nodes)]
    nodes = st.integers(0, n_nodes - 1)
    edges = tree + draw(st.lists(st.tuples(nodes, nodes), max_size=8))
    n_edges = len(edges)
    detour = draw(st.lists(st.sampled_from([0, 0, 3.5]), min_size=n_edges, max_size=n_edges))
    classes = draw(st.lists(st.integers(0, 6), min_size=n_edges, max_size=n_edges))
    ways = [0] * n_edges
    if one_way:
        extra = n_edges - len(tree)
        drawn = draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=extra, max_size=extra))
        ways[len(tree) :] = drawn
    classed = not one_way or draw(st.booleans())
    chord = [math.dist((x[a], y[a]), (x[b], y[b])) for a, b in edges]
    return RoadNetwork.from_edges(
        x=x,
        y=y,
        tail=[a for a, _ in edges],
        head=[b for _, b in edges],
        length=np.add(chord, detour),
        road_class=classes if classed else None,
        one_way=ways,
    )


def edge_between(network, a, b):
    """Return the edge that joins two nodes."""
    for edge, ends in enumerate(zip(network.tail.tolist(), network.head.tolist(), strict=True)):
        if ends in {(a, b), (b, a)}:
            return edge
    raise AssertionError(f"no road from {a} to {b}")


def naive_durations(network):
    """Return the time of the fastest route between all nodes, in units of the fastest class."""
    n = network.n_nodes
    time = [[0.0 if a == b else math.inf for b in range(n)] for a in range(n)]
    for edge in range(network.n_edges):
        a, b = int(network.tail[edge]), int(network.head[edge])
        time[a][b] = time[b][a] = network.length[edge] * 1.5 ** int(network.road_class[edge])
    for middle in range(n):
        for a in range(n):
            for b in range(n):
                time[a][b] = min(time[a][b], time[a][middle] + time[middle][b])
    return time


def naive_drive(network, ways, born, top_speeds, *, fastest, n_steps, capacities):
    """Drive every object alone, arc by arc; return the points of each as lists.

    ways[i] is the list of nodes of object i. Speeds follow the load at the end of the last step.
    """
    on_the_road = {}  # object -> (leg, distance on it)
    points = [[] for _ in ways]
    for t in range(n_steps):
        load = [0] * network.n_edges
        for i, (leg, _) in on_the_road.items():
            load[edge_between(network, ways[i][leg], ways[i][leg + 1])] += 1
        speeds = [
            naive_speed(int(network.road_class[edge]), load[edge], fastest, capacities)
            for edge in range(network.n_edges)
        ]
        for i, (leg, gone) in list(on_the_road.items()):
            state = naive_step(network, ways[i], leg, gone, speeds, top_speeds[i])
            points[i].append(_place(network, ways[i], *state))
            on_the_road[i] = state
            if state[0] == len(ways[i]) - 1:
                del on_the_road[i]
        for i in range(len(ways)):
            if born[i] == t:
                on_the_road[i] = (0, 0.0)
                points[i].append(_place(network, ways[i], 0, 0.0))
    return points


def naive_speed(road_class, load, fastest, capacities):
    """Return the speed on an edge under load."""
    speed = fastest / 1.5**road_class
    if load > 2 * capacities[road_class]:
        return speed / 4
    return speed / 2 if load > capacities[road_class] else speed


def naive_step(network, way, leg, gone, speeds, top_speed):
    """Drive one object for one step; return (leg, distance on it), the last node if it arrives."""
    time = 1.0
    while leg < len(way) - 1:
        edge = edge_between(network, way[leg], way[leg + 1])
        speed = min(speeds[edge], top_speed)
        remaining = network.length[edge] - gone
        if speed * time < remaining:
            return leg, gone + speed * time
        time = max(0.0, time - remaining / speed)
        leg, gone = leg + 1, 0.0
    return leg, 0.0


def _place(network, way, leg, gone):
    here, there = way[leg], way[min(leg + 1, len(way) - 1)]
    length = network.length[edge_between(network, here, there)] if here != there else 0.0
    share = gone / length if length else 0.0
    return tuple(axis[here] + share * (axis[there] - axis[here]) for axis in (network.x, network.y))


def distance_to_roads(network, x, y):
    """Return how far each point is from the nearest edge: [n_points]."""
    nearest = np.full(x.size, np.inf)
    for a, b in zip(network.tail, network.head, strict=True):
        dx, dy = network.x[b] - network.x[a], network.y[b] - network.y[a]
        squared = dx * dx + dy * dy
        along = ((x - network.x[a]) * dx + (y - network.y[a]) * dy) / squared if squared else 0 * x
        along = np.clip(along, 0, 1)
        off = np.hypot(x - network.x[a] - along * dx, y - network.y[a] - along * dy)
        nearest = np.minimum(nearest, off)
    return nearest
