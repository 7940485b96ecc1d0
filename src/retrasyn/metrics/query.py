"""Query error: range counts, points in a rectangle during a span of time (Sec. IV-B)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.metrics import kernels
from retrasyn.metrics.divergence import mean_known
from retrasyn.metrics.pair import Gridded, Pair
from retrasyn.metrics.spans import random_spans
from retrasyn.randomness.words import address

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories
    from retrasyn.space.grid import Box, Grid

_PARTS = 9  # a query covers 1/9 of the box's area
_SANITY = 0.01  # floor of the denominator for small counts, as a share of a span's points


def query_error(
    real: Trajectories,
    synthetic: Trajectories,
    grid: Grid,
    *,
    span: int = 20,
    n_queries: int = 100,
    seed: int = 0,
) -> float:
    """Return the mean relative error of random queries."""
    pair = Pair.of(real, synthetic, grid)
    return mean_known(query_errors(pair, span=span, n_queries=n_queries, seed=seed))


def query_errors(pair: Pair, *, span: int, n_queries: int, seed: int) -> npt.NDArray[np.float64]:
    """Return the relative error of each random query: [n_queries]."""
    starts, boxes = random_queries(pair, span, n_queries, seed)
    last = np.minimum(starts + span, pair.n_timestamps)
    real, synthetic = (_count(data, starts, last, boxes) for data in (pair.real, pair.synthetic))
    n_steps = min(span, pair.n_timestamps)
    sanity = _SANITY * pair.real.n_points / pair.n_timestamps * n_steps
    if sanity == 0:  # no real points to query
        return np.full(n_queries, np.nan)
    return relative_errors(real, synthetic, sanity)


def random_queries(
    pair: Pair, span: int, n: int, seed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Draw first timestamps [n] and query rectangles inside the box [n, 4]: x0, y0, x1, y1."""
    starts = random_spans(pair.n_timestamps, span, n, seed=seed, purpose="query span")
    return starts, random_squares(pair.grid.box, n, seed)


def random_squares(box: Box, n: int, seed: int) -> npt.NDArray[np.float64]:
    """Draw squares with 1/9 of the box's area, clipped to its sides if longer: [n, 4]."""
    sides = np.array([box.x1 - box.x0, box.y1 - box.y0])
    lengths = np.minimum(math.sqrt(sides[0] * sides[1] / _PARTS), sides)
    draw = np.random.default_rng(address(seed, 0, "query square"))
    lower = np.array([box.x0, box.y0]) + draw.random((n, 2)) * (sides - lengths)
    upper = np.where(lengths < sides, lower + lengths, np.inf)  # rounding must not cut off an edge
    return np.hstack([lower, np.minimum(upper, [box.x1, box.y1])])


def relative_errors(
    real: npt.NDArray[np.int64], synthetic: npt.NDArray[np.int64], sanity: float
) -> npt.NDArray[np.float64]:
    """Return |real - synthetic| / max(real, sanity bound)."""
    errors: npt.NDArray[np.float64] = np.abs(real - synthetic) / np.maximum(real, sanity)
    return errors


def _count(
    data: Gridded,
    starts: npt.NDArray[np.int64],
    lasts: npt.NDArray[np.int64],
    boxes: npt.NDArray[np.float64],
) -> npt.NDArray[np.int64]:
    counts = [
        kernels.count_inside(data.x, data.y, data.starts, data.begins, first, last, tuple(box))
        for first, last, box in zip(starts.tolist(), lasts.tolist(), boxes.tolist(), strict=True)
    ]
    return np.array(counts, np.int64)
