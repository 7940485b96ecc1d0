"""Compiled kernels: fastest ways to one node, and the cells that roads cross."""

import math

import numpy as np
import numpy.typing as npt
from numba import njit


@njit(nogil=True, cache=True)
def _pushed(
    times: npt.NDArray[np.float64], nodes: npt.NDArray[np.int32], n: int, time: float, node: int
) -> int:
    """Add an entry to a binary heap of n; return how many it has then."""
    place = n
    while place > 0:
        above = (place - 1) >> 1
        if times[above] <= time:
            break
        times[place], nodes[place] = times[above], nodes[above]
        place = above
    times[place], nodes[place] = time, node
    return n + 1


@njit(nogil=True, cache=True)
def _popped(times: npt.NDArray[np.float64], nodes: npt.NDArray[np.int32], n: int) -> int:
    """Remove the first entry from a binary heap of n; return how many are left."""
    n -= 1
    time, node = times[n], nodes[n]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= n:
            break
        if below + 1 < n and times[below + 1] < times[below]:
            below += 1
        if times[below] >= time:
            break
        times[place], nodes[place] = times[below], nodes[below]
        place = below
    times[place], nodes[place] = time, node
    return n


@njit(nogil=True, cache=True)
def find_ways(
    goal: int,
    begin: npt.NDArray[np.int32],
    tail: npt.NDArray[np.int32],
    duration: npt.NDArray[np.float64],
    into_begin: npt.NDArray[np.int32],
    into: npt.NDArray[np.int32],
    times: npt.NDArray[np.float32],
    next_hops: npt.NDArray[np.uint8],
) -> None:
    """Write every node's time to the goal, and the rank of its first arc on the way (Dijkstra).

    `into` lists the arcs by the node they lead to. Nodes without a way have an infinite time.
    """
    left = np.full(begin.size - 1, np.inf)
    heap_times = np.empty(into.size + 1)
    heap_nodes = np.empty(into.size + 1, np.int32)
    next_hops[:] = 0
    left[goal] = 0.0
    n = _pushed(heap_times, heap_nodes, 0, 0.0, goal)
    while n > 0:
        time, node = heap_times[0], heap_nodes[0]
        n = _popped(heap_times, heap_nodes, n)
        if time > left[node]:  # a longer way, entered before the shortest was found
            continue
        for k in range(into_begin[node], into_begin[node + 1]):
            arc = into[k]
            before = tail[arc]
            whole = time + duration[arc]
            if whole < left[before]:
                left[before] = whole
                next_hops[before] = arc - begin[before]
                n = _pushed(heap_times, heap_nodes, n, whole, before)
    for node in range(left.size):
        times[node] = left[node]


@njit(nogil=True, cache=True)
def mark_crossed(
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    tail: npt.NDArray[np.int32],
    head: npt.NDArray[np.int32],
    crossed: npt.NDArray[np.bool_],
) -> None:
    """Mark the cells [side, side] that straight roads cross; x and y are in cell widths."""
    last = crossed.shape[0] - 1
    for i in range(tail.size):
        low, high = tail[i], head[i]
        if y[low] > y[high]:
            low, high = high, low
        rise = y[high] - y[low]
        for row in range(int(y[low]), min(int(y[high]), last) + 1):
            begin, end = x[low], x[high]
            if rise > 0.0:  # the part of the road within the row
                slope = (x[high] - x[low]) / rise
                begin = x[low] + slope * max(row - y[low], 0.0)
                end = x[low] + slope * min(row + 1 - y[low], rise)
            first, final = math.floor(min(begin, end)), math.floor(max(begin, end))
            crossed[row, max(first, 0) : min(final, last) + 1] = True
