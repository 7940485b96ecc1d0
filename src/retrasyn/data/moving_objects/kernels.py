"""Compiled kernels: routes from shortest-path trees, and one step of every object."""

import numpy as np
import numpy.typing as npt
from numba import njit


@njit(nogil=True, cache=True)
def count_hops(
    towards: npt.NDArray[np.int32],
    row: npt.NDArray[np.int64],
    origin: npt.NDArray[np.int64],
    destination: npt.NDArray[np.int64],
    hops: npt.NDArray[np.int64],
) -> None:
    """Count the arcs of every trip; towards[row, node] is the next node on the way."""
    for trip in range(origin.size):
        node = origin[trip]
        n = 0
        while node != destination[trip]:
            node = towards[row[trip], node]
            n += 1
        hops[trip] = n


@njit(nogil=True, cache=True)
def fill_routes(
    towards: npt.NDArray[np.int32],
    row: npt.NDArray[np.int64],
    origin: npt.NDArray[np.int64],
    destination: npt.NDArray[np.int64],
    arc_begin: npt.NDArray[np.int32],
    arc_head: npt.NDArray[np.int32],
    begin: npt.NDArray[np.int64],
    arcs: npt.NDArray[np.int32],
) -> None:
    """Write the arcs of every trip from begin[trip] on."""
    for trip in range(origin.size):
        node = origin[trip]
        place = begin[trip]
        while node != destination[trip]:
            following = towards[row[trip], node]
            arc = arc_begin[node]
            while arc_head[arc] != following:
                arc += 1
            arcs[place] = arc
            place += 1
            node = following


@njit(nogil=True, cache=True)
def move(
    alive: npt.NDArray[np.int64],
    cursor: npt.NDArray[np.int64],
    last: npt.NDArray[np.int64],
    gone: npt.NDArray[np.float64],
    top_speed: npt.NDArray[np.float64],
    arcs: npt.NDArray[np.int32],
    arc_edge: npt.NDArray[np.int32],
    edge_length: npt.NDArray[np.float64],
    edge_speed: npt.NDArray[np.float64],
    arrived: npt.NDArray[np.bool_],
) -> None:
    """Move every living object along its route for one step.

    cursor[object] is its place in `arcs`, last[object] that of its last arc, gone[object] the
    distance covered on the current arc. An object that arrives stays at the end of its last arc.
    """
    for i in range(alive.size):
        number = alive[i]
        place = cursor[number]
        way = gone[number]
        time = 1.0
        arrived[i] = False
        while True:
            edge = arc_edge[arcs[place]]
            speed = min(edge_speed[edge], top_speed[number])
            remaining = edge_length[edge] - way
            if remaining > speed * time:
                way += speed * time
                break
            if place == last[number]:
                way = edge_length[edge]
                arrived[i] = True
                break
            time -= remaining / speed
            time = max(time, 0.0)  # rounding must not make time negative
            place += 1
            way = 0.0
        cursor[number] = place
        gone[number] = way


@njit(nogil=True, cache=True)
def count_load(
    alive: npt.NDArray[np.int64],
    cursor: npt.NDArray[np.int64],
    arcs: npt.NDArray[np.int32],
    arc_edge: npt.NDArray[np.int32],
    load: npt.NDArray[np.int64],
) -> None:
    """Add every living object to the load of the edge it is on."""
    for i in range(alive.size):
        load[arc_edge[arcs[cursor[alive[i]]]]] += 1


@njit(nogil=True, cache=True)
def locate(
    alive: npt.NDArray[np.int64],
    cursor: npt.NDArray[np.int64],
    gone: npt.NDArray[np.float64],
    arcs: npt.NDArray[np.int32],
    arc_tail: npt.NDArray[np.int32],
    arc_head: npt.NDArray[np.int32],
    arc_edge: npt.NDArray[np.int32],
    edge_length: npt.NDArray[np.float64],
    node_x: npt.NDArray[np.float64],
    node_y: npt.NDArray[np.float64],
    row: npt.NDArray[np.int64],
    t: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
) -> None:
    """Write every living object's point of step t at row[object] + t."""
    for i in range(alive.size):
        number = alive[i]
        arc = arcs[cursor[number]]
        length = edge_length[arc_edge[arc]]
        share = gone[number] / length if length > 0.0 else 0.0
        tail = arc_tail[arc]
        head = arc_head[arc]
        # This form is exact at both ends.
        x[row[number] + t] = (1.0 - share) * node_x[tail] + share * node_x[head]
        y[row[number] + t] = (1.0 - share) * node_y[tail] + share * node_y[head]
