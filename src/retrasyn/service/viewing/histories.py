"""Histories of cells and boxes, in the release and in its replicas alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.metrics.divergence import jsd
from retrasyn.service.viewing.tallies import N_DIRECTIONS, STAYING, Means, neighbour

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.service.viewing.source import ReleaseSource
    from retrasyn.service.viewing.view import CachedSource
    from retrasyn.space import Box


def box_counts(
    source: ReleaseSource, box: Box, timestamps: Sequence[int], over: int = 1
) -> tuple[list[int], Means]:
    """Count points in a box, edges included, on average over so many timestamps.

    Return the timestamps that exist, and counts in the release and in each replica: [1 + B, n].
    """
    there, counts = [], []
    for t in timestamps:
        places = source.places_at(t)
        if places is None:
            continue
        replicas = ((points.x, points.y) for points in source.replicas_at(t))
        there.append(t)
        counts.append([_inside(box, x, y) for x, y in (places, *replicas)])
    return there, averaged(_table(counts), there, over)


def _inside(box: Box, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> int:
    inside = (x >= box.x0) & (x <= box.x1) & (y >= box.y0) & (y <= box.y1)  # [n_points]
    return int(np.count_nonzero(inside))


def averaged(table: Means, timestamps: Sequence[int], over: int) -> Means:
    """Return averages over the timestamps up to each one; NaN counts for nothing.

    >>> averaged(np.array([[1.0, 3.0, np.nan, 8.0]]), [0, 1, 2, 4], 2).tolist()
    [[1.0, 2.0, 3.0, 8.0]]
    """
    known = ~np.isnan(table)
    ends = np.arange(len(timestamps)) + 1
    begins = np.searchsorted(timestamps, np.array(timestamps, np.int64) - over, side="right")

    def sums(values: npt.NDArray[Any]) -> Means:
        total = np.pad(np.cumsum(values, axis=1, dtype=np.float64), ((0, 0), (1, 0)))
        return total[:, ends] - total[:, begins]

    n = sums(known)
    return np.divide(sums(np.where(known, table, 0.0)), n, out=np.full_like(n, np.nan), where=n > 0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellCounts:
    """Points of a cell, and moves over its edges, in the release and in each replica.

    NaN where the timestamp before is not there, or a replica not.
    """

    cell: int
    t: list[int]
    n: Means  # [1 + B, n_timestamps]
    inflow: Means  # from other cells
    outflow: Means  # to other cells
    neighbours: list[int]
    destinations: Means  # [1 + B, n_neighbours], summed over all timestamps
    origins: Means


def cell_history(
    view: CachedSource, cell: int, timestamps: Sequence[int], over: int = 1
) -> CellCounts:
    """Return the history of a cell, on average over so many timestamps."""
    side = view.source.grid.side
    around = [d for d in range(N_DIRECTIONS) if d != STAYING]
    targets = {d: found for d in around if (found := neighbour(cell, d, side)) is not None}
    out, cells = list(targets), list(targets.values())
    back = [N_DIRECTIONS - 1 - d for d in out]  # opposite directions add up to 8
    there, n, coming, leaving = [], [], [], []
    for t in timestamps:
        summary, tally, flows = view.source.summary(t), view.tally(t), view.flows(t)
        if summary is None:
            continue
        there.append(t)
        n.append([summary["cells"][cell]] if tally is None else tally.cells[:, cell].tolist())
        coming.append(_NOTHING if flows is None else flows[:, cells, back].astype(np.float64))
        leaving.append(_NOTHING if flows is None else flows[:, cell, out].astype(np.float64))
    return CellCounts(
        cell=cell,
        t=there,
        n=averaged(_table(n), there, over),
        inflow=averaged(_table([moves.sum(axis=1).tolist() for moves in coming]), there, over),
        outflow=averaged(_table([moves.sum(axis=1).tolist() for moves in leaving]), there, over),
        neighbours=cells,
        destinations=_sum(leaving, len(cells)),
        origins=_sum(coming, len(cells)),
    )


_NOTHING = np.empty((0, 0))


def _table(columns: Sequence[Sequence[float]]) -> Means:
    """Return a column for each timestamp, as long as the longest: [1 + B, n]."""
    table = np.full((max(map(len, columns), default=1) or 1, len(columns)), np.nan)
    for place, column in enumerate(columns):
        table[: len(column), place] = column
    return table


def _sum(parts: Sequence[Means], n: int) -> Means:
    """Add moves of all timestamps that have some, of the replicas that all of them have."""
    known = [part for part in parts if len(part)]
    fewest = min(map(len, known), default=1)
    return sum((part[:fewest] for part in known), start=np.zeros((fewest, n)))


def density_errors(
    real: ReleaseSource, synthetic: ReleaseSource, timestamps: Sequence[int]
) -> list[float | None]:
    """Return the divergence of points per cell at each timestamp; None where nobody is."""
    found = [jsd(_cells(real, t), _cells(synthetic, t)) for t in timestamps]
    return [None if math.isnan(error) else error for error in found]


def _cells(source: ReleaseSource, t: int) -> list[int]:
    """Return the points per cell; zeros for a timestamp that does not exist."""
    summary = source.summary(t)
    return [0] * source.grid.n_cells if summary is None else list(summary["cells"])
