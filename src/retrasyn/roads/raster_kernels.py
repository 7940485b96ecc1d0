"""Compiled kernels: lines laid on a raster, and the load of fastest ways to one node."""

import math

import numpy as np
import numpy.typing as npt
from numba import njit

_PIECES = 8  # at least, of a line as long as a square


@njit(nogil=True, cache=True)
def lay_lines(
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    tail: npt.NDArray[np.int32],
    head: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float64],
    raster: npt.NDArray[np.float64],
) -> None:
    """Add the weights of lines to the squares [side, side] of their pieces; x, y in squares."""
    last = raster.shape[0] - 1
    for i in range(tail.size):
        begin_x, begin_y = x[tail[i]], y[tail[i]]
        width, height = x[head[i]] - begin_x, y[head[i]] - begin_y
        n_pieces = max(math.ceil(_PIECES * math.hypot(width, height)), 1)
        for piece in range(n_pieces):
            along = (piece + 0.5) / n_pieces
            column = min(max(int(begin_x + along * width), 0), last)
            row = min(max(int(begin_y + along * height), 0), last)
            raster[row, column] += weights[i] / n_pieces


@njit(nogil=True, cache=True)
def add_loads(
    goal: int,
    begin: npt.NDArray[np.int32],
    head: npt.NDArray[np.int32],
    times: npt.NDArray[np.float32],
    next_hops: npt.NDArray[np.uint8],
    loads: npt.NDArray[np.int64],
) -> None:
    """Add to every arc the number of nodes whose fastest way to the goal uses it.

    A node is passed on when all nodes behind it have been.
    """
    n_nodes = times.size
    behind = np.zeros(n_nodes, np.int32)  # nodes whose next node this is, not passed on yet
    passing = np.ones(n_nodes, np.int64)
    for node in range(n_nodes):
        if node != goal and times[node] < np.inf:
            behind[head[begin[node] + next_hops[node]]] += 1
    for leaf in range(n_nodes):
        node = leaf
        while behind[node] == 0 and node != goal and times[node] < np.inf:
            behind[node] = -1
            arc = begin[node] + next_hops[node]
            loads[arc] += passing[node]
            passing[head[arc]] += passing[node]
            behind[head[arc]] -= 1
            node = head[arc]
