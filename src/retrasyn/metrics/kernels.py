"""Compiled counting kernels for the metrics.

Streams are columns sorted by stream: the points of stream s are rows starts[s]..starts[s+1]-1, at
timestamps begins[s], begins[s]+1, ... A time slice is first..last-1.
"""

import math

import numpy as np
import numpy.typing as npt
from numba import njit

LONGEST = 5  # cells in the longest pattern
_SHORTEST = 2  # cells in the shortest one; only there may a cell follow itself
N_DIRECTIONS = 9  # neighbours of a cell, itself included, in ascending order
_STAY = 4


@njit(inline="always")
def _overlap(begin: int, n: int, first: int, last: int) -> tuple[int, int]:
    """Return the range of a stream's n points that lie in a time slice."""
    return max(first - begin, 0), min(last - begin, n)


@njit(inline="always")
def _direction(origin: np.int64, destination: np.int64, side: int) -> np.int64:
    """Return a neighbour's index (0..8) in the neighbour table of its cell."""
    down = destination // side - origin // side
    right = destination % side - origin % side
    return 3 * (down + 1) + right + 1


@njit(nogil=True, cache=True)
def find_jumps(
    cells: npt.NDArray[np.uint16], starts: npt.NDArray[np.int64], side: int
) -> npt.NDArray[np.bool_]:
    """Mark the points that are not in or next to the cell of their predecessor: [n_points]."""
    jumps = np.zeros(cells.size, np.bool_)
    for s in range(starts.size - 1):
        for i in range(starts[s] + 1, starts[s + 1]):
            if cells[i] != cells[i - 1]:
                a, b = np.int64(cells[i - 1]), np.int64(cells[i])
                jumps[i] = abs(a // side - b // side) > 1 or abs(a % side - b % side) > 1
    return jumps


@njit(nogil=True, cache=True)
def count_cells(
    cells: npt.NDArray[np.uint16],
    starts: npt.NDArray[np.int64],
    begins: npt.NDArray[np.int64],
    first: int,
    last: int,
    n_cells: int,
) -> npt.NDArray[np.int64]:
    """Count points per timestamp of a slice and per cell: [last - first, n_cells]."""
    counts = np.zeros((last - first, n_cells), np.int64)
    for s in range(begins.size):
        low, high = _overlap(begins[s], starts[s + 1] - starts[s], first, last)
        for k in range(low, high):
            counts[begins[s] + k - first, cells[starts[s] + k]] += 1
    return counts


@njit(nogil=True, cache=True)
def count_moves(
    cells: npt.NDArray[np.uint16],
    starts: npt.NDArray[np.int64],
    begins: npt.NDArray[np.int64],
    first: int,
    last: int,
    side: int,
) -> npt.NDArray[np.int64]:
    """Count moves per arrival timestamp, origin cell and direction: [last - first, n_cells * 9]."""
    counts = np.zeros((last - first, side * side * N_DIRECTIONS), np.int64)
    for s in range(begins.size):
        low, high = _overlap(begins[s], starts[s + 1] - starts[s], first, last)
        for k in range(max(low, 1), high):
            i = starts[s] + k
            a, b = np.int64(cells[i - 1]), np.int64(cells[i])
            place = N_DIRECTIONS * a + (_STAY if a == b else _direction(a, b, side))
            counts[begins[s] + k - first, place] += 1
    return counts


@njit(nogil=True, cache=True)
def divergences(
    real: npt.NDArray[np.int64], synthetic: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return the Jensen-Shannon divergence of each pair of rows, in nats: [n_rows].

    ln 2 where one row has no mass, NaN where neither has.
    """
    found = np.empty(real.shape[0])
    for row in range(real.shape[0]):
        n_real, n_synthetic = real[row].sum(), synthetic[row].sum()
        if n_real == 0 or n_synthetic == 0:
            found[row] = math.nan if n_real == n_synthetic else math.log(2.0)
            continue
        total = 0.0
        for k in range(real.shape[1]):
            if real[row, k] == 0 and synthetic[row, k] == 0:
                continue
            p, q = real[row, k] / n_real, synthetic[row, k] / n_synthetic
            m = 0.5 * (p + q)
            total += p * math.log(p / m) if p > 0.0 else 0.0
            total += q * math.log(q / m) if q > 0.0 else 0.0
        found[row] = max(0.5 * total, 0.0)
    return found


@njit(nogil=True, cache=True)
def count_inside(
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    starts: npt.NDArray[np.int64],
    begins: npt.NDArray[np.int64],
    first: int,
    last: int,
    box: tuple[float, float, float, float],
) -> int:
    """Count the points of a time slice that lie in a box, edges included."""
    x0, y0, x1, y1 = box
    n_inside = 0
    for s in range(begins.size):
        low, high = _overlap(begins[s], starts[s + 1] - starts[s], first, last)
        for i in range(starts[s] + low, starts[s] + high):
            n_inside += (x0 <= x[i]) & (x[i] <= x1) & (y0 <= y[i]) & (y[i] <= y1)
    return n_inside


@njit(nogil=True, cache=True)
def count_patterns(
    cells: npt.NDArray[np.uint16],
    starts: npt.NDArray[np.int64],
    begins: npt.NDArray[np.int64],
    first: int,
    last: int,
    side: int,
    counts: npt.NDArray[np.int32],
) -> npt.NDArray[np.int64]:
    """Count every pattern of a time slice in `counts`; return the codes that occur, unsorted.

    A pattern of n cells is encoded as its first cell followed by n-1 directions, as a number in
    base nine; codes are grouped by length, shorter patterns first. They therefore ascend by
    length and then by cell numbers.
    """
    n_cells = side * side
    n_points = 0
    for s in range(begins.size):
        low, high = _overlap(begins[s], starts[s + 1] - starts[s], first, last)
        n_points += max(0, high - low)
    seen = np.empty(min(counts.size, (LONGEST - 1) * n_points), np.int64)
    n_seen = 0
    for s in range(begins.size):
        low, high = _overlap(begins[s], starts[s + 1] - starts[s], first, last)
        for k in range(low, high - 1):
            i = starts[s] + k
            code, offset, size = np.int64(cells[i]), 0, n_cells
            for n in range(_SHORTEST, min(LONGEST, high - k) + 1):
                a, b = np.int64(cells[i + n - 2]), np.int64(cells[i + n - 1])
                size *= N_DIRECTIONS
                code = N_DIRECTIONS * code + (_STAY if a == b else _direction(a, b, side))
                if counts[offset + code] == 0:
                    seen[n_seen] = offset + code
                    n_seen += 1
                counts[offset + code] += 1
                offset += size
                still = k + n < high and cells[i + n] == cells[i + n - 1]
                if a == b or still:  # a longer pattern would contain a stay
                    break
    return seen[:n_seen]


@njit(nogil=True, cache=True)
def clear(counts: npt.NDArray[np.int32], codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the counts of the given codes and reset them to zero: [n_codes]."""
    taken = np.empty(codes.size, np.int64)
    for k in range(codes.size):
        taken[k] = counts[codes[k]]
        counts[codes[k]] = 0
    return taken


@njit(nogil=True, cache=True)
def count_visits(
    cells: npt.NDArray[np.uint16], starts: npt.NDArray[np.int64], n_cells: int
) -> npt.NDArray[np.int64]:
    """Count the streams that visit each cell: [n_cells]."""
    visits = np.zeros(n_cells, np.int64)
    latest = np.full(n_cells, -1, np.int64)
    for s in range(starts.size - 1):
        for i in range(starts[s], starts[s + 1]):
            if latest[cells[i]] != s:
                latest[cells[i]] = s
                visits[cells[i]] += 1
    return visits


@njit(nogil=True, cache=True)
def count_agreement(real: npt.NDArray[np.int64], synthetic: npt.NDArray[np.int64]) -> int:
    """Return concordant minus discordant pairs; a tie in the synthetic counts is discordant."""
    agreement = 0
    for i in range(real.size):
        for j in range(i):
            if real[i] != real[j]:
                same = synthetic[i] != synthetic[j] and (
                    (real[i] > real[j]) == (synthetic[i] > synthetic[j])
                )
                agreement += 1 if same else -1
    return agreement


@njit(nogil=True, cache=True)
def travelled(
    x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], starts: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return the length of every stream's path: [n_streams]."""
    lengths = np.zeros(starts.size - 1)
    for s in range(lengths.size):
        for i in range(starts[s] + 1, starts[s + 1]):
            lengths[s] += math.hypot(x[i] - x[i - 1], y[i] - y[i - 1])
    return lengths
