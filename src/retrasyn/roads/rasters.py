"""Rasters of public maps: where people are likely to be, before anybody reports.

*length*: length of road. *class*: the same, a road counting by the root of its class's speed.
*between*: half class, half traffic, which is the length of every road times the number of fastest
ways over it, from all nodes to 300 drawn ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.randomness.kernels import words_at
from retrasyn.randomness.words import address
from retrasyn.roads import raster_kernels, way_kernels
from retrasyn.roads.network import Arcs, RoadNetwork
from retrasyn.roads.next_hops import slownesses
from retrasyn.roads.public_map import SIDE

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.space import Box

    Points = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]

N_GOALS = 300
_FEWEST_GOALS = 16
_MOST_VISITS = 1 << 24  # of nodes, on the ways to all goals; a large network has fewer for it


def by_length(network: RoadNetwork, box: Box) -> npt.NDArray[np.float64]:
    """Return the length of road in every square: [SIDE, SIDE]."""
    return _lay(network, box, network.length)


def by_class(network: RoadNetwork, box: Box) -> npt.NDArray[np.float64]:
    """Return the length of road in every square, fast roads counting for more: [SIDE, SIDE]."""
    return _lay(network, box, network.length / np.sqrt(slownesses(network)))


def between(network: RoadNetwork, box: Box) -> npt.NDArray[np.float64]:
    """Return half of `by_class` and half of the traffic on fastest ways: [SIDE, SIDE]."""
    classes = by_class(network, box)
    traffic = _lay(network, box, network.length * loads(network))
    half: npt.NDArray[np.float64] = classes / classes.sum() + traffic / traffic.sum()
    return half


def loads(network: RoadNetwork) -> npt.NDArray[np.int64]:
    """Return how many fastest ways from all nodes to drawn goals use every edge: [n_edges]."""
    arcs = Arcs.of(network)
    into = np.argsort(arcs.head, kind="stable").astype(np.int32)
    into_begin = np.searchsorted(arcs.head[into], np.arange(network.n_nodes + 1)).astype(np.int32)
    duration = np.maximum(network.length * slownesses(network), np.finfo(float).tiny)[arcs.edge]
    times = np.empty(network.n_nodes, np.float32)
    ranks = np.empty(network.n_nodes, np.uint8)
    on_arcs = np.zeros(arcs.edge.size, np.int64)
    for goal in draw_goals(network.n_nodes):
        way_kernels.find_ways(goal, arcs.begin, arcs.tail, duration, into_begin, into, times, ranks)
        raster_kernels.add_loads(goal, arcs.begin, arcs.head, times, ranks, on_arcs)
    on_edges = np.zeros(network.n_edges, np.int64)
    np.add.at(on_edges, arcs.edge, on_arcs)
    return on_edges


def draw_goals(n_nodes: int) -> npt.NDArray[np.int64]:
    """Draw the goals of traffic, always the same, fewer in a very large network."""
    words = words_at(np.uint64(address(0, 0, "roads/goals")), np.arange(n_nodes, dtype=np.uint64))
    n_goals = min(N_GOALS, max(_MOST_VISITS // n_nodes, _FEWEST_GOALS))
    return np.argsort(words, kind="stable")[:n_goals]


def around(
    box: Box,
    centre: tuple[float, float],
    scale: float,
    distance: Callable[[Points, Points], npt.NDArray[np.float64]],
) -> npt.NDArray[np.float64]:
    """Return exp(-r / scale), r being the distance of every square from a centre: [SIDE, SIDE]."""
    middles = (np.arange(SIDE) + 0.5) / SIDE
    x = np.broadcast_to(box.x0 + middles * (box.x1 - box.x0), (SIDE, SIDE))
    y = np.broadcast_to((box.y0 + middles * (box.y1 - box.y0))[:, None], (SIDE, SIDE))
    far = distance((x, y), (np.asarray(centre[0]), np.asarray(centre[1])))
    weights: npt.NDArray[np.float64] = np.exp(-(far - far.min()) / scale)
    return weights


def of_places(
    box: Box,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return the sum of the weights of all places inside every square: [SIDE, SIDE]."""
    inside = (x >= box.x0) & (x <= box.x1) & (y >= box.y0) & (y <= box.y1)
    column, row = (
        np.minimum(places[inside].astype(np.int64), SIDE - 1) for places in _in_squares(box, x, y)
    )
    laid = np.zeros((SIDE, SIDE))
    np.add.at(laid, (row, column), weights[inside])
    return laid


def _lay(
    network: RoadNetwork, box: Box, weights: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the sum of the weights of roads in every square, a road's spread along it."""
    raster = np.zeros((SIDE, SIDE))
    x, y = _in_squares(box, network.x, network.y)
    raster_kernels.lay_lines(x, y, network.tail, network.head, weights, raster)
    return raster


def _in_squares(
    box: Box, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return coordinates in squares from the lower left corner of the box."""
    return (x - box.x0) / (box.x1 - box.x0) * SIDE, (y - box.y0) / (box.y1 - box.y0) * SIDE
