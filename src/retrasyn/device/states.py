"""Numbers of cells and states in plain integers: what `retrasyn.space` does, for a device.

Moves come first, by origin and then by destination; then one enter and one quit per cell.
"""

from dataclasses import dataclass

from retrasyn.messages import MICRO, Manifest

NULL = -1


@dataclass(frozen=True, slots=True)
class Numbering:
    """The states of a grid with `side` cells a side, with or without entering and quitting.

    >>> states = Numbering(6, endpoints=True)
    >>> states.move(0, 7), states.move(0, 14), states.enter(0), states.quit(35)
    (3, -1, 256, 327)
    """

    side: int
    endpoints: bool

    @property
    def n_moves(self) -> int:
        """Number of reachable moves, staying included."""
        return (3 * self.side - 2) ** 2

    def move(self, origin: int, destination: int) -> int:
        """Return the state of a move, or NULL where the destination is not a neighbour."""
        row, column = divmod(origin, self.side)
        row_to, column_to = divmod(destination, self.side)
        if abs(row_to - row) > 1 or abs(column_to - column) > 1:
            return NULL
        before = _before(row) * (3 * self.side - 2) + self._around(row) * _before(column)
        down, right = row_to - max(row - 1, 0), column_to - max(column - 1, 0)
        return before + down * self._around(column) + right

    def clamp(self, origin: int, destination: int) -> int:
        """Return the neighbour of the origin that lies nearest to a destination."""
        row, column = divmod(origin, self.side)
        row_to, column_to = divmod(destination, self.side)
        near_row = min(max(row_to, row - 1), row + 1)
        near_column = min(max(column_to, column - 1), column + 1)
        return near_row * self.side + near_column

    def enter(self, cell: int) -> int:
        """Return the state of entering in a cell, or NULL where that is none."""
        return self.n_moves + cell if self.endpoints else NULL

    def quit(self, cell: int) -> int:
        """Return the state of quitting from a cell, or NULL where that is none."""
        return self.n_moves + self.side**2 + cell if self.endpoints else NULL

    def _around(self, line: int) -> int:
        """Return how many lines are at most one step away from a row or column, itself included."""
        return min(line + 1, self.side - 1) - max(line - 1, 0) + 1


def _before(line: int) -> int:
    """Return the sum of `_around` over all lines before one."""
    return max(3 * line - 1, 0)


def numbering_of(manifest: Manifest) -> Numbering:
    """Return the numbering of a manifest's states."""
    return Numbering(manifest.side, endpoints=manifest.n_states > (3 * manifest.side - 2) ** 2)


def cell_of(x: float, y: float, manifest: Manifest) -> int | None:
    """Return the cell of a point, None where it is outside the box or no point at all."""
    x0, y0, x1, y1 = (corner / MICRO for corner in manifest.box)
    if not (x0 <= x <= x1 and y0 <= y <= y1):  # false for NaN, too
        return None
    side = manifest.side
    column = min((x - x0) / (x1 - x0) * side, side - 1.0)
    row = min((y - y0) / (y1 - y0) * side, side - 1.0)
    return int(row) * side + int(column)
