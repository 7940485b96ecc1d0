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
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
) -> None:
    """Move every point by a step of its cell's length, or into its stream's new cell, in place.

    In a new cell it is at the nearest of a few places. `surface` [side + 1, side + 1, 4]
    interpolates the logarithm of the density: a point that stays in its cell and would fall by d
    turns round with probability 1 - e^-d.
    """
    side = surface.shape[0] - 1
    for i in range(ids.size):
        column, row = np.int64(after[i]) % side, np.int64(after[i]) // side
        if before[i] != after[i]:
            nearest, was_x, was_y = math.inf, x[i], y[i]
            for attempt in range(newcomer_keys.size):
                word = word_at(newcomer_keys[attempt], np.uint64(ids[i]))
                new_x, new_y = _uniform_in(word, column, row)
                far = (new_x - was_x) ** 2 + (new_y - was_y) ** 2
                if far < nearest:
                    nearest, x[i], y[i] = far, new_x, new_y
            continue
        word = word_at(key, np.uint64(ids[i]))
        direction = np.int64(word & _ANGLE_MASK)
        length = lengths[before[i]]
        step_x, step_y = length * angles[direction, 0], length * angles[direction, 1]
        new_x, new_y = _along(x[i], column, step_x), _along(y[i], row, step_y)
        fall = _height(surface, x[i], y[i]) - _height(surface, new_x, new_y)
        uniform = np.float64(word >> _SHIFT_12) * _TO_UNIT_52
        if uniform < fall and uniform < -math.expm1(-fall):  # 1 - e^-d is at most d
            new_x, new_y = _along(x[i], column, -step_x), _along(y[i], row, -step_y)
        x[i], y[i] = new_x, new_y


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
