"""One timestamp of the synthetic population, compiled (Sec. III-D).

Streams are parallel arrays. Every draw is a word addressed by (key of the timestamp and purpose,
stream id). One word decides both whether a stream quits and where it moves: the low bits pick a
slot of an alias table, the high 32 bits decide within it, 28 bits between them decide quitting.

An alias table packs each slot into one word: threshold (32 bits), second choice (16), first (16).
"""

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from retrasyn.randomness.kernels import word_at

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
_TOP = np.uint64((1 << 64) - 1)
_INSIDE = 1e-6  # points keep this share of a cell off its walls, so rounding cannot cross one


@njit(nogil=True, cache=True)
def build_alias(
    weights: npt.NDArray[np.float64],
    choices: npt.NDArray[np.int32],
    fallback: npt.NDArray[np.int32],
    n_slots: int,
) -> npt.NDArray[np.uint64]:
    """Pack one alias row per row of weights; a row without weight always gives its fallback."""
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
    """Take the first choice of a slot if the word's high half is below its threshold."""
    below = (word >> _SHIFT_32) < (slot >> _SHIFT_32)
    return np.uint16((slot if below else slot >> _SHIFT_16) & _LOW_16)


@njit(inline="always")
def _fate(
    word: np.uint64,
    cell: np.uint16,
    weight: float,
    against_moves: float,
    slots: npt.NDArray[np.uint64],
) -> np.uint16:
    """Return where a stream goes, or ENDED."""
    u = np.float64((word >> _SHIFT_4) & _LOW_28)  # a uniform, times 2^28
    slot = slots[(np.uint64(cell) << _SHIFT_4) | (word & _SLOT_MASK)]
    return _choose(slot, word) if u >= weight * (_TWO_28 - against_moves * u) else ENDED


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
    """Write each stream's next cell, or ENDED if it quits; return how many live on.

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
    """Count every stride-th of the living streams by the cell that weighs it."""
    counts = np.zeros(n_cells, np.int64)
    for i in range(0, weighed.size, stride):
        if moved[i] != ENDED:
            counts[weighed[i]] += 1
    return counts


@njit(nogil=True, cache=True)
def find_floors(
    counts: npt.NDArray[np.int64], weights: npt.NDArray[np.float64], share: float
) -> npt.NDArray[np.uint64]:
    """Return per cell the word above which a share of all streams is expected to lie.

    A stream's key is -ln(U) / w. Weights belong to cells, so "key at most tau" is "U at least
    exp(-w tau)": one comparison. Tau solves sum_c n_c (1 - exp(-w_c tau)) = share sum_c n_c, by
    bisection in its logarithm; a share of 0 lets nobody pass and a share of 1 everybody.
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
    """List the living streams whose word reaches their cell's floor, with their keys -ln(U) / w.

    Those that reach the higher floor too are surely among the smallest keys and get the key -1
    without a logarithm. Returns how many passed, how many of them surely, and the lists, which
    hold at most `room`.
    """
    places = np.empty(room, np.int64)
    keys = np.empty(room, np.float64)
    lowest = floors.min()
    n_found = n_sure = 0
    for i in range(ids.size):
        word = word_at(key, np.uint64(ids[i]))
        if word < lowest:  # most streams end here, without a look at their cell
            continue
        if moved[i] == ENDED:  # asked first: the weighing cell may be this mark, not a cell
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
def compact(
    ids: npt.NDArray[np.int64],
    cells: npt.NDArray[np.uint16],
    entered: npt.NDArray[np.int32],
    moved: npt.NDArray[np.uint16],
) -> int:
    """Close the gaps the ended leave, in place; return how many live on."""
    n_kept = 0
    for i in range(ids.size):
        cell = moved[i]
        ids[n_kept] = ids[i]
        entered[n_kept] = entered[i]
        cells[n_kept] = cell
        n_kept += cell != ENDED
    return n_kept


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
    """Count streams per cell, those with the mark of the ended left out: [n_cells]."""
    counts = np.zeros(n_cells, np.int64)
    for i in range(cells.size):
        if cells[i] != ENDED:
            counts[cells[i]] += 1
    return counts


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
    """Draw a point uniformly in the cell of each stream."""
    inner_width, inner_height = (1.0 - 2.0 * _INSIDE) * width, (1.0 - 2.0 * _INSIDE) * height
    off_x, off_y = _INSIDE * width, _INSIDE * height
    for i in range(ids.size):
        word = word_at(key, np.uint64(ids[i]))
        cell = cells[i]
        u = np.float64(word >> _SHIFT_32) * _TO_UNIT_32
        v = np.float64(word & _LOW_32) * _TO_UNIT_32
        x[i] = corners[cell, 0] + off_x + u * inner_width
        y[i] = corners[cell, 1] + off_y + v * inner_height
