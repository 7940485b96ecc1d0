"""Compiled kernels for the points of synthetic streams, in cell widths."""

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from retrasyn.randomness.kernels import word_at

ANGLES = 4096  # number of step directions
_ANGLE_MASK = np.uint64(ANGLES - 1)
MARGIN = 5e-4  # share of a cell that points keep away from its edges
_LOW_16, _LOW_32 = np.uint64((1 << 16) - 1), np.uint64((1 << 32) - 1)
_SHIFT_11, _SHIFT_12 = np.uint64(11), np.uint64(12)
_SHIFT_16, _SHIFT_32, _SHIFT_48 = np.uint64(16), np.uint64(32), np.uint64(48)
_TO_UNIT_16, _TO_UNIT_32 = 2.0**-16, 2.0**-32
_TO_UNIT_52, _TO_UNIT_53 = 2.0**-52, 2.0**-53
_ROUNDED_UP = 1.0 + 1e-9
_BLOCK = 256  # streams looked at together, so that the compiler can vectorise what they draw


@njit(inline="always")
def _height(surface: npt.NDArray[np.float64], x: float, y: float) -> float:
    """Interpolate between the four cell centres around a point."""
    column, row = np.uint32(x + 0.5), np.uint32(y + 0.5)
    right, up = x + 0.5 - column, y + 0.5 - row
    level = surface[row, column, 0] + right * surface[row, column, 1]
    slope = surface[row, column, 2] + right * surface[row, column, 3]
    height: float = level + up * slope
    return height


@njit(inline="always")
def _along(place: float, within: float, step: float) -> float:
    """Move along one axis of a cell that begins at `within`, turning back at its edges."""
    place += step
    if place < within:
        place = 2.0 * within - place
    if place > within + 1:
        place = 2.0 * (within + 1) - place
    return min(max(place, within + MARGIN), within + 1 - MARGIN)


@njit(inline="always")
def _uniform_in(word: np.uint64, column: np.int64, row: np.int64) -> tuple[float, float]:
    """Return a point of a cell."""
    inner = 1.0 - 2.0 * MARGIN
    return (
        column + MARGIN + inner * np.float64(word >> _SHIFT_32) * _TO_UNIT_32,
        row + MARGIN + inner * np.float64(word & _LOW_32) * _TO_UNIT_32,
    )


@njit(inline="always")
def _nearest_places(
    ids: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    keys: npt.NDArray[np.uint64],
    corners: npt.NDArray[np.float64],
    after: npt.NDArray[np.uint16],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    names: npt.NDArray[np.uint64],
    room: npt.NDArray[np.float64],
) -> None:
    """Put the streams at these places at the nearest of a few points of their new cells."""
    n = places.size
    was_x, was_y, columns, rows, now_x, now_y, nearest = room
    for j in range(n):
        i = places[j]
        names[j], was_x[j], was_y[j] = np.uint64(ids[i]), x[i], y[i]
        columns[j], rows[j] = corners[after[i], 0], corners[after[i], 1]
    nearest[:n] = math.inf
    for attempt in range(keys.size):
        key = keys[attempt]
        for j in range(n):  # no branch, so that the compiler can vectorise it
            new_x, new_y = _uniform_in(word_at(key, names[j]), columns[j], rows[j])
            right, up = new_x - was_x[j], new_y - was_y[j]
            far = right * right + up * up
            closer = far < nearest[j]
            nearest[j] = far if closer else nearest[j]
            now_x[j] = new_x if closer else now_x[j]
            now_y[j] = new_y if closer else now_y[j]
    for j in range(n):
        x[places[j]], y[places[j]] = now_x[j], now_y[j]


@njit(inline="always")
def _most_falls(
    surface: npt.NDArray[np.float64], lengths: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return how far a step can fall at most that stays in a cell: [n_cells]."""
    side = surface.shape[0] - 1
    falls = np.empty(lengths.size)
    for cell in range(falls.size):
        slope_x = slope_y = 0.0
        for corner in range(4):  # the slopes of the four parts of a cell, at their edges
            part = surface[cell // side + corner // 2, cell % side + corner % 2]
            slope_x = max(slope_x, abs(part[1]), abs(part[1] + part[3]))
            slope_y = max(slope_y, abs(part[2]), abs(part[2] + part[3]))
        falls[cell] = lengths[cell] * math.hypot(slope_x, slope_y) * _ROUNDED_UP
    return falls


@njit(nogil=True, cache=True)
def step_by_density(
    ids: npt.NDArray[np.int64],
    before: npt.NDArray[np.uint16],
    after: npt.NDArray[np.uint16],
    key: np.uint64,
    newcomer_keys: npt.NDArray[np.uint64],
    lengths: npt.NDArray[np.float64],
    angles: npt.NDArray[np.float64],
    surface: npt.NDArray[np.float64],
    corners: npt.NDArray[np.float64],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
) -> None:
    """Move every point by a step of its cell's length, or into its stream's new cell, in place.

    In a new cell it is at the nearest of a few places. `surface` [side + 1, side + 1, 4]
    interpolates the logarithm of the density: a point that stays in its cell and would fall by d
    turns round with probability 1 - e^-d. `corners` [n_cells, 2] are in cell widths.

    Streams are looked at in blocks, those that stay apart from those that move: then most loops
    are without branches, and few points need their height.
    """
    falls = _most_falls(surface, lengths)
    staying, moving = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    steep, words = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.uint64)
    room = np.empty((8, _BLOCK))
    was_x, was_y, columns, rows, now_x, now_y, step_x, step_y = room
    for first in range(0, ids.size, _BLOCK):
        n_staying = n_moving = n_steep = 0
        for i in range(first, min(first + _BLOCK, ids.size)):
            staying[n_staying], moving[n_moving] = i, i
            n_staying += before[i] == after[i]
            n_moving += before[i] != after[i]
        places = moving[:n_moving]
        _nearest_places(ids, places, newcomer_keys, corners, after, x, y, words, room[:7])
        for j in range(n_staying):
            words[j] = word_at(key, np.uint64(ids[staying[j]]))
        for j in range(n_staying):
            i, cell, direction = staying[j], after[staying[j]], words[j] & _ANGLE_MASK
            was_x[j], was_y[j] = x[i], y[i]
            columns[j], rows[j] = corners[cell, 0], corners[cell, 1]
            step_x[j] = lengths[cell] * angles[direction, 0]
            step_y[j] = lengths[cell] * angles[direction, 1]
            steep[n_steep] = j
            n_steep += np.float64(words[j] >> _SHIFT_12) * _TO_UNIT_52 < falls[cell]
        for j in range(n_staying):
            now_x[j] = _along(was_x[j], columns[j], step_x[j])
            now_y[j] = _along(was_y[j], rows[j], step_y[j])
        for k in range(n_steep):
            j = steep[k]
            fall = _height(surface, was_x[j], was_y[j]) - _height(surface, now_x[j], now_y[j])
            uniform = np.float64(words[j] >> _SHIFT_12) * _TO_UNIT_52
            if uniform < fall and uniform < -math.expm1(-fall):  # 1 - e^-d is at most d
                now_x[j] = _along(was_x[j], columns[j], -step_x[j])
                now_y[j] = _along(was_y[j], rows[j], -step_y[j])
        for j in range(n_staying):
            x[staying[j]], y[staying[j]] = now_x[j], now_y[j]


@njit(inline="always")
def _peak(surface: npt.NDArray[np.float64], column: int, row: int) -> float:
    """Return the highest of a cell's corners, mid-edges and centre, which none of it exceeds."""
    peak = -math.inf
    for i in range(3):
        for j in range(3):
            peak = max(peak, _height(surface, column + 0.5 * i, row + 0.5 * j))
    return peak


@njit(nogil=True, cache=True)
def place_by_density(
    ids: npt.NDArray[np.int64],
    cells: npt.NDArray[np.uint16],
    keys: npt.NDArray[np.uint64],
    surface: npt.NDArray[np.float64],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
) -> None:
    """Draw the first point of each new stream in its cell, in cell widths, by density.

    A uniform point is accepted with probability e^(its height - the cell's peak); `keys` [n, 2]
    are for the points and the acceptance of each try, and the last try stands.
    """
    side = surface.shape[0] - 1
    peaks = np.empty(side * side)
    for cell in range(peaks.size):
        peaks[cell] = _peak(surface, cell % side, cell // side)
    for i in range(ids.size):
        column, row = np.int64(cells[i]) % side, np.int64(cells[i]) // side
        for attempt in range(keys.shape[0]):
            word = word_at(keys[attempt, 0], np.uint64(ids[i]))
            x[i], y[i] = _uniform_in(word, column, row)
            depth = peaks[cells[i]] - _height(surface, x[i], y[i])
            word = word_at(keys[attempt, 1], np.uint64(ids[i]))
            if np.float64(word >> _SHIFT_11) * _TO_UNIT_53 < math.exp(-depth):
                break


@njit(inline="always")
def _by_map(
    word: np.uint64, cell: np.uint16, side: int, limits: npt.NDArray[np.uint64]
) -> tuple[float, float]:
    """Return a point of a cell whose squares, of which there are `fine` a side, have these limits.

    The upper half of the word chooses the square, the lower half the place in it.
    """
    n_squares = limits.shape[1] + 1
    fine = np.int64(round(math.sqrt(n_squares)))
    square = np.searchsorted(limits[cell], word >> _SHIFT_32, side="right")
    right = (square % fine + np.float64((word >> _SHIFT_16) & _LOW_16) * _TO_UNIT_16) / fine
    up = (square // fine + np.float64(word & _LOW_16) * _TO_UNIT_16) / fine
    return (
        np.int64(cell) % side + min(max(right, MARGIN), 1.0 - MARGIN),
        np.int64(cell) // side + min(max(up, MARGIN), 1.0 - MARGIN),
    )


@njit(nogil=True, cache=True)
def step_by_map(
    ids: npt.NDArray[np.int64],
    before: npt.NDArray[np.uint16],
    after: npt.NDArray[np.uint16],
    keys: npt.NDArray[np.uint64],
    newcomer_keys: npt.NDArray[np.uint64],
    lengths: npt.NDArray[np.float64],
    parked: float,
    angles: npt.NDArray[np.float64],
    limits: npt.NDArray[np.uint64],
    density: npt.NDArray[np.float64],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
) -> None:
    """Move every point by a step of its cell's length, or into its stream's new cell, in place.

    In a new cell it is at the nearest of a few places drawn by the map. One that stays in its cell
    does not move at all with probability `parked`; else it takes a step with the probability that
    keeps the points of a cell distributed as the map's `density` [side * fine, side * fine].
    """
    fine = np.int64(round(math.sqrt(limits.shape[1] + 1)))
    side = density.shape[0] // fine
    for i in range(ids.size):
        name = np.uint64(ids[i])
        if before[i] != after[i]:
            nearest, was_x, was_y = math.inf, x[i], y[i]
            for attempt in range(newcomer_keys.size):
                word = word_at(newcomer_keys[attempt], name)
                new_x, new_y = _by_map(word, after[i], side, limits)
                far = (new_x - was_x) ** 2 + (new_y - was_y) ** 2
                if far < nearest:
                    nearest, x[i], y[i] = far, new_x, new_y
            continue
        word = word_at(keys[0], name)
        if np.float64(word >> _SHIFT_12) * _TO_UNIT_52 < parked:
            continue
        direction = np.int64(word & _ANGLE_MASK)
        word = word_at(keys[1], name)
        thrice = (word & _LOW_16) + ((word >> _SHIFT_16) & _LOW_16) + (word >> _SHIFT_48)
        length = lengths[before[i]] * math.exp(np.float64(thrice) * _TO_UNIT_16 - 1.5)
        column, row = np.int64(after[i]) % side, np.int64(after[i]) // side
        new_x = _along(x[i], column, length * angles[direction, 0])
        new_y = _along(y[i], row, length * angles[direction, 1])
        here = density[np.int64(y[i] * fine), np.int64(x[i] * fine)]
        there = density[np.int64(new_y * fine), np.int64(new_x * fine)]
        word = word_at(keys[2], name)
        if np.float64(word >> _SHIFT_11) * _TO_UNIT_53 * here < there:
            x[i], y[i] = new_x, new_y


@njit(nogil=True, cache=True)
def place_by_map(
    ids: npt.NDArray[np.int64],
    cells: npt.NDArray[np.uint16],
    key: np.uint64,
    side: int,
    limits: npt.NDArray[np.uint64],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
) -> None:
    """Draw the first point of each new stream in its cell by the map, in cell widths."""
    for i in range(ids.size):
        x[i], y[i] = _by_map(word_at(key, np.uint64(ids[i])), cells[i], side, limits)
