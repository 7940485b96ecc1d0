"""Hotspot NDCG: how well the ranking of a span's busiest cells is preserved (Sec. IV-B)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.metrics.density import cell_counts
from retrasyn.metrics.divergence import mean_known
from retrasyn.metrics.pair import Gridded, Pair
from retrasyn.metrics.spans import check_settings, random_spans

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories
    from retrasyn.space.grid import Grid


def hotspot_ndcg(
    real: Trajectories,
    synthetic: Trajectories,
    grid: Grid,
    *,
    span: int = 20,
    n_spans: int = 100,
    top: int = 10,
    seed: int = 0,
) -> float:
    """Return the mean NDCG of the top cells over random spans."""
    check_settings(top=top)
    pair = Pair.of(real, synthetic, grid)
    starts = random_spans(pair.n_timestamps, span, n_spans, seed=seed, purpose="hotspot")
    return mean_known(hotspot_ndcgs(pair, starts, span=span, top=top))


def hotspot_ndcgs(
    pair: Pair, starts: npt.NDArray[np.int64], *, span: int, top: int
) -> npt.NDArray[np.float64]:
    """Return the NDCG of each span; NaN where the real data has no points: [n_spans]."""
    return np.array(
        [
            ndcg(
                span_counts(pair.real, pair, first, span),
                span_counts(pair.synthetic, pair, first, span),
                top,
            )
            for first in starts.tolist()
        ]
    )


def span_counts(data: Gridded, pair: Pair, first: int, span: int) -> npt.NDArray[np.int64]:
    """Count the points of a span per cell: [n_cells]."""
    n_steps = min(span, pair.n_timestamps - first)
    counts = cell_counts(data, n_steps, pair.grid.n_cells, first=first)
    total: npt.NDArray[np.int64] = counts.sum(axis=0)
    return total


def busiest(counts: npt.NDArray[np.int64], top: int) -> npt.NDArray[np.int64]:
    """Return the cells with the most points, busiest first; ties go to the smaller cell number.

    >>> busiest(np.array([2, 0, 5, 2]), 10).tolist()
    [2, 0, 3]
    """
    order = np.argsort(-counts, kind="stable")[:top]
    return order[counts[order] > 0]


def ndcg(real: npt.NDArray[np.int64], synthetic: npt.NDArray[np.int64], top: int) -> float:
    """Return the NDCG of a ranking whose real top cells gain 1 / rank; NaN without real points."""
    ideal, found = busiest(real, top), busiest(synthetic, top)
    if not ideal.size:
        return math.nan
    gains = np.zeros(real.size)
    gains[ideal] = 1.0 / np.arange(1, ideal.size + 1)
    return _discounted(gains[found]) / _discounted(gains[ideal])


def _discounted(gains: npt.NDArray[np.float64]) -> float:
    return float((gains / np.log2(np.arange(2, gains.size + 2))).sum())
