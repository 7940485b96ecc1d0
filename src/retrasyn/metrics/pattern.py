"""Pattern F1: agreement on the most frequent short routes of a span (Sec. IV-B).

A pattern is a sequence of two to five consecutive cells of one stream. In patterns of three cells
or more no cell follows itself; a pattern of two may be a stay.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.metrics import kernels
from retrasyn.metrics.divergence import mean_known
from retrasyn.metrics.pair import Gridded, Pair
from retrasyn.metrics.spans import check_settings, random_spans

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories
    from retrasyn.space.grid import Grid

Codes = tuple["npt.NDArray[np.int64]", "npt.NDArray[np.int64]"]  # codes and their counts


def pattern_f1(
    real: Trajectories,
    synthetic: Trajectories,
    grid: Grid,
    *,
    span: int = 20,
    n_spans: int = 100,
    top: int = 100,
    seed: int = 0,
) -> float:
    """Return the mean F1 of the top patterns over random spans."""
    check_settings(top=top)
    pair = Pair.of(real, synthetic, grid)
    starts = random_spans(pair.n_timestamps, span, n_spans, seed=seed, purpose="pattern")
    return mean_known(pattern_f1s(pair, starts, span=span, top=top))


def pattern_f1s(
    pair: Pair, starts: npt.NDArray[np.int64], *, span: int, top: int
) -> npt.NDArray[np.float64]:
    """Return the F1 of each span; NaN where neither side has a pattern: [n_spans]."""
    table = _empty_table(pair.grid)
    return np.array(
        [
            f1(
                *(
                    most_frequent(_count(data, pair.grid, first, first + span, table), top)[0]
                    for data in (pair.real, pair.synthetic)
                )
            )
            for first in starts.tolist()
        ]
    )


def top_patterns(
    data: Gridded, grid: Grid, first: int, last: int, n: int
) -> list[tuple[tuple[int, ...], int]]:
    """Return the n most frequent patterns of timestamps first..last-1 with their counts."""
    codes, counts = most_frequent(_count(data, grid, first, last, _empty_table(grid)), n)
    return [
        (cells_of_pattern(code, grid), count)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True)
    ]


def most_frequent(counted: Codes, top: int) -> Codes:
    """Return the most frequent codes; ties go to the shorter, then to smaller cell numbers."""
    codes, counts = counted
    if codes.size > top:
        least = np.partition(counts, codes.size - top)[codes.size - top]
        tied = np.sort(codes[counts == least])
        above = counts > least
        codes = np.concatenate([codes[above], tied[: top - np.count_nonzero(above)]])
        counts = np.concatenate([counts[above], np.full(codes.size - above.sum(), least)])
    order = np.lexsort((codes, -counts))
    return codes[order], counts[order]


def f1(real: npt.NDArray[np.int64], synthetic: npt.NDArray[np.int64]) -> float:
    """Return the F1 score of two sets, NaN if both are empty.

    >>> f1(np.array([1, 2, 3]), np.array([3]))
    0.5
    """
    n = real.size + synthetic.size
    return 2.0 * np.intersect1d(real, synthetic).size / n if n else math.nan


def cells_of_pattern(code: int, grid: Grid) -> tuple[int, ...]:
    """Return the cells that a pattern code stands for."""
    size, n_directions = grid.n_cells * kernels.N_DIRECTIONS, 1
    while code >= size:
        code, size, n_directions = code - size, size * kernels.N_DIRECTIONS, n_directions + 1
    directions = []
    for _ in range(n_directions):
        code, direction = divmod(code, kernels.N_DIRECTIONS)
        directions.append(direction)
    cells = [code]
    for direction in reversed(directions):
        cells.append(int(grid.neighbour_table[cells[-1], direction]))
    return tuple(cells)


def _empty_table(grid: Grid) -> npt.NDArray[np.int32]:
    """Return a table of zero counts, one entry for every possible pattern on a grid."""
    sizes = kernels.N_DIRECTIONS ** np.arange(1, kernels.LONGEST)
    return np.zeros(grid.n_cells * int(sizes.sum()), np.int32)


def _count(data: Gridded, grid: Grid, first: int, last: int, table: npt.NDArray[np.int32]) -> Codes:
    """Count the patterns of a time slice; the table is left all zeros again."""
    codes = kernels.count_patterns(
        data.cells, data.starts, data.begins, first, last, grid.side, table
    )
    return codes, kernels.clear(table, codes)
