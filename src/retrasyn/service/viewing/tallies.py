"""What is counted at a timestamp, in the release and in each of its replicas alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from retrasyn.service.viewing.source import Summary, TimestampPoints
from retrasyn.space import Grid

N_DIRECTIONS = 9
STAYING = 4
"""The direction of streams that stay: a direction is 3 (row step + 1) + column step + 1."""
Flows = npt.NDArray[np.uint32]
_STEPS = np.array([(d % 3 - 1, d // 3 - 1) for d in range(N_DIRECTIONS)], np.float32)  # [9, 2]
Counts = npt.NDArray[np.float32]
Means = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The points of one timestamp and their cells."""

    points: TimestampPoints
    cells: npt.NDArray[np.uint16]  # [n_points]

    @classmethod
    def on(cls, grid: Grid, points: TimestampPoints) -> Placed:
        """Find the cells of points."""
        return cls(points, grid.cells_of(points.x, points.y))

    @property
    def n_bytes(self) -> int:
        """Size in memory."""
        return self.points.n_bytes + self.cells.nbytes


def went_on(before: Placed, after: Placed) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return the place of each later stream among the earlier ones, and whether it is there."""
    old, new = before.points.ids, after.points.ids
    if not old.size:
        return np.zeros(new.size, np.intp), np.zeros(new.size, np.bool_)
    place = np.minimum(np.searchsorted(old, new), old.size - 1)  # [n_points]
    return place, old[place] == new


def count_flows(before: Placed, after: Placed, side: int) -> Flows:
    """Count moves by origin and direction: [n_cells, 9].

    Streams that were born or ended in between move nowhere. Neither does one that jumps beyond a
    neighbour, which only recorded data does: the figures cut it into two streams there, too.
    """
    place, stayed = went_on(before, after)
    origin = before.cells[place[stayed]].astype(np.int32)
    target = after.cells[stayed].astype(np.int32)
    row, column = target // side - origin // side, target % side - origin % side
    near = (np.abs(row) <= 1) & (np.abs(column) <= 1)
    code = (origin * N_DIRECTIONS + 3 * (row + 1) + column + 1)[near]
    counts = np.bincount(code, minlength=side * side * N_DIRECTIONS)
    return counts.astype(np.uint32).reshape(side * side, N_DIRECTIONS)


def neighbour(cell: int, direction: int, side: int) -> int | None:
    """Return the cell that lies in a direction; None off the grid.

    >>> neighbour(0, 8, 3), neighbour(0, 0, 3), neighbour(4, 4, 3)
    (4, None, 4)
    """
    row, column = cell // side + direction // 3 - 1, cell % side + direction % 3 - 1
    on_grid = 0 <= row < side and 0 <= column < side
    return row * side + column if on_grid else None


@dataclass(frozen=True, slots=True, eq=False)
class TimestampTally:
    """What is counted at one timestamp: in the release first, then in every replica."""

    totals: Counts  # [1 + B, 3]: points, streams that began, streams that ended
    cells: Counts  # [1 + B, n_cells]
    moves: Counts | None
    """[1 + B, n_cells, 2]: columns and rows that streams moved on from a cell, on balance."""

    @classmethod
    def of(
        cls, summary: Summary, now: Sequence[Placed], before: Sequence[Placed], flows: Flows | None
    ) -> TimestampTally:
        """Count points by cell, and put moves together: flows are [1 + B, n_cells, 9]."""
        known = [summary[name] for name in ("n_points", "n_born", "n_ended")]
        # Without the timestamp before, nothing is known of who began in a replica.
        pairs = zip(before[1:], now[1:], strict=False)
        rows = [_totals(*pair) for pair in pairs] or [[n.cells.size, *known[1:]] for n in now[1:]]
        n_cells = len(summary["cells"])
        return cls(
            np.array([known, *rows], np.float32),
            np.array([np.bincount(one.cells, minlength=n_cells) for one in now], np.float32),
            None if flows is None else flows.astype(np.float32) @ _STEPS,
        )

    @property
    def n_bytes(self) -> int:
        """Size in memory."""
        moves = 0 if self.moves is None else self.moves.nbytes
        return self.totals.nbytes + self.cells.nbytes + moves


def _totals(before: Placed, after: Placed) -> list[int]:
    """Count points, streams that began and streams that ended."""
    n_stayed = int(np.count_nonzero(went_on(before, after)[1]))
    n, n_before = after.cells.size, before.cells.size
    return [n, n - n_stayed, n_before - n_stayed]


@dataclass(frozen=True, slots=True, eq=False)
class Average:
    """Tallies of some timestamps, averaged; of as many replicas as all of them have."""

    n_rounds: int
    totals: Means  # [1 + B, 3]
    cells: Means  # [1 + B, n_cells]
    moves: Means | None  # [1 + B, n_cells, 2], over the timestamps that have them

    @classmethod
    def of(cls, tallies: Sequence[TimestampTally]) -> Average:
        """Average some tallies, one at least."""
        moves = [tally.moves for tally in tallies if tally.moves is not None]
        return cls(
            len(tallies),
            _mean([tally.totals for tally in tallies]),
            _mean([tally.cells for tally in tallies]),
            _mean(moves) if moves else None,
        )


def _mean(counts: Sequence[Counts]) -> Means:
    fewest = min(map(len, counts))
    total = np.zeros_like(counts[0][:fewest], np.float64)
    for one in counts:
        total += one[:fewest]
    return total / len(counts)
