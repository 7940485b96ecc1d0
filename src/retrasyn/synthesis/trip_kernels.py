"""Compiled kernels for streams that drive on roads: one step, births, what is left of trips."""

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from retrasyn.randomness.kernels import word_at
from retrasyn.synthesis.kernels import ENDED

_SHIFT_11, _SHIFT_32 = np.uint64(11), np.uint64(32)
_LOW_16 = np.uint64(0xFFFF)
_TO_UNIT_53 = 2.0**-53
_HALF_WIDTH = math.sqrt(3.0)  # of an even distribution, in standard deviations
LEAST_STEP = 1e-6  # of the box; shorter steps say nothing about speed
N_GOALS = 8


@njit(inline="always")
def _uniform(key: np.uint64, identifier: np.int64) -> float:
    word = word_at(key, np.uint64(identifier)) >> _SHIFT_11
    return (np.float64(word) + 0.5) * _TO_UNIT_53


@njit(inline="always")
def _pick(slots: npt.NDArray[np.uint64], word: np.uint64) -> np.int64:
    """Choose from a one-row alias table."""
    slot = slots[np.int64(word & np.uint64(slots.size - 1))]
    below = (word >> _SHIFT_32) < (slot >> _SHIFT_32)
    return np.int64((slot if below else slot >> np.uint64(16)) & _LOW_16)


@njit(nogil=True, cache=True)
def drive(
    cells: npt.NDArray[np.uint16],
    anchor: npt.NDArray[np.uint16],
    own: npt.NDArray[np.float64],
    arc: npt.NDArray[np.int32],
    offset: npt.NDArray[np.float64],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    moved: npt.NDArray[np.uint16],
    speeds: npt.NDArray[np.float64],
    begin: npt.NDArray[np.int32],
    tail: npt.NDArray[np.int32],
    head: npt.NDArray[np.int32],
    duration: npt.NDArray[np.float64],
    anchors: npt.NDArray[np.int32],
    ranks: npt.NDArray[np.uint8],
    node_x: npt.NDArray[np.float64],
    node_y: npt.NDArray[np.float64],
    box: npt.NDArray[np.float64],
    side: int,
) -> None:
    """Drive every stream for one step, in place; write its next cell, or ENDED if it arrived.

    `speeds` [n_cells] is the common speed in every cell, times which `own` is a stream's; `offset`
    is the time spent on the current arc, in the units of `duration`. `box` holds the lower corner,
    width and height of the box, and of a cell.
    """
    for i in range(cells.size):
        now = arc[i]
        time = offset[i] + speeds[cells[i]] * own[i]
        goal, row = anchors[anchor[i]], anchor[i]
        arrived = False
        while time >= duration[now]:
            time -= duration[now]
            node = head[now]
            if node == goal:
                arrived = True
                break
            now = begin[node] + np.int32(ranks[row, node])
        if arrived:
            moved[i] = ENDED
            continue
        arc[i], offset[i] = now, time
        share = time / duration[now]
        before, after = tail[now], head[now]
        x[i] = (1.0 - share) * node_x[before] + share * node_x[after]
        y[i] = (1.0 - share) * node_y[before] + share * node_y[after]
        moved[i] = _cell_at(x[i], y[i], box, side)


@njit(inline="always")
def _cell_at(x: float, y: float, box: npt.NDArray[np.float64], side: int) -> np.uint16:
    """Return the cell of a point in cell widths, exactly as that of the point that is released."""
    column = _place(x, box[0], box[2], box[4], side)
    return np.uint16(_place(y, box[1], box[3], box[5], side) * side + column)


@njit(inline="always")
def _place(place: float, low: float, extent: float, width: float, side: int) -> np.int64:
    released = low + place * width
    return np.int64(min(max((released - low) / extent * side, 0.0), side - 1.0))


@njit(nogil=True, cache=True)
def begin_trips(
    ids: npt.NDArray[np.int64],
    keys: npt.NDArray[np.uint64],
    start_slots: npt.NDArray[np.uint64],
    goal_slots: npt.NDArray[np.uint64],
    survival: npt.NDArray[np.float64],
    speed: float,
    spread: float,
    by_cell: npt.NDArray[np.int32],
    cell_begin: npt.NDArray[np.int32],
    weight_below: npt.NDArray[np.float64],
    begin: npt.NDArray[np.int32],
    anchors: npt.NDArray[np.int32],
    times: npt.NDArray[np.float32],
    ranks: npt.NDArray[np.uint8],
    node_x: npt.NDArray[np.float64],
    node_y: npt.NDArray[np.float64],
    stretch: float,
    usual_time: float,
    usual_power: float,
    cells: npt.NDArray[np.uint16],
    anchor: npt.NDArray[np.uint16],
    own: npt.NDArray[np.float64],
    arc: npt.NDArray[np.int32],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
) -> None:
    """Draw start, speed and goal of every new stream.

    `keys` are those of cell, node, speed, duration, then of every goal, twice. The goal is the one
    of eight anchors to whose distance it usually takes most nearly the time drawn from `survival`:
    the chance, by age from 0 on, to live on. If the start is all eight, eight more are drawn; if it
    is those too, the trip goes to the farthest anchor.
    """
    for i in range(ids.size):
        cell = _pick(start_slots, word_at(keys[0], np.uint64(ids[i])))
        first, last = cell_begin[cell], cell_begin[cell + 1]
        low, high = weight_below[first], weight_below[last]
        weight = low + _uniform(keys[1], ids[i]) * (high - low)
        place = np.searchsorted(weight_below[first + 1 : last], weight, side="right")
        start = by_cell[first + place]
        factor = math.exp(spread * _HALF_WIDTH * (2.0 * _uniform(keys[2], ids[i]) - 1.0))
        wanted = math.log(_duration(survival, _uniform(keys[3], ids[i])))
        goal, least = np.int64(-1), math.inf
        for k in range(2 * N_GOALS):
            if k == N_GOALS and goal >= 0:
                break
            drawn = _pick(goal_slots, word_at(keys[4 + k], np.uint64(ids[i])))
            if anchors[drawn] == start:
                continue
            right = node_x[anchors[drawn]] - node_x[start]
            up = stretch * (node_y[anchors[drawn]] - node_y[start])
            usual = usual_time * math.hypot(right, up) ** usual_power
            taken = math.log(usual / (speed * factor) + 0.5)
            if abs(taken - wanted) < least:
                goal, least = drawn, abs(taken - wanted)
        if goal < 0:
            goal = np.argmax(times[:, start])
        cells[i], anchor[i], own[i] = cell, goal, factor
        arc[i] = begin[start] + np.int32(ranks[goal, start])
        x[i], y[i] = node_x[start], node_y[start]


@njit(inline="always")
def _duration(survival: npt.NDArray[np.float64], uniform: float) -> float:
    """Return the age at which the chance to live on falls below a uniform; hazards end even."""
    last = survival.size - 1
    if uniform < survival[last]:
        goes_on = survival[last] / survival[last - 1]
        return last + 1.0 + math.floor(math.log(uniform / survival[last]) / math.log(goes_on))
    low, high = 0, last  # survival[low] is above the uniform, survival[high] is not
    while high - low > 1:
        middle = (low + high) // 2
        if survival[middle] > uniform:
            low = middle
        else:
            high = middle
    return float(high)


@njit(nogil=True, cache=True)
def times_left(
    anchor: npt.NDArray[np.uint16],
    own: npt.NDArray[np.float64],
    arc: npt.NDArray[np.int32],
    offset: npt.NDArray[np.float64],
    head: npt.NDArray[np.int32],
    duration: npt.NDArray[np.float64],
    times: npt.NDArray[np.float32],
    left: npt.NDArray[np.float64],
) -> None:
    """Write the time to the anchor at each stream's own speed."""
    for i in range(arc.size):
        on_arc = max(duration[arc[i]] - offset[i], 0.0)
        left[i] = (on_arc + np.float64(times[anchor[i], head[arc[i]]])) / own[i]


@njit(nogil=True, cache=True)
def share_above(
    log_steps: npt.NDArray[np.float64],
    log_thresholds: npt.NDArray[np.float64],
    log_factors: npt.NDArray[np.float64],
    spreads: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return the expected share of steps above thresholds: [n_factors, n_spreads, n_thresholds].

    A step is a stream's at the common speed, times a factor, times an own speed: its logarithm is
    even, with the spread as standard deviation.
    """
    shares = np.zeros((log_factors.size, spreads.size, log_thresholds.size))
    for f in range(log_factors.size):
        for s in range(spreads.size):
            scale = 0.5 / (spreads[s] * _HALF_WIDTH)
            for k in range(log_thresholds.size):
                shift = log_factors[f] - log_thresholds[k]
                whole = 0.0
                for i in range(log_steps.size):
                    whole += min(max((log_steps[i] + shift) * scale, -0.5), 0.5)
                shares[f, s, k] = 0.5 + whole / log_steps.size
    return shares
