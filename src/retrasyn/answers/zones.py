"""Zones: the places that answers are about, and which of them a point lies in."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.errors import SettingError
from retrasyn.space import Grid
from retrasyn.space.kernels import OUTSIDE as NO_CELL

if TYPE_CHECKING:
    import os

    import numpy.typing as npt

    from retrasyn.space import Box

OUTSIDE = "outside"
"""The name of what is in no zone."""
MAX_ZONES = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Zones(ABC):
    """Named places. What lies in none of them is in zone `n_zones`, which is called outside."""

    names: list[str]  # [n_zones]
    centres: npt.NDArray[np.float64]  # [n_zones, 2]
    notes: tuple[str, ...]  # what was left out or mended when reading

    @property
    def n_zones(self) -> int:
        """Number of zones, without what is outside."""
        return len(self.names)

    @property
    def n_codes(self) -> int:
        """Number of zones, with what is outside."""
        return len(self.names) + 1

    @abstractmethod
    def locate(
        self, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int32]:
        """Return the zone of each point: [n_points]."""

    @abstractmethod
    def outlines(self) -> list[str]:
        """Return the shape of each zone as a geometry of GeoJSON: [n_zones]."""


@dataclass(frozen=True, slots=True, eq=False)
class GridZones(Zones):
    """The cells of a grid, named by their numbers."""

    grid: Grid

    @classmethod
    def of(cls, grid: Grid) -> GridZones:
        """Make a zone of every cell.

        >>> from retrasyn import Box
        >>> GridZones.of(Grid(Box(0, 0, 2, 2), 2)).locate(np.array([0.5, 9]), np.array([1.5, 1]))
        array([2, 4], dtype=int32)
        """
        return cls([str(cell) for cell in range(grid.n_cells)], grid.centres(), (), grid)

    def locate(
        self, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int32]:
        """Return the cell of each point."""
        cells, n_outside = self.grid.locate(x, y)
        zones = cells.astype(np.int32)
        if n_outside:
            zones[cells == NO_CELL] = self.n_zones
        return zones

    def outlines(self) -> list[str]:
        """Return squares, counterclockwise."""
        width, height = self.grid.cell_width, self.grid.cell_height
        around = np.array([[0, 0], [width, 0], [width, height], [0, height], [0, 0]])
        rings = self.grid.corners[:, None, :] + around  # [n_cells, 5, 2]
        return [json.dumps({"type": "Polygon", "coordinates": [ring]}) for ring in rings.tolist()]


def open_zones(
    asked: str | os.PathLike[str] | Grid | Zones,
    *,
    box: Box,
    crs: str | None = None,
    named_by: str | None = None,
) -> Zones:
    """Return zones in the coordinates of the data.

    Args:
        asked: ``grid:K`` over the box, ``h3:RES``, a file of polygons (GeoJSON, GeoPackage,
            Shapefile, FlatGeobuf), a grid, or zones opened before.
        box: Where the data is.
        crs: The coordinate system of the data; what could be degrees are degrees without it.
        named_by: The property that names a polygon, if its name is unusual.
    """
    made = isinstance(asked, Zones | Grid)
    kind, _, number = ("", "", "") if made else str(asked).partition(":")
    if named_by is not None and (made or kind in {"grid", "h3"}):
        raise SettingError("`named_by` is a property of polygons; give zones in a file")
    if isinstance(asked, Zones):
        return asked
    if isinstance(asked, Grid):
        return GridZones.of(asked)
    if kind == "grid":
        return GridZones.of(Grid(box, _number(asked, number)))
    if kind == "h3":
        from retrasyn.answers.hexagons import hexagons  # noqa: PLC0415 - needs an extra

        return hexagons(_number(asked, number), box, crs)
    from retrasyn.answers.polygons import read_polygons  # noqa: PLC0415 - as above

    return read_polygons(Path(asked), box, crs, named_by)


def _number(asked: object, text: str) -> int:
    """Return the whole number after the colon."""
    if not (text.isascii() and text.isdigit() and len(text) < 4):  # noqa: PLR2004 - none is larger
        raise SettingError(
            f"zones {str(asked)[:80]!r} need a whole number after the colon: grid:6, h3:8"
        )
    return int(text)
