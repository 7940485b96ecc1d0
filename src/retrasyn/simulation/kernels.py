"""Compiled loops over recorded points and simulated devices."""

import numpy as np
import numpy.typing as npt
from numba import njit

from retrasyn.randomness.kernels import word_at
from retrasyn.space.kernels import OUTSIDE

SPLIT, CLAMP, AUTHORS = 0, 1, 2
_ONE = np.uint64(1)


@njit(nogil=True, cache=True)
def group_by_time(
    starts: npt.NDArray[np.int64],
    begins: npt.NDArray[np.int64],
    cells: npt.NDArray[np.uint16],
    n_timestamps: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.uint16]]:
    """Group the points inside the box by timestamp, streams ascending within each.

    `begins` counts from the first timestamp. Returns offsets by timestamp, streams and cells.
    """
    offsets = np.zeros(n_timestamps + 1, np.int64)
    for stream in range(begins.size):
        for row in range(starts[stream], starts[stream + 1]):
            if cells[row] != OUTSIDE:
                offsets[begins[stream] + row - starts[stream] + 1] += 1
    offsets = np.cumsum(offsets)
    place = offsets.copy()
    streams_out = np.empty(offsets[-1], np.int32)
    cells_out = np.empty(offsets[-1], np.uint16)
    for stream in range(begins.size):
        for row in range(starts[stream], starts[stream + 1]):
            if cells[row] != OUTSIDE:
                step = begins[stream] + row - starts[stream]
                streams_out[place[step]] = stream
                cells_out[place[step]] = cells[row]
                place[step] += 1
    return offsets, streams_out, cells_out


@njit(nogil=True, cache=True)
def distances_by_time(
    starts: npt.NDArray[np.int64],
    begins: npt.NDArray[np.int64],
    cells: npt.NDArray[np.uint16],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    offsets: npt.NDArray[np.int64],
) -> npt.NDArray[np.float32]:
    """Return how far each point lies from its stream's one before, as `group_by_time` orders them.

    A stream that begins, also after a point outside the box, came from nowhere: -1.
    """
    place = offsets.copy()
    out = np.empty(offsets[-1], np.float32)
    for stream in range(begins.size):
        for row in range(starts[stream], starts[stream + 1]):
            if cells[row] != OUTSIDE:
                step = begins[stream] + row - starts[stream]
                distance = -1.0
                if row > starts[stream] and cells[row - 1] != OUTSIDE:
                    distance = np.hypot(x[row] - x[row - 1], y[row] - y[row - 1])
                out[place[step]] = distance
                place[step] += 1
    return out


@njit(inline="always")
def _direction(down: int, right: int) -> int:
    """Return the index 0..8 of a step of at most one cell."""
    return 3 * (down + 1) + right + 1


@njit(nogil=True, cache=True)
def observe(
    t: int,
    streams: npt.NDArray[np.int32],
    cells: npt.NDArray[np.uint16],
    before: npt.NDArray[np.int32],
    key_of: npt.NDArray[np.int64],
    last_t: npt.NDArray[np.int64],
    last_cell: npt.NDArray[np.uint16],
    seen_t: npt.NDArray[np.int64],
    state_of: npt.NDArray[np.int32],
    slot_of: npt.NDArray[np.int64],
    entered: npt.NDArray[np.int64],
    key_entered: npt.NDArray[np.int64],
    addresses: npt.NDArray[np.uint64],
    move_index: npt.NDArray[np.int32],
    rows: npt.NDArray[np.int32],
    columns: npt.NDArray[np.int32],
    first_enter: int,
    first_quit: int,
    jump: int,
    gap: int,
    coin_key: np.uint64,
    slot_key: np.uint64,
    keys_out: npt.NDArray[np.int64],
    jumpers_out: npt.NDArray[np.int32],
    ages_out: npt.NDArray[np.int64],
) -> tuple[int, int, int]:
    """Update every device's state at t; return how many have a state, quit, and jumped.

    For devices that quit, `ages_out` receives how many timestamps they were present.

    `streams` and `cells` are those present at t, `before` the streams present at t - 1. A key
    with two states at t (a jump, or two trips that touch) keeps one of them by a fair coin. A
    negative first_enter says that entering and quitting are no states; a jump then leaves its
    device with nothing to say, and it reports null (-1): whether a device reports, and when, must
    never depend on where it went. For the same reason a jump draws no new slot.
    """
    n_keys = n_quits = n_jumps = 0
    endpoints = first_enter >= 0
    for i in range(streams.size + before.size):
        arriving = i < streams.size
        stream = streams[i] if arriving else before[i - streams.size]
        key = key_of[stream]
        state = other = -1
        reports = endpoints
        if not arriving:
            if last_t[stream] == t:
                continue
            ages_out[n_quits] = t - entered[stream]
            n_quits += 1
            state = first_quit + last_cell[stream]
        else:
            cell = int(cells[i])
            entering = last_t[stream] != t - 1
            if entering:
                entered[stream] = t
                slot_of[key] = t + np.int64(word_at(slot_key, addresses[key]) % np.uint64(gap))
            else:
                origin = int(last_cell[stream])
                down, right = rows[cell] - rows[origin], columns[cell] - columns[origin]
                jumps = abs(down) > 1 or abs(right) > 1
                if jumps:
                    jumpers_out[n_jumps] = stream
                    n_jumps += 1
                reports = True
                if not jumps:
                    state = move_index[origin, _direction(down, right)]
                elif jump == CLAMP:
                    down, right = min(max(down, -1), 1), min(max(right, -1), 1)
                    state = move_index[origin, _direction(down, right)]
                elif endpoints:
                    state = first_quit + origin
                    entering = jump == SPLIT
            if entering and endpoints:
                other = state
                state = first_enter + cell
            key_entered[key] = entered[stream]
            last_t[stream] = t
            last_cell[stream] = cell
        if not reports:
            continue
        if seen_t[key] == t:
            other = state_of[key]
        else:
            keys_out[n_keys] = key
            n_keys += 1
            seen_t[key] = t
        if other >= 0 and word_at(coin_key, addresses[key]) & _ONE:
            state = other
        state_of[key] = state
    return n_keys, n_quits, n_jumps
