"""Moves from one timestamp to the next: how many streams went from each cell to which neighbour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from retrasyn.service.viewing.source import Points
from retrasyn.space import Grid

N_DIRECTIONS = 9
STAYING = 4
"""The direction of those who stay: a direction is 3 (row step + 1) + column step + 1."""
Flows = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The points of one timestamp and their cells."""

    points: Points
    cells: npt.NDArray[np.uint16]  # [n_points]

    @classmethod
    def on(cls, grid: Grid, points: Points) -> Placed:
        """Put points on a grid."""
        return cls(points, grid.cells_of(points.x, points.y))

    @property
    def n_bytes(self) -> int:
        """How much room they take."""
        return self.points.n_bytes + self.cells.nbytes


def count_flows(before: Placed, after: Placed, side: int) -> Flows:
    """Count moves by origin and direction: [n_cells, 9].

    Streams that were born or ended in between move nowhere. Neither does one that jumps beyond a
    neighbour, which only recorded data does: the figures cut it into two streams there, too.
    """
    old, new = before.points.ids, after.points.ids
    empty = np.zeros((side * side, N_DIRECTIONS), np.uint32)  # [n_cells, 9]
    if not old.size or not new.size:
        return empty
    place = np.minimum(np.searchsorted(old, new), old.size - 1)  # [n_points]
    went_on = old[place] == new  # [n_points]
    origin = before.cells[place[went_on]].astype(np.int32)
    target = after.cells[went_on].astype(np.int32)
    row, column = target // side - origin // side, target % side - origin % side
    near = (np.abs(row) <= 1) & (np.abs(column) <= 1)
    code = (origin * N_DIRECTIONS + 3 * (row + 1) + column + 1)[near]
    return np.bincount(code, minlength=empty.size).astype(np.uint32).reshape(empty.shape)


def neighbour(cell: int, direction: int, side: int) -> int | None:
    """Return the cell that lies in a direction; None off the grid.

    >>> neighbour(0, 8, 3), neighbour(0, 0, 3), neighbour(4, 4, 3)
    (4, None, 4)
    """
    row, column = cell // side + direction // 3 - 1, cell % side + direction % 3 - 1
    on_grid = 0 <= row < side and 0 <= column < side
    return row * side + column if on_grid else None
