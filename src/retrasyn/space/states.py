"""Numbers the transition states that a device can be in (Sec. III-B).

Moves come first, by origin and then by destination; then one enter and one quit per cell. With
side K there are (3K-2)^2 + 2K^2 states: 328 at K = 6.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from retrasyn.space.grid import Grid


@dataclass(frozen=True)
class StateSpace:
    """The transition states of a grid, with or without enter and quit states.

    >>> from retrasyn.space import Box, Grid, StateSpace
    >>> states = StateSpace(Grid(Box(0, 0, 1, 1), side=6))
    >>> states.n_states
    328
    >>> states.describe(int(states.moves(0, 7)))
    ('move', 0, 7)
    >>> int(states.moves(0, 14))
    -1
    """

    grid: Grid
    endpoints: bool = True

    @property
    def n_moves(self) -> int:
        """Number of reachable moves, staying included."""
        return (3 * self.grid.side - 2) ** 2

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self.n_moves + (2 * self.grid.n_cells if self.endpoints else 0)

    @cached_property
    def move_index(self) -> npt.NDArray[np.int32]:
        """State of the move from a cell to each entry of its neighbour table: [n_cells, 9]."""
        reachable = self.grid.neighbour_table >= 0
        index = np.full(reachable.shape, -1, np.int32)
        index[reachable] = np.arange(self.n_moves)
        return index

    @cached_property
    def origins(self) -> npt.NDArray[np.int32]:
        """Origin of every move: [n_moves]."""
        return np.nonzero(self.grid.neighbour_table >= 0)[0].astype(np.int32)

    @cached_property
    def destinations(self) -> npt.NDArray[np.int32]:
        """Destination of every move: [n_moves]."""
        table = self.grid.neighbour_table
        return table[table >= 0]

    def moves(self, origin: npt.ArrayLike, destination: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """Return the state of each move, -1 where the destination is not a neighbour."""
        row0, column0 = np.divmod(np.asarray(origin, np.int32), self.grid.side)
        row1, column1 = np.divmod(np.asarray(destination, np.int32), self.grid.side)
        down, right = row1 - row0, column1 - column0
        near = (np.abs(down) <= 1) & (np.abs(right) <= 1)
        direction = np.where(near, 3 * (down + 1) + right + 1, 4)
        state: npt.NDArray[np.int32] = self.move_index[np.asarray(origin), direction]
        return np.where(near, state, np.int32(-1))

    def enters(self, cell: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """Return the enter state of each cell, -1 if there are no enter and quit states."""
        cell = np.asarray(cell, np.int32)
        return cell + np.int32(self.n_moves) if self.endpoints else np.full_like(cell, -1)

    def quits(self, cell: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """Return the quit state of each cell, -1 if there are no enter and quit states."""
        cell = np.asarray(cell, np.int32)
        first = np.int32(self.n_moves + self.grid.n_cells)
        return cell + first if self.endpoints else np.full_like(cell, -1)

    def describe(self, state: int) -> tuple[str, int, int]:
        """Return kind, origin and destination of a state; for enter and quit, both are its cell."""
        if state < self.n_moves:
            return "move", int(self.origins[state]), int(self.destinations[state])
        kind, cell = divmod(state - self.n_moves, self.grid.n_cells)
        return ("enter", "quit")[kind], cell, cell
