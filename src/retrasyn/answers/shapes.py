"""Zones of any shape, found by a raster of what lies wholly in one of them (extra [geo]).

Points in squares that a border runs through, a small share, are compared with the shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.answers.zones import Zones
from retrasyn.roads.extras import load

if TYPE_CHECKING:
    import numpy.typing as npt

    Exact = Callable[[npt.NDArray[np.float64], npt.NDArray[np.float64]], npt.NDArray[np.int32]]

_COARSE, _FINER = 64, 16  # squares of the raster to a side, and to a side of those at a border
_BORDER = -1
_WIDER = 1e-9  # share of a square that it is widened by, for what rounding does at its walls
_ROWS = 1 << 18  # points compared together
_FEW = 1 << 18  # points, of all that were asked for, that are not worth a raster


@dataclass(frozen=True, slots=True, eq=False)
class ShapeZones(Zones):
    """Polygons in the coordinates of the data; where they overlap, the first one wins."""

    shapes: Any  # [n_zones], of shapely
    exact: Exact | None = None  # which zone a point is in, if shapes are not the last word
    _seen: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    _raster: list[_Raster] = field(default_factory=list)  # made when it is worth it

    def locate(
        self, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int32]:
        """Return the zone of each point; one on a border is in the first that it bounds."""
        compare = self.exact or self._compare
        self._seen[0] += x.size
        if self._seen[0] < _FEW:
            return compare(x, y)
        if not self._raster:
            self._raster.append(_Raster.of(self.shapes))
        zones = self._raster[0].look_up(x, y)
        unknown = np.flatnonzero(zones == _BORDER)
        for low in range(0, unknown.size, _ROWS):
            rows = unknown[low : low + _ROWS]
            zones[rows] = compare(x[rows], y[rows])
        return zones

    def outlines(self) -> list[str]:
        """Return polygons, or several in one."""
        texts: list[str] = load("shapely").to_geojson(self.shapes).tolist()
        return texts

    def _compare(
        self, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int32]:
        points = load("shapely").points(x, y)
        return _first(self.shapes, points, "intersects")


@dataclass(frozen=True, slots=True, eq=False)
class _Raster:
    """The zone of every square, or that a border runs through it."""

    low: npt.NDArray[np.float64]  # [2]
    size: npt.NDArray[np.float64]  # [2], of a square
    zones: npt.NDArray[np.int32]  # [side, side], by row and column
    outside: int

    @classmethod
    def of(cls, shapes: Any) -> _Raster:
        """Compare the shapes with a coarse raster, and with a finer one along their borders."""
        x0, y0, x1, y1 = load("shapely").total_bounds(shapes)
        low, outside = np.array([x0, y0]), len(shapes)
        size = np.maximum((np.array([x1, y1]) - low) / (_COARSE * _FINER), np.finfo(float).tiny)
        row, column = np.divmod(np.arange(_COARSE**2), _COARSE)
        coarse = _classify(shapes, low, size * _FINER, row, column)
        zones = np.repeat(coarse, _FINER**2).reshape(-1, _FINER, _FINER)
        border = np.flatnonzero(coarse == _BORDER)
        within_row, within_column = np.divmod(np.arange(_FINER**2), _FINER)
        for some in np.array_split(border, max(1, border.size * _FINER**2 // _ROWS)):
            rows = (row[some, None] * _FINER + within_row).ravel()
            columns = (column[some, None] * _FINER + within_column).ravel()
            fine = _classify(shapes, low, size, rows, columns)
            zones[some] = fine.reshape(-1, _FINER, _FINER)
        tiles = zones.reshape(_COARSE, _COARSE, _FINER, _FINER)
        side = _COARSE * _FINER
        return cls(low, size, tiles.transpose(0, 2, 1, 3).reshape(side, side), outside)

    def look_up(
        self, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int32]:
        """Return the zone of each point, or that it has to be compared."""
        side = len(self.zones)
        column = np.floor((x - self.low[0]) / self.size[0])
        row = np.floor((y - self.low[1]) / self.size[1])
        beyond = (column < -1) | (row < -1) | (column > side) | (row > side)
        inner_row, inner_column = (
            np.clip(each, 0, side - 1).astype(np.int32) for each in (row, column)
        )
        zones: npt.NDArray[np.int32] = self.zones[inner_row, inner_column]
        zones[(column < 0) | (row < 0) | (column >= side) | (row >= side)] = _BORDER
        zones[beyond] = self.outside
        return zones


def _classify(
    shapes: Any,
    low: npt.NDArray[np.float64],
    size: npt.NDArray[np.float64],
    row: npt.NDArray[np.int64],
    column: npt.NDArray[np.int64],
) -> npt.NDArray[np.int32]:
    """Return the zone of squares: none, the one that covers it before others, or a border."""
    x, y = low[0] + column * size[0], low[1] + row * size[1]
    more_x, more_y = size * _WIDER
    squares = load("shapely").box(
        x - more_x, y - more_y, x + size[0] + more_x, y + size[1] + more_y
    )
    touched, covered = (_first(shapes, squares, how) for how in ("intersects", "covers"))
    return np.where(touched == covered, touched, np.int32(_BORDER))


def _first(shapes: Any, others: Any, how: str) -> npt.NDArray[np.int32]:
    """Return the first shape that stands so to each of others, or their number: [n_others]."""
    found = np.full(len(others), len(shapes), np.int32)
    tree = load("shapely").STRtree(others)
    for some in _parts(shapes):
        which, other = tree.query(shapes[some], predicate=how)
        np.minimum.at(found, other, (which + some.start).astype(np.int32))
    return found


def _parts(shapes: Any) -> Iterator[slice]:
    """Yield slices of many shapes, so that what is found of each together fits in memory."""
    for low in range(0, len(shapes), 1 << 12):
        yield slice(low, low + (1 << 12))
