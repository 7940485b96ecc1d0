"""Compiled kernels for one timestamp of the synthetic population (Sec. III-D)."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import config, njit

from retrasyn.randomness.kernels import STRIDE, word_at

ENDED = np.uint16(0xFFFF)
MOVE_SLOTS = 16  # nine neighbours, padded to a power of two
_BLOCK = 256  # words drawn together, a fixed number, so that the compiler can vectorise them
_LOW_16 = np.uint64(0xFFFF)
_LOW_28 = np.uint64((1 << 28) - 1)
_SHIFT_4, _SHIFT_16, _SHIFT_32 = np.uint64(4), np.uint64(16), np.uint64(32)
_SLOT_MASK = np.uint64(MOVE_SLOTS - 1)
_TO_UNIT_32 = 2.0**-32
_TO_UNIT_53 = 2.0**-53
_LOW_32 = np.uint64((1 << 32) - 1)
_SHIFT_11 = np.uint64(11)
_TWO_28 = 2.0**28
_TWO_32 = 2.0**32
_TWO_53 = 2.0**53
_TWO_64 = 2.0**64
_TOP = np.uint64((1 << 64) - 1)
_INSIDE = 1e-6  # share of a cell that points keep off its edges, so rounding cannot cross one


def n_threads() -> int:
    """Return how many threads numba is configured to use."""
    number: int = config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    return number


@njit(nogil=True, cache=True)
def build_alias(
    weights: npt.NDArray[np.float64],
    choices: npt.NDArray[np.int32],
    fallback: npt.NDArray[np.int32],
    n_slots: int,
) -> npt.NDArray[np.uint64]:
    """Build one alias row per row of weights; a row without weight always yields its fallback."""
    n_rows, n_choices = weights.shape
    table = np.empty((n_rows, n_slots), np.uint64)
    scaled = np.empty(n_slots)
    small = np.empty(n_slots, np.int64)
    large = np.empty(n_slots, np.int64)
    alias = np.empty(n_slots, np.int64)
    for row in range(n_rows):
        total = weights[row].sum()
        heaviest = np.argmax(weights[row])
        if not total > 0.0:
            same = np.uint64(fallback[row])
            table[row, :] = (same << _SHIFT_16) | same
            continue
        n_small = n_large = 0
        for k in range(n_slots):
            scaled[k] = weights[row, k] / total * n_slots if k < n_choices else 0.0
            alias[k] = heaviest
            if scaled[k] < 1.0:
                small[n_small] = k
                n_small += 1
            else:
                large[n_large] = k
                n_large += 1
        while n_small > 0 and n_large > 0:
            n_small -= 1
            k, giver = small[n_small], large[n_large - 1]
            alias[k] = giver
            scaled[giver] -= 1.0 - scaled[k]
            if scaled[giver] < 1.0:
                n_large -= 1
                small[n_small] = giver
                n_small += 1
        for k in range(n_large):
            alias[large[k]] = large[k]  # whole slots; what rounding left among the small ones
        for k in range(n_slots):  # keeps its threshold and falls to the heaviest choice
            threshold = np.uint64(min(scaled[k] * _TWO_32, _TWO_32 - 1.0))
            first = np.uint64(choices[row, k] if k < n_choices and scaled[k] > 0.0 else 0)
            second = np.uint64(choices[row, alias[k]])
            table[row, k] = (threshold << _SHIFT_32) | (second << _SHIFT_16) | first
    return table


@njit(inline="always")
def _choose(slot: np.uint64, word: np.uint64) -> np.uint16:
    """Return the slot's first choice if the word's high half is below its threshold, else alias."""
    below = (word >> _SHIFT_32) < (slot >> _SHIFT_32)
    return np.uint16((slot if below else slot >> _SHIFT_16) & _LOW_16)


@njit(inline="always")
def _next_cell(word: np.uint64, cell: np.uint16, slots: npt.NDArray[np.uint64]) -> np.uint16:
    """Draw a move from the alias row of a cell; the word's low bits choose the slot."""
    return _choose(slots[(np.uint64(cell) << _SHIFT_4) | (word & _SLOT_MASK)], word)


@njit(inline="always")
def _fate(
    word: np.uint64,
    cell: np.uint16,
    weight: float,
    against_moves: float,
    slots: npt.NDArray[np.uint64],
) -> np.uint16:
    """Return a stream's next cell, or ENDED."""
    u = np.float64((word >> _SHIFT_4) & _LOW_28)  # a uniform, times 2^28
    moved = _next_cell(word, cell, slots)
    return moved if u >= weight * (_TWO_28 - against_moves * u) else ENDED


@njit(nogil=True, cache=True)
def decide(
    ids: npt.NDArray[np.int64],
    cells: npt.NDArray[np.uint16],
    entered: npt.NDArray[np.int32],
    moved: npt.NDArray[np.uint16],
    t: int,
    key: np.uint64,
    table: npt.NDArray[np.uint64],
    odds: npt.NDArray[np.float64],
    per_length: float,
    length_cap: float,
    against_moves: float,
) -> int:
    """Write each stream's next cell, or ENDED if it quits; return how many survive.

    With s = min(cap, l / lambda), a stream of length l quits with probability s h / (s h + 1 - h)
    when it competes with the moves (against_moves = 1, odds = h / (1 - h)): a uniform u is below
    a / (1 + a) iff u < a (1 - u), which needs no division. With against_moves = 0 and odds = h it
    quits with probability s h.
    """
    slots = table.reshape(-1)
    words = np.empty(_BLOCK, np.uint64)
    whole = ids.size - ids.size % _BLOCK
    n_alive = 0
    for first in range(0, whole, _BLOCK):
        for j in range(_BLOCK):
            words[j] = word_at(key, np.uint64(ids[first + j]))
        for j in range(_BLOCK):
            i = first + j
            weight = min(np.float64(t - entered[i]) * per_length, length_cap) * odds[cells[i]]
            moved[i] = _fate(words[j], cells[i], weight, against_moves, slots)
            n_alive += moved[i] != ENDED
    for i in range(whole, ids.size):
        word = word_at(key, np.uint64(ids[i]))
        weight = min(np.float64(t - entered[i]) * per_length, length_cap) * odds[cells[i]]
        moved[i] = _fate(word, cells[i], weight, against_moves, slots)
        n_alive += moved[i] != ENDED
    return n_alive


@njit(nogil=True, cache=True)
def count_alive(
    weighed: npt.NDArray[np.uint16], moved: npt.NDArray[np.uint16], n_cells: int, stride: int
) -> npt.NDArray[np.int64]:
    """Count every stride-th surviving stream by the cell that determines its weight."""
    counts = np.zeros(n_cells, np.int64)
    for i in range(0, weighed.size, stride):
        if moved[i] != ENDED:
            counts[weighed[i]] += 1
    return counts


@njit(nogil=True, cache=True)
def find_floors(
    counts: npt.NDArray[np.int64], weights: npt.NDArray[np.float64], share: float
) -> npt.NDArray[np.uint64]:
    """Return, per cell, the word above which a given share of all streams is expected to lie.

    A stream's key is -ln(U) / w. Weights belong to cells, so "key at most tau" is "U at least
    exp(-w tau)": one comparison. Tau solves sum_c n_c (1 - exp(-w_c tau)) = share sum_c n_c, by
    bisection in its logarithm; a share of 0 lets no stream pass and a share of 1 all of them.
    """
    floors = np.empty(weights.size, np.uint64)
    if not 0.0 < share < 1.0:
        floors[:] = np.uint64(0) if share >= 1.0 else _TOP
        return floors
    low, high = -60.0, 60.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        tau = math.exp(middle)
        expected = 0.0
        for cell in range(counts.size):
            if counts[cell] > 0:
                expected -= counts[cell] * math.expm1(-weights[cell] * tau)
        if expected < share * counts.sum():
            low = middle
        else:
            high = middle
    for cell in range(weights.size):
        floor = math.exp(-weights[cell] * math.exp(high))
        floors[cell] = np.uint64(floor * _TWO_53) << _SHIFT_11 if floor < 1.0 else _TOP
    return floors


@njit(nogil=True, cache=True)
def keys_above(
    ids: npt.NDArray[np.int64],
    weighed: npt.NDArray[np.uint16],
    moved: npt.NDArray[np.uint16],
    key: np.uint64,
    weights: npt.NDArray[np.float64],
    floors: npt.NDArray[np.uint64],
    sure_floors: npt.NDArray[np.uint64],
    room: int,
) -> tuple[int, int, npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """List the surviving streams whose word reaches their cell's floor, with keys -ln(U) / w.

    Those that also reach the higher floor are certainly among the smallest keys and get the key -1
    without a logarithm. Returns how many passed, how many of them certainly, and the lists, which
    hold at most `room`.
    """
    places = np.empty(room, np.int64)
    keys = np.empty(room, np.float64)
    lowest = floors.min()
    n_found = n_sure = 0
    for i in range(ids.size):
        word = word_at(key, np.uint64(ids[i]))
        if word < lowest:  # most streams stop here, before their cell is looked up
            continue
        if moved[i] == ENDED:  # checked first: the cell may be this mark
            continue
        cell = weighed[i]
        if word >= floors[cell]:
            sure = word >= sure_floors[cell]
            if n_found < room:
                places[n_found] = i
                uniform = (np.float64(word >> _SHIFT_11) + 0.5) * _TO_UNIT_53
                keys[n_found] = -1.0 if sure else -math.log(uniform) / weights[cell]
            n_found += 1
            n_sure += sure
    n_listed = min(n_found, room)
    return n_found, n_sure, places[:n_listed], keys[:n_listed]


@njit(nogil=True, cache=True)
def count_ended(kept: npt.NDArray[np.uint16]) -> int:
    """Count the streams that are marked as ended."""
    n_ended = 0
    for i in range(kept.size):
        n_ended += kept[i] == ENDED
    return n_ended


@njit(nogil=True, cache=True)
def keep(
    column: npt.NDArray[Any],
    kept: npt.NDArray[np.uint16],
    place: int,
    end: int,
    out: npt.NDArray[Any],
) -> int:
    """Write the values of streams that have not ended to `out`, from a place on; return the next.

    Nothing is written at `end` or behind it. `out` may be the array that `column` is a part of, if
    nothing is written behind what is read.
    """
    for i in range(column.size):
        if place == end:  # all others have ended
            break
        out[place] = column[i]  # the next one overwrites it if this one has ended: no branch
        place += kept[i] != ENDED
    return place


@njit(nogil=True, cache=True)
def draw_births(
    ids: npt.NDArray[np.int64],
    cells: npt.NDArray[np.uint16],
    key: np.uint64,
    table: npt.NDArray[np.uint64],
) -> None:
    """Draw the first cell of new streams from a one-row alias table."""
    mask = np.uint64(table.shape[1] - 1)
    for i in range(cells.size):
        word = word_at(key, np.uint64(ids[i]))
        cells[i] = _choose(table[0, np.int64(word & mask)], word)


@njit(nogil=True, cache=True)
def count_cells(cells: npt.NDArray[np.uint16], n_cells: int) -> npt.NDArray[np.int64]:
    """Count streams per cell, ignoring ended ones: [n_cells]."""
    counts = np.zeros(n_cells, np.int64)
    for i in range(cells.size):
        if cells[i] != ENDED:
            counts[cells[i]] += 1
    return counts


@njit(nogil=True, cache=True)
def scale_points(
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    corner: tuple[float, float],
    width: float,
    height: float,
    x_out: npt.NDArray[np.float64],
    y_out: npt.NDArray[np.float64],
) -> None:
    """Turn points in cell widths into points of the box."""
    for i in range(x.size):
        x_out[i] = corner[0] + x[i] * width
        y_out[i] = corner[1] + y[i] * height


@njit(nogil=True, cache=True)
def draw_points(
    ids: npt.NDArray[np.int64],
    cells: npt.NDArray[np.uint16],
    key: np.uint64,
    corners: npt.NDArray[np.float64],
    width: float,
    height: float,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
) -> None:
    """Draw a uniform point in the cell of each stream."""
    inner_width, inner_height = (1.0 - 2.0 * _INSIDE) * width, (1.0 - 2.0 * _INSIDE) * height
    off_x, off_y = _INSIDE * width, _INSIDE * height
    for i in range(ids.size):
        word = word_at(key, np.uint64(ids[i]))
        cell = cells[i]
        u = np.float64(word >> _SHIFT_32) * _TO_UNIT_32
        v = np.float64(word & _LOW_32) * _TO_UNIT_32
        x[i] = corners[cell, 0] + off_x + u * inner_width
        y[i] = corners[cell, 1] + off_y + v * inner_height


_DIRECTIONS = 9
_STAYING = 4  # place of the cell itself among its neighbours
N_CLASSES = 64  # of ids, by remainder
_CLASS_MASK = N_CLASSES - 1


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
def count_ages(
    cells: npt.NDArray[np.uint16],
    entered: npt.NDArray[np.int32],
    t: int,
    n_ages: int,
    n_cells: int,
) -> npt.NDArray[np.int64]:
    """Count streams by age and cell, [n_ages, n_cells], from age 1 on; the last are all older."""
    counts = np.zeros((n_ages, n_cells), np.int64)
    for i in range(cells.size):
        counts[min(t - entered[i], n_ages) - 1, cells[i]] += 1
    return counts


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
    """Write each stream's cell, or ENDED if it quits; return how many survive."""
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
    keys: npt.NDArray[np.float64],
) -> None:
    """Write -ln(U) / p for every surviving stream, infinity for ended ones."""
    for i in range(ids.size):
        if kept[i] == ENDED:
            keys[i] = math.inf
            continue
        word = word_at(key, np.uint64(ids[i]))
        uniform = (np.float64(word >> _SHIFT_11) + 0.5) * _TO_UNIT_53
        p = min(cap, factor * _hazard(t - entered[i], kept[i], by_age, by_cell))
        keys[i] = -math.log(uniform) / p


@njit(nogil=True, cache=True)
def keys_within(
    ids: npt.NDArray[np.int64],
    entered: npt.NDArray[np.int32],
    kept: npt.NDArray[np.uint16],
    t: int,
    key: np.uint64,
    weights: npt.NDArray[np.float64],
    floors: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """List the surviving streams whose word reaches the floor, with keys -ln(U) / w.

    `weights` and `floors` [n_ages, n_cells] begin with age 1; the last row is of all older streams.
    """
    places = np.empty(ids.size, np.int64)
    keys = np.empty(ids.size)
    lowest, oldest = floors.min(), weights.shape[0]
    n_found = 0
    for i in range(ids.size):
        word = word_at(key, np.uint64(ids[i]))
        if word < lowest or kept[i] == ENDED:  # most streams stop here, before the tables
            continue
        age = min(t - entered[i], oldest) - 1
        if word >= floors[age, kept[i]]:
            uniform = (np.float64(word >> _SHIFT_11) + 0.5) * _TO_UNIT_53
            places[n_found], keys[n_found] = i, -math.log(uniform) / weights[age, kept[i]]
            n_found += 1
    return places[:n_found].copy(), keys[:n_found].copy()


@njit(nogil=True, cache=True)
def steer(
    kernel: npt.NDArray[np.float64],
    mass: npt.NDArray[np.float64],
    movers: npt.NDArray[np.int64],
    table: npt.NDArray[np.int32],
    pull: npt.NDArray[np.float64],
    rounds: int,
) -> npt.NDArray[np.float64]:
    """Adjust a transition kernel so that arrivals match the movement mass: [n_cells, 9].

    `kernel` rows and `mass` as a whole sum to 1. `pull` [n_cells] is the attraction factor of each
    cell, both the starting point of the iteration and, updated in place, its result.
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


@njit(nogil=True, cache=True)
def count_classes(
    ids: npt.NDArray[np.int64], cells: npt.NDArray[np.uint16], n_cells: int
) -> npt.NDArray[np.int64]:
    """Count streams by class of id and by cell: [N_CLASSES, n_cells]."""
    counts = np.zeros((N_CLASSES, n_cells), np.int64)
    for i in range(ids.size):
        counts[ids[i] & _CLASS_MASK, cells[i]] += 1
    return counts


@njit(nogil=True, cache=True)
def build_limits(
    kernel: npt.NDArray[np.float64], table: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16]]:
    """Return cumulative shares in units of 2^-64, [n_cells, 8], and their cells, [n_cells, 9].

    Staying comes first, then the other neighbours. What rounding leaves beyond the last limit
    belongs to the last neighbour.
    """
    n_cells = table.shape[0]
    limits = np.full((n_cells, _DIRECTIONS - 1), _TOP)
    targets = np.empty((n_cells, _DIRECTIONS), np.uint16)
    for i in range(n_cells):
        below, n_found = 0.0, 0
        for k in range(_DIRECTIONS):
            c = _STAYING if k == 0 else k - 1 if k <= _STAYING else k
            if table[i, c] >= 0:
                below += kernel[i, c]
                if n_found < _DIRECTIONS - 1 and below < 1.0:
                    limits[i, n_found] = np.uint64(below * _TWO_64)
                targets[i, n_found:] = table[i, c]
                n_found += 1
    return limits, targets


@njit(nogil=True, cache=True)
def move_streams(
    ids: npt.NDArray[np.int64],
    cells: npt.NDArray[np.uint16],
    words: npt.NDArray[np.uint64],
    limits: npt.NDArray[np.uint64],
    targets: npt.NDArray[np.uint16],
    moved: npt.NDArray[np.uint16],
) -> None:
    """Write every stream's next cell: the first whose limit is above the word of its rank.

    `words` [N_CLASSES, n_cells] holds the word of the first stream of each class and cell, and
    afterwards that of the next one. From stream to stream it goes on by the golden ratio, so that
    any number of consecutive ranks is spread evenly.
    """
    for i in range(ids.size):
        group, cell = ids[i] & _CLASS_MASK, cells[i]
        word = words[group, cell]
        words[group, cell] = word + STRIDE
        n_below = 0
        for k in range(_DIRECTIONS - 1):  # all of them, since branches would be mispredicted
            n_below += word >= limits[cell, k]
        moved[i] = targets[cell, n_below]


BIN_BITS = 12
N_BINS = 1 << BIN_BITS


@njit(nogil=True, cache=True)
def count_words(
    words: npt.NDArray[np.uint64],
    groups: npt.NDArray[np.uint16],
    kept: npt.NDArray[np.uint16],
    low: npt.NDArray[np.uint64],
    width: int,
) -> npt.NDArray[np.int64]:
    """Count surviving streams by group and by bin of the group's interval: [n_groups, N_BINS]."""
    counts = np.zeros((low.size, N_BINS), np.int64)
    shift = np.uint64(max(width - BIN_BITS, 0))
    span = np.uint64(1) << np.uint64(width)
    for i in range(words.size):
        begin = low[groups[i]]
        if words[i] >= begin and words[i] - begin < span and kept[i] != ENDED:
            counts[groups[i], np.int64((words[i] - begin) >> shift)] += 1
    return counts


@njit(nogil=True, cache=True)
def list_words(
    words: npt.NDArray[np.uint64],
    groups: npt.NDArray[np.uint16],
    kept: npt.NDArray[np.uint16],
    low: npt.NDArray[np.uint64],
    width: int,
) -> npt.NDArray[np.int64]:
    """Return the indices of surviving streams whose word lies in their group's interval."""
    places = np.empty(words.size, np.int64)
    span = np.uint64(1) << np.uint64(width)
    n_found = 0
    for i in range(words.size):
        begin = low[groups[i]]
        if words[i] >= begin and words[i] - begin < span and kept[i] != ENDED:
            places[n_found] = i
            n_found += 1
    return places[:n_found].copy()


@njit(nogil=True, cache=True)
def end_up_to(
    words: npt.NDArray[np.uint64],
    groups: npt.NDArray[np.uint16],
    kept: npt.NDArray[np.uint16],
    ids: npt.NDArray[np.int64],
    last_words: npt.NDArray[np.uint64],
    last_ids: npt.NDArray[np.int64],
) -> None:
    """Mark as ended the surviving streams up to their group's last one, by (word, id)."""
    for i in range(words.size):
        last = last_words[groups[i]]
        if words[i] < last or (words[i] == last and ids[i] <= last_ids[groups[i]]):
            kept[i] = ENDED
