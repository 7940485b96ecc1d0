"""Quits, steering and continuous points, compiled.

A stream of age a in cell c quits with probability p = min(cap, factor x by_age[a] x by_cell[c]);
ages count from 1, and the last entry of by_age stands for all older ones.
"""

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from retrasyn.randomness.kernels import word_at
from retrasyn.synthesis.kernels import ENDED

_DIRECTIONS = 9
_SLOT_MASK = np.uint64(15)
_LOW_16 = np.uint64(0xFFFF)
_SHIFT_4, _SHIFT_11, _SHIFT_16 = np.uint64(4), np.uint64(11), np.uint64(16)
_SHIFT_32 = np.uint64(32)
_TO_UNIT_53 = 2.0**-53
_TO_UNIT_32 = 2.0**-32
_LOW_32 = np.uint64((1 << 32) - 1)
ANGLES = 4096  # directions a step can take
_ANGLE_MASK = np.uint64(ANGLES - 1)
UNITS = 2.0**32  # of a probability: 200 million streams stay below 2^63, at up to 10 each
MARGIN = 5e-4  # share of a cell that points keep off its walls


@njit(inline="always")
def _hazard(
    age: int,
    cell: np.uint16,
    by_age: npt.NDArray[np.float64],
    by_cell: npt.NDArray[np.float64],
) -> float:
    hazard: float = by_age[min(age, by_age.size) - 1] * by_cell[cell]
    return hazard


@njit(nogil=True, cache=True)
def sum_hazards(
    cells: npt.NDArray[np.uint16],
    entered: npt.NDArray[np.int32],
    t: int,
    by_age: npt.NDArray[np.float64],
    by_cell: npt.NDArray[np.float64],
    factor: float,
    cap: float,
) -> tuple[np.int64, np.int64]:
    """Return the sums over streams of by_age alone, and of the capped probability, in UNITS.

    Whole numbers add up to the same however the streams are cut and ordered; floats do not.
    """
    plain = capped = np.int64(0)
    for i in range(cells.size):
        age = t - entered[i]
        plain += np.int64(by_age[min(age, by_age.size) - 1] * UNITS)
        capped += np.int64(min(cap, factor * _hazard(age, cells[i], by_age, by_cell)) * UNITS)
    return plain, capped


@njit(nogil=True, cache=True)
def draw_quits(
    ids: npt.NDArray[np.int64],
    cells: npt.NDArray[np.uint16],
    entered: npt.NDArray[np.int32],
    t: int,
    key: np.uint64,
    by_age: npt.NDArray[np.float64],
    by_cell: npt.NDArray[np.float64],
    factor: float,
    cap: float,
    kept: npt.NDArray[np.uint16],
) -> int:
    """Write each stream's cell, or ENDED if it quits; return how many live on."""
    n_alive = 0
    for i in range(ids.size):
        uniform = np.float64(word_at(key, np.uint64(ids[i])) >> _SHIFT_11) * _TO_UNIT_53
        quits = uniform < min(cap, factor * _hazard(t - entered[i], cells[i], by_age, by_cell))
        kept[i] = ENDED if quits else cells[i]
        n_alive += not quits
    return n_alive


@njit(nogil=True, cache=True)
def surplus_keys(
    ids: npt.NDArray[np.int64],
    entered: npt.NDArray[np.int32],
    kept: npt.NDArray[np.uint16],
    t: int,
    key: np.uint64,
    by_age: npt.NDArray[np.float64],
    by_cell: npt.NDArray[np.float64],
    factor: float,
    cap: float,
    floor: float,
    keys: npt.NDArray[np.float64],
) -> None:
    """Write -ln(U) / (p + floor) of every living stream, infinity for the ended."""
    for i in range(ids.size):
        if kept[i] == ENDED:
            keys[i] = math.inf
            continue
        word = word_at(key, np.uint64(ids[i]))
        uniform = (np.float64(word >> _SHIFT_11) + 0.5) * _TO_UNIT_53
        p = min(cap, factor * _hazard(t - entered[i], kept[i], by_age, by_cell))
        keys[i] = -math.log(uniform) / (p + floor)


@njit(nogil=True, cache=True)
def compact_points(
    x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], kept: npt.NDArray[np.uint16]
) -> None:
    """Close the gaps the ended leave in the points, in place."""
    n_kept = 0
    for i in range(kept.size):
        x[n_kept] = x[i]
        y[n_kept] = y[i]
        n_kept += kept[i] != ENDED


@njit(nogil=True, cache=True)
def steer(
    kernel: npt.NDArray[np.float64],
    mass: npt.NDArray[np.float64],
    movers: npt.NDArray[np.int64],
    table: npt.NDArray[np.int32],
    pull: npt.NDArray[np.float64],
    rounds: int,
) -> npt.NDArray[np.float64]:
    """Bend a kernel so that the movers arrive as the movement mass says: [n_cells, 9].

    `kernel` rows and `mass` as a whole sum to 1. `pull` [n_cells] holds the factor by which each
    cell attracts, where the rounds begin and where they end.
    """
    n_cells = table.shape[0]
    n_movers = float(movers.sum())
    goal, arriving = np.zeros(n_cells), np.empty(n_cells)
    base, bent = np.zeros(kernel.shape), np.zeros(kernel.shape)
    for i in range(n_cells):
        n_near = 0
        for c in range(_DIRECTIONS):
            n_near += table[i, c] >= 0
        for c in range(_DIRECTIONS):
            if table[i, c] >= 0:
                goal[table[i, c]] += n_movers * mass[i, c]
                base[i, c] = 0.999 * kernel[i, c] + 0.001 / n_near
    for _ in range(rounds):
        arriving[:] = 0.0
        for i in range(n_cells):
            row = 0.0
            for c in range(_DIRECTIONS):
                if table[i, c] >= 0:
                    bent[i, c] = base[i, c] * pull[table[i, c]]
                    row += bent[i, c]
            for c in range(_DIRECTIONS):
                if table[i, c] >= 0:
                    bent[i, c] /= row
                    arriving[table[i, c]] += movers[i] * bent[i, c]
        for j in range(n_cells):
            step = ((goal[j] + 0.5) / (arriving[j] + 0.5)) ** 0.7
            pull[j] = min(max(pull[j] * step, 0.05), 20.0)
    return bent


@njit(inline="always")
def _choose(slot: np.uint64, word: np.uint64) -> np.uint16:
    below = (word >> _SHIFT_32) < (slot >> _SHIFT_32)
    return np.uint16((slot if below else slot >> _SHIFT_16) & _LOW_16)


@njit(nogil=True, cache=True)
def move_streams(
    ids: npt.NDArray[np.int64],
    cells: npt.NDArray[np.uint16],
    key: np.uint64,
    table: npt.NDArray[np.uint64],
    moved: npt.NDArray[np.uint16],
) -> None:
    """Draw every stream's next cell from the alias row of its cell."""
    slots = table.reshape(-1)
    for i in range(ids.size):
        word = word_at(key, np.uint64(ids[i]))
        moved[i] = _choose(slots[(np.uint64(cells[i]) << _SHIFT_4) | (word & _SLOT_MASK)], word)


@njit(inline="always")
def _along(place: float, before: np.int64, after: np.int64, step: float) -> float:
    """Move along one axis, in cell widths: inward from a wall just crossed, else either way."""
    if after > before:
        place, step = float(after), abs(step)
    elif after < before:
        place, step = float(after + 1), -abs(step)
    place += step
    if place < after:
        place = 2.0 * after - place
    if place > after + 1:
        place = 2.0 * (after + 1) - place
    return min(max(place, after + MARGIN), after + 1 - MARGIN)


@njit(nogil=True, cache=True)
def step_points(
    ids: npt.NDArray[np.int64],
    before: npt.NDArray[np.uint16],
    after: npt.NDArray[np.uint16],
    key: np.uint64,
    lengths: npt.NDArray[np.float64],
    angles: npt.NDArray[np.float64],
    side: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
) -> None:
    """Move every point into its stream's new cell by a step of its old cell's length, in place."""
    for i in range(ids.size):
        direction = np.int64(word_at(key, np.uint64(ids[i])) & _ANGLE_MASK)
        length = lengths[before[i]]
        old, new = np.int64(before[i]), np.int64(after[i])
        x[i] = _along(x[i], old % side, new % side, length * angles[direction, 0])
        y[i] = _along(y[i], old // side, new // side, length * angles[direction, 1])


@njit(nogil=True, cache=True)
def place_newborn(
    ids: npt.NDArray[np.int64],
    cells: npt.NDArray[np.uint16],
    key: np.uint64,
    side: int,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
) -> None:
    """Draw a first point uniformly in the cell of each new stream, in cell widths."""
    inner = 1.0 - 2.0 * MARGIN
    for i in range(ids.size):
        word = word_at(key, np.uint64(ids[i]))
        x[i] = cells[i] % side + MARGIN + inner * np.float64(word >> _SHIFT_32) * _TO_UNIT_32
        y[i] = cells[i] // side + MARGIN + inner * np.float64(word & _LOW_32) * _TO_UNIT_32
