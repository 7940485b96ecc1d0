"""Trips, patterns and sample streams for a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.metrics import kernels
from retrasyn.metrics.duration import duration_counts
from retrasyn.metrics.length import length_histograms
from retrasyn.metrics.pattern import cells_of_pattern, most_frequent
from retrasyn.metrics.trip import trip_counts
from retrasyn.report.packing import levels, pack
from retrasyn.report.streets import Ways

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.metrics.pair import Gridded, Pair
    from retrasyn.report.timeline import Timeline
    from retrasyn.roads.network import RoadNetwork
    from retrasyn.space import Grid


N_DRAWN = 8  # patterns drawn overall, and of every length


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """The patterns that occur on one side, as codes, with their counts."""

    codes: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def first(self, n: int, low: int = 0, high: int | None = None) -> npt.NDArray[np.int64]:
        """Return the codes of the most frequent patterns with low <= code < high."""
        inside = self.codes >= low
        if high is not None:
            inside &= self.codes < high
        return most_frequent((self.codes[inside], self.counts[inside]), n)[0]

    def look_up(self, codes: npt.NDArray[np.int64]) -> list[tuple[int | None, int]]:
        """Return (rank, count) of each pattern; ties share a rank, absent patterns have None."""
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
    """Return the top patterns of each side, and how many of them both sides share.

    A pattern is shown if it is among the first `N_DRAWN` overall or of its length, real or
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
    """Count the patterns over all timestamps; the table is left all zeros again."""
    codes = kernels.count_patterns(
        gridded.cells, gridded.starts, gridded.begins, 0, n_timestamps, grid.side, table
    )
    return Counted(codes, kernels.clear(table, codes))


N_LISTED = 10
N_SCATTERED = 400
_FINE = 2_000  # buckets of length, merged into bars
_MOST_BARS = 25
_TAIL = 0.99  # share of streams, on either side, covered by bars of their own


def trips(pair: Pair) -> dict[str, Any]:
    """Return the most frequent trips as (first cell, last cell, real count, synthetic count)."""
    n_cells = pair.grid.n_cells
    sides = [trip_counts(data, n_cells) for data in (pair.real, pair.synthetic)]
    codes = np.union1d(sides[0][0], sides[1][0])
    counts = np.zeros((2, codes.size), np.int64)
    for row, (own, n) in zip(counts, sides, strict=True):
        row[np.searchsorted(codes, own)] = n
    totals = counts.sum(axis=1)  # [2]
    shares = counts / np.maximum(totals, 1)[:, None]  # [2, n_trips]
    order = np.argsort(-shares.max(axis=0), kind="stable")[:N_SCATTERED]
    table = np.stack([*np.divmod(codes, n_cells), *counts], axis=1)  # [n_trips, 4]
    by_real = np.lexsort((codes, -counts[0]))[:N_LISTED]
    return {
        "totals": totals,
        "n_trips": codes.size,
        "first": table[by_real[counts[0, by_real] > 0]],
        "scattered": table[order],
    }


def lengths(pair: Pair) -> dict[str, Any]:
    """Return the histogram of travelled lengths, in the unit of the coordinates."""
    fine, real, synthetic = length_histograms(pair, _FINE)
    bars = gather_bars(real, synthetic)
    return bars | {"edges": bars["edges"] * fine[1]}


def durations(pair: Pair) -> dict[str, Any]:
    """Return the histogram of stream durations, in timestamps."""
    real, synthetic = duration_counts(pair)
    bars = gather_bars(real[1:], synthetic[1:])  # no stream lasts 0 timestamps
    return bars | {"edges": bars["edges"] + 1}


def gather_bars(real: npt.NDArray[np.int64], synthetic: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Merge buckets into bars of equal width; a long tail goes into the last bar.

    `edges` are bucket numbers, one more than there are bars.
    """
    reached = np.minimum(*(np.cumsum(side) / max(side.sum(), 1) for side in (real, synthetic)))
    usual = int(np.argmax(reached >= _TAIL)) + 1
    width = -(-usual // _MOST_BARS)
    edges = np.arange(0, usual + width, width)
    n_left = real.size - int(edges[-1])
    is_open = n_left > width and bool(real[edges[-1] :].any() or synthetic[edges[-1] :].any())
    if is_open:
        edges = np.append(edges, real.size)
    elif 0 < n_left <= width:
        edges = np.append(edges, edges[-1] + width)
    counts = [np.add.reduceat(side, edges[:-1]) for side in (real, synthetic)]
    return {"edges": edges, "real": counts[0], "synthetic": counts[1], "open": is_open}


N_STILL = 60
N_MOVING = 40  # streams present at any time, approximately
MAX_STREAMS = 5_000


def sample(
    pair: Pair, timeline: Timeline, roads: RoadNetwork | None, *, seed: int
) -> dict[str, Any]:
    """Sample streams by the seed, preferring two points or more; keep one point per frame.

    The first `N_STILL` of each side appear in the still picture. Only synthetic ones are in the
    animation too, so that the page has no more real trajectories than one can look at. With roads,
    the corners between points are on the fastest way along them.
    """
    ways = None if roads is None else Ways(roads, pair.grid.box)
    return {
        "real": _sampled(pair.real, pair.grid, timeline, ways, n_moving=0, seed=seed),
        "synthetic": _sampled(
            pair.synthetic, pair.grid, timeline, ways, n_moving=N_MOVING, seed=seed
        ),
    }


def _sampled(
    data: Gridded, grid: Grid, timeline: Timeline, ways: Ways | None, *, n_moving: int, seed: int
) -> dict[str, Any]:
    """Return the sample of one side, packed."""
    chosen = _choose(data.lengths, n_moving * timeline.n_timestamps, seed)
    rows, streams, frames = _points(data, chosen, timeline)
    n_points = np.bincount(streams, minlength=chosen.size)
    first = np.cumsum(n_points) - n_points
    x, y = data.x[rows], data.y[rows]
    n_corners = np.zeros(rows.size, np.int64)
    if ways is not None:
        follows = np.diff(streams, prepend=-1) == 0
        x, y, n_corners = ways.with_corners(x, y, follows)
    return {
        "n_still": min(N_STILL, chosen.size),
        "n_streams": chosen.size,
        "n_points": pack(n_points),
        "begins": pack(frames[first]),
        "corners": pack(n_corners),  # before every point
        "x": pack(levels(x, grid.box, 0)),
        "y": pack(levels(y, grid.box, 1)),
    }


def _choose(lengths: npt.NDArray[np.int64], n_rows: int, seed: int) -> npt.NDArray[np.int64]:
    """Draw `N_STILL` streams, and more until they have so many points."""
    candidates = np.flatnonzero(lengths > 1)
    if not candidates.size:
        candidates = np.arange(lengths.size)
    generator = np.random.default_rng(seed)
    n = min(candidates.size, MAX_STREAMS)
    drawn = candidates[generator.choice(candidates.size, n, replace=False)]
    n_points = np.cumsum(lengths[drawn])
    enough = int(np.searchsorted(n_points, n_rows)) + 1
    return drawn[: max(enough, N_STILL)]


def _points(
    data: Gridded, chosen: npt.NDArray[np.int64], timeline: Timeline
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the kept rows, the index of their stream in the sample, and their frame."""
    lengths = data.lengths[chosen]
    first = np.cumsum(lengths) - lengths  # [n_chosen]
    streams = np.repeat(np.arange(chosen.size), lengths)
    steps = np.arange(streams.size) - first[streams]
    frames = (data.begins[chosen][streams] + steps) // timeline.width
    fresh = (steps == 0) | (np.diff(frames, prepend=-1) != 0)
    rows = data.starts[chosen][streams] + steps
    return rows[fresh], streams[fresh], frames[fresh]
