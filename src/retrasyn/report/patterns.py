"""The most frequent patterns of the whole time, real beside synthetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.metrics import kernels
from retrasyn.metrics.pattern import cells_of_pattern, most_frequent

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.metrics.pair import Gridded, Pair
    from retrasyn.space import Grid

N_DRAWN = 8  # of all, and of every length


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """All patterns of one side that occur, as codes, and how often each does."""

    codes: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def first(self, n: int, low: int = 0, high: int | None = None) -> npt.NDArray[np.int64]:
        """Return the codes of the most frequent patterns with low <= code < high."""
        inside = self.codes >= low
        if high is not None:
            inside &= self.codes < high
        return most_frequent((self.codes[inside], self.counts[inside]), n)[0]

    def look_up(self, codes: npt.NDArray[np.int64]) -> list[tuple[int | None, int]]:
        """Return rank and count of each pattern; equals share a rank, the absent have none."""
        here = np.isin(self.codes, codes)
        known = dict(zip(self.codes[here].tolist(), self.counts[here].tolist(), strict=True))
        ascending = np.sort(self.counts)
        counts = [known.get(code, 0) for code in codes.tolist()]
        ranks = ascending.size + 1 - np.searchsorted(ascending, counts, side="right")
        return [
            (rank if count else None, count)
            for rank, count in zip(ranks.tolist(), counts, strict=True)
        ]


def patterns(pair: Pair, *, top_patterns: int) -> dict[str, Any]:
    """Return the first patterns of either side, and how many of the top ones both share.

    A pattern is drawn if it is among the first `N_DRAWN` of all or of its length, real or
    synthetic.
    """
    sizes = pair.grid.n_cells * kernels.N_DIRECTIONS ** np.arange(1, kernels.LONGEST)
    table = np.zeros(int(sizes.sum()), np.int32)
    real, synthetic = (
        _count(gridded, pair.grid, pair.n_timestamps, table)
        for gridded in (pair.real, pair.synthetic)
    )
    tops = [side.first(top_patterns) for side in (real, synthetic)]
    ends = np.cumsum(sizes).tolist()  # shorter patterns have smaller codes
    drawn = np.unique(
        np.concatenate(
            [
                side.first(N_DRAWN, low, high)
                for side in (real, synthetic)
                for low, high in [(0, None), *zip([0, *ends], ends, strict=False)]
            ]
        )
    )
    rows = zip(drawn.tolist(), real.look_up(drawn), synthetic.look_up(drawn), strict=True)
    return {
        "n": top_patterns,
        "shared": np.intersect1d(tops[0], tops[1]).size,
        "listed": max(top.size for top in tops),
        "rows": [
            {"cells": cells_of_pattern(code, pair.grid), "real": own, "synthetic": other}
            for code, own, other in rows
        ],
    }


def _count(
    gridded: Gridded, grid: Grid, n_timestamps: int, table: npt.NDArray[np.int32]
) -> Counted:
    """Count the patterns of the whole time, leaving the table as empty as it was."""
    codes = kernels.count_patterns(
        gridded.cells, gridded.starts, gridded.begins, 0, n_timestamps, grid.side, table
    )
    return Counted(codes, kernels.clear(table, codes))
