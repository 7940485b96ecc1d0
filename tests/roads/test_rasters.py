"""Rasters of public maps against plain loops."""

import math

import numpy as np
import pytest

from retrasyn.roads import rasters
from retrasyn.roads.coordinates import great_circle, straight
from retrasyn.roads.network import RoadNetwork
from retrasyn.roads.public_map import SIDE
from retrasyn.space import Box

BOX = Box(-5.0, 10.0, 43.0, 34.0)


def random_network(seed, n_nodes=40, *, one_way=None, classed=True):
    """Random places, each joined to an earlier one, and half as many roads more."""
    random = np.random.default_rng(seed)
    tail = np.concatenate([np.arange(1, n_nodes), random.integers(0, n_nodes, n_nodes // 2)])
    head = np.concatenate([[0], random.integers(0, np.arange(1, n_nodes - 1))])
    head = np.concatenate([head, random.integers(0, n_nodes, n_nodes // 2)])
    return RoadNetwork.from_edges(
        x=random.uniform(BOX.x0, BOX.x1, n_nodes),
        y=random.uniform(BOX.y0, BOX.y1, n_nodes),
        tail=tail,
        head=head,
        road_class=random.integers(0, 7, tail.size) if classed else None,
        one_way=one_way,
    )


def naive_raster(network, weights):
    """Lay every road in pieces of at most an eighth of a square."""
    raster = [[0.0] * SIDE for _ in range(SIDE)]
    for tail, head, weight in zip(network.tail, network.head, weights, strict=True):
        begin, end = (
            (
                (network.x[node] - BOX.x0) / (BOX.x1 - BOX.x0) * SIDE,
                (network.y[node] - BOX.y0) / (BOX.y1 - BOX.y0) * SIDE,
            )
            for node in (tail, head)
        )
        n = max(1, math.ceil(8 * math.dist(begin, end)))
        for piece in range(n):
            middle = [a + (b - a) * (piece + 0.5) / n for a, b in zip(begin, end, strict=True)]
            column, row = (min(int(place), SIDE - 1) for place in middle)
            raster[row][column] += weight / n
    return np.array(raster)


def naive_loads(network, goals):
    """Count the fastest ways to every goal over every road (Bellman and Ford)."""
    time, arcs = {}, []
    for edge, (a, b) in enumerate(zip(network.tail.tolist(), network.head.tolist(), strict=True)):
        slow = 1.5 ** int(network.road_class[edge]) if network.classed else 1.0
        if network.one_way[edge] >= 0:
            arcs.append((a, b, edge, network.length[edge] * slow))
        if network.one_way[edge] <= 0:
            arcs.append((b, a, edge, network.length[edge] * slow))
    load = [0] * network.n_edges
    for goal in goals:
        time = [math.inf] * network.n_nodes
        time[goal] = 0.0
        after = {}
        for _ in range(network.n_nodes):
            for a, b, edge, cost in arcs:
                if time[b] + cost < time[a]:
                    time[a], after[a] = time[b] + cost, (b, edge)
        for node in range(network.n_nodes):
            here = node
            while here != goal:
                here, edge = after[here]
                load[edge] += 1
    return load


@pytest.mark.parametrize("classed", [True, False])
def test_roads_are_laid_by_length_and_by_class(classed):
    network = random_network(1, classed=classed)

    slow = 1.5 ** network.road_class.astype(float) if classed else 1.0
    by_class = naive_raster(network, network.length / np.sqrt(slow))
    assert rasters.by_length(network, BOX) == pytest.approx(naive_raster(network, network.length))
    assert rasters.by_class(network, BOX) == pytest.approx(by_class)


@pytest.mark.parametrize("seed", [2, 3])
def test_traffic_is_the_number_of_fastest_ways_times_the_length(seed):
    directions = np.random.default_rng(seed).choice([-1, 0, 0, 0, 1], 59)
    with pytest.warns(match="disconnected"):
        network = random_network(seed, one_way=directions)
    goals = rasters.draw_goals(network.n_nodes)
    loads = np.array(naive_loads(network, goals.tolist()))
    assert rasters.loads(network).tolist() == loads.tolist()
    assert goals.size == network.n_nodes  # fewer than 300 nodes: all of them

    half = naive_raster(network, network.length * loads)
    classes = rasters.by_class(network, BOX)
    both = half / half.sum() + classes / classes.sum()
    assert rasters.between(network, BOX) == pytest.approx(both)


def test_a_very_large_network_has_fewer_goals():
    assert rasters.draw_goals(6_105).size == 300
    assert rasters.draw_goals(1 << 19).size == 32
    assert np.unique(rasters.draw_goals(1 << 22)).size == 16


def test_a_centre_weighs_by_distance():
    raster = rasters.around(BOX, (0.0, 20.0), 7.0, straight)

    x, y = BOX.x0 + 40.5 / SIDE * 48.0, BOX.y0 + 3.5 / SIDE * 24.0
    other = BOX.x0 + 5.5 / SIDE * 48.0, BOX.y0 + 20.5 / SIDE * 24.0
    gap = math.dist((x, y), (0, 20)) - math.dist(other, (0, 20))
    assert raster[3, 40] / raster[20, 5] == pytest.approx(math.exp(-gap / 7.0))


def test_a_centre_far_away_still_weighs():
    assert rasters.around(BOX, (1e9, 0.0), 1.0, straight).max() == 1.0


def test_places_are_counted_inside_the_box_only():
    x = np.array([-5.0, 43.0, 43.1, 0.0, 0.0])
    y = np.array([10.0, 34.0, 20.0, 9.9, 22.25])
    raster = rasters.of_places(BOX, x, y, np.array([1.0, 2.0, 4.0, 8.0, 16.0]))

    assert raster[0, 0] == 1
    assert raster[-1, -1] == 2
    assert raster[24, 5] == 16
    assert raster.sum() == 19


def test_the_great_circle_is_measured_in_metres():
    here, there = (np.array(20.0), np.array(0.0)), (np.array(110.0), np.array(0.0))
    pole = np.array(5.0), np.array(90.0)

    for end in (there, pole):
        assert great_circle(here, end) == pytest.approx(6_371_008.8 * math.pi / 2)
    assert great_circle(here, here) == 0
