"""The K x K grid over a public box (Sec. III-B, geospatial discretisation)."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from retrasyn.errors import SettingError
from retrasyn.space import kernels

MAX_SIDE = 64
_HALF_TURN = 180.0  # degrees
_FINEST = 1e-9  # narrower cells, relative to their coordinates, exceed float precision


class Box(NamedTuple):
    """A rectangle in the units of the data: lower-left and upper-right corner."""

    x0: float
    y0: float
    x1: float
    y1: float

    @classmethod
    def parse(cls, text: str) -> "Box":
        """Read ``x0,y0,x1,y1``.

        >>> Box.parse("116.15,39.75,116.60,40.10").x1
        116.6
        """
        try:
            x0, y0, x1, y1 = (float(part) for part in text.split(","))
        except ValueError:
            raise SettingError(
                f"box {text!r} is not four numbers; write x0,y0,x1,y1, "
                "for example 116.15,39.75,116.60,40.10"
            ) from None
        return cls(x0, y0, x1, y1)

    @classmethod
    def around(cls, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> "Box":
        """Return the bounding box of all points, widened along an axis without extent.

        >>> Box.around(np.array([2.0, 2.0]), np.array([0.0, 3.0]))
        Box(x0=1.5, y0=0.0, x1=2.5, y1=3.0)
        """
        sides = []
        for values in (x, y):
            low, high = float(values.min()), float(values.max())
            furthest = max(abs(low), abs(high))
            if high - low <= 1e-6 * furthest:
                margin = max(1e-3 * furthest, 0.5)
                low, high = low - margin, high + margin
            sides.append((low, high))
        (x0, x1), (y0, y1) = sides
        return cls(x0, y0, x1, y1)


def _across(box: Box) -> str:
    """Return how a box across the antimeridian is written, if it looks like one."""
    x0, y0, x1, y1 = box
    if not (-_HALF_TURN <= x1 < x0 <= _HALF_TURN and y0 < y1):
        return ""
    beyond = format_box(Box(x0, y0, x1 + 2 * _HALF_TURN, y1))
    return f"; one across 180 degrees is written {beyond}, for positions that convert has shifted"


@dataclass(frozen=True)
class Grid:
    """A box divided into side x side cells, numbered row by row from the lower left.

    >>> grid = Grid(Box(0, 0, 6, 6), side=6)
    >>> grid.cells_of([0.5, 6.0], [0.5, 6.0]).tolist()
    [0, 35]
    >>> grid.neighbours(0).tolist()
    [0, 1, 6, 7]
    """

    box: Box
    side: int

    def __post_init__(self) -> None:
        if not 1 <= self.side <= MAX_SIDE or int(self.side) != self.side:
            raise SettingError(
                f"grid side {self.side} is outside 1..{MAX_SIDE}; choose a whole number in it"
            )
        object.__setattr__(self, "box", Box(*map(float, self.box)))
        if not all(map(math.isfinite, self.box)):
            raise SettingError(
                f"box {format_box(self.box)} has a corner that is not finite; give four numbers"
            )
        x0, y0, x1, y1 = self.box
        if not (x1 > x0 and y1 > y0):
            raise SettingError(
                f"box {format_box(self.box)} has no area; "
                "give the lower-left corner first, then the upper-right: x0 < x1, y0 < y1"
                f"{_across(self.box)}"
            )
        if not (math.isfinite(x1 - x0) and math.isfinite(y1 - y0)):
            raise SettingError(
                f"box {format_box(self.box)} is too wide for floating-point numbers; "
                "use another unit"
            )
        for low, high, width in ((x0, x1, self.cell_width), (y0, y1, self.cell_height)):
            if width <= _FINEST * max(abs(low), abs(high)):
                raise SettingError(
                    f"box {format_box(self.box)} is too narrow for {self.side} cells a side: "
                    "floating-point numbers cannot tell them apart; subtract an offset first"
                )

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.side * self.side

    @property
    def cell_width(self) -> float:
        """Width of a cell along x."""
        return (self.box.x1 - self.box.x0) / self.side

    @property
    def cell_height(self) -> float:
        """Height of a cell along y."""
        return (self.box.y1 - self.box.y0) / self.side

    def locate(
        self, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.uint16], int]:
        """Return the cell of each point, OUTSIDE if off the box, and the number outside."""
        cells = self.cells_of(x, y)
        return cells, int(kernels.mark_outside(x, y, *self.box, cells))

    def cells_of(self, x: npt.ArrayLike, y: npt.ArrayLike) -> npt.NDArray[np.uint16]:
        """Return the cell of each point; a point on the upper edge belongs to the last cell.

        Points outside the box are assigned to the nearest cell; `locate` marks them instead.
        """
        return kernels.cells_of(
            np.ascontiguousarray(x, np.float64),
            np.ascontiguousarray(y, np.float64),
            *self.box,
            self.side,
        )

    @cached_property
    def corners(self) -> npt.NDArray[np.float64]:
        """Lower-left corner of every cell: [n_cells, 2]."""
        row, column = self.rows_and_columns
        return np.stack(
            [self.box.x0 + column * self.cell_width, self.box.y0 + row * self.cell_height], axis=1
        )

    @cached_property
    def rows_and_columns(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Row and column of every cell: [n_cells] each."""
        rows, columns = np.divmod(np.arange(self.n_cells, dtype=np.int32), np.int32(self.side))
        return rows, columns

    def centres(self) -> npt.NDArray[np.float64]:
        """Centre of every cell: [n_cells, 2]."""
        half = np.array([self.cell_width / 2, self.cell_height / 2])
        centres: npt.NDArray[np.float64] = self.corners + half
        return centres

    @cached_property
    def neighbour_table(self) -> npt.NDArray[np.int32]:
        """Neighbours of every cell, itself included, ascending; -1 off the grid: [n_cells, 9]."""
        row, column = self.rows_and_columns
        step = np.array([-1, 0, 1])
        rows = row[:, None] + np.repeat(step, 3)  # [n_cells, 9]
        columns = column[:, None] + np.tile(step, 3)  # [n_cells, 9]
        on_grid = (rows >= 0) & (rows < self.side) & (columns >= 0) & (columns < self.side)
        return np.where(on_grid, rows * self.side + columns, -1).astype(np.int32)

    def neighbours(self, cell: int) -> npt.NDArray[np.int32]:
        """Return the cells one step away from a cell, itself included, ascending."""
        row: npt.NDArray[np.int32] = self.neighbour_table[cell]
        return row[row >= 0]


def grid_around(
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    grid: Grid | int,
    box: Box | tuple[float, float, float, float] | None = None,
) -> Grid:
    """Return the grid as given, or one of that side over the box or around all points."""
    if isinstance(grid, Grid):
        if box is not None:
            raise SettingError("give a whole grid, which has its box, or a side and a box")
        return grid
    return Grid(Box.around(x, y) if box is None else Box(*box), grid)


def format_box(box: Box) -> str:
    """Format a box as the command line accepts it."""
    return ",".join(f"{value:g}" for value in box)
