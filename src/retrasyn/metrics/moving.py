"""Streaming metrics, updated as the stream goes on: the latest span, compared as a pair.

Density and transition error are those of the newest timestamp; query error, hotspot NDCG and
pattern F1 those of the latest span. The same functions compute them here and for whole files.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from retrasyn.metrics.density import density_errors
from retrasyn.metrics.divergence import mean_known
from retrasyn.metrics.hotspot import hotspot_ndcgs
from retrasyn.metrics.pair import Gridded, Pair, UncutStreams, cut_at_jumps
from retrasyn.metrics.pattern import pattern_f1s
from retrasyn.metrics.query import query_errors
from retrasyn.metrics.spans import check_settings
from retrasyn.metrics.transition import transition_errors

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.space.grid import Grid

_FIRST = np.zeros(1, np.int64)


class Points(NamedTuple):
    """The ids and positions present at one timestamp."""

    ids: npt.NDArray[np.int64]  # [n_active], unique
    x: npt.NDArray[np.float64]  # [n_active]
    y: npt.NDArray[np.float64]  # [n_active]


@dataclass(frozen=True, slots=True)
class StreamingScores:
    """Scores of the latest timestamp and span; NaN where there is nothing to compare."""

    density_error: float
    transition_error: float
    query_error: float
    hotspot_ndcg: float
    pattern_f1: float


class MovingScores:
    """Scores a synthetic stream against the real one, timestamp by timestamp.

    >>> from retrasyn.space.grid import Box, Grid
    >>> scores = MovingScores(Grid(Box(0, 0, 4, 4), side=4), span=2)
    >>> here = Points(np.array([1, 2]), np.array([0.5, 3.5]), np.array([0.5, 0.5]))
    >>> scores.update(here, here).density_error
    0.0
    >>> scores.update(here, here).pattern_f1
    1.0
    """

    def __init__(
        self,
        grid: Grid,
        *,
        span: int = 20,
        seed: int = 0,
        n_queries: int = 100,
        top_cells: int = 10,
        top_patterns: int = 100,
    ) -> None:
        check_settings(
            span=span, seed=seed, queries=n_queries, top_cells=top_cells, top_patterns=top_patterns
        )
        self.grid, self.span, self.seed = grid, span, seed
        self.n_queries, self.top_cells, self.top_patterns = n_queries, top_cells, top_patterns
        self._recent: deque[tuple[Points, Points]] = deque(maxlen=max(span, 2))  # a move needs two
        self._n_seen = 0

    def update(self, real: Points, synthetic: Points) -> StreamingScores:
        """Add the next timestamp; scores over a span are NaN until one whole span has passed."""
        self._recent.append((real, synthetic))
        self._n_seen += 1
        query = hotspot = pattern = math.nan
        if self._n_seen >= self.span:
            pair = self.latest(self.span)
            query = mean_known(
                query_errors(pair, span=self.span, n_queries=self.n_queries, seed=self.seed)
            )
            hotspot = hotspot_ndcgs(pair, _FIRST, span=self.span, top=self.top_cells)[0]
            pattern = pattern_f1s(pair, _FIRST, span=self.span, top=self.top_patterns)[0]
        newest = self.latest(2)
        since = newest.n_timestamps - 1
        return StreamingScores(
            density_error=float(density_errors(newest, since=since)[0]),
            transition_error=float(transition_errors(newest, since=since)[0]),
            query_error=query,
            hotspot_ndcg=float(hotspot),
            pattern_f1=float(pattern),
        )

    def latest(self, span: int) -> Pair:
        """Return the last `span` timestamps as a pair; timestamp 0 is the oldest of them."""
        steps = list(self._recent)[-span:]
        real, synthetic = (_gather([step[side] for step in steps], self.grid) for side in (0, 1))
        return Pair(
            real=real,
            synthetic=synthetic,
            grid=self.grid,
            first_t=self._n_seen - len(steps),
            n_timestamps=len(steps),
            n_streams_real=real.n_streams,
            n_streams_synthetic=synthetic.n_streams,
            notes=(),
        )


def _gather(steps: list[Points], grid: Grid) -> Gridded:
    """Turn points by timestamp into streams; a stream with a gap continues as a new one."""
    ids, x, y = (np.concatenate(columns) for columns in zip(*steps, strict=True))
    t = np.repeat(np.arange(len(steps)), [step.ids.size for step in steps])
    order = np.argsort(ids, kind="stable")  # keeps the points of each stream in time order
    ids, t = ids[order], t[order]
    follows = (ids[1:] == ids[:-1]) & (t[1:] == t[:-1] + 1)
    starts = np.flatnonzero(np.concatenate([[True], ~follows, [True]]) if ids.size else [True])
    return cut_at_jumps(UncutStreams(t[starts[:-1]], starts, x[order], y[order]), grid)
