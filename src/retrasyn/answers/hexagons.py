"""Zones of H3, the hexagons by which many cities publish counts (library h3, extra [geo])."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.answers.shapes import ShapeZones
from retrasyn.answers.zones import MAX_ZONES
from retrasyn.errors import SettingError
from retrasyn.roads.coordinates import WGS84, is_degrees
from retrasyn.roads.extras import load
from retrasyn.space.grid import format_box
from retrasyn.space.projection import Projection

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.space import Box

_FINEST = 15
_SIDES = 64  # points along each side of the box, whose edges need not be straight in degrees


def hexagons(resolution: int, box: Box, crs: str | None) -> ShapeZones:
    """Return the cells of H3 that a box touches, in the coordinates of the data."""
    h3, shapely = load("h3"), load("shapely")
    if resolution > _FINEST:
        raise SettingError(f"h3:{resolution} does not exist; resolutions are 0 to {_FINEST}")
    if crs is None and not is_degrees(None, box):
        raise SettingError(
            f"h3:{resolution} needs degrees, and the box {format_box(box)} cannot be; name the "
            "coordinate system of the data when it is converted"
        )
    to_degrees = from_degrees = _as_they_are
    if crs is not None and not is_degrees(crs):
        names = ("that of the data,", "degrees,")
        to_degrees = Projection(crs, WGS84, names=names)
        from_degrees = Projection(WGS84, crs, names=names[::-1])
    cells = _cells_of(h3, resolution, to_degrees(*_edge(box)))
    rings = [np.array(h3.cell_to_boundary(cell))[:, ::-1] for cell in cells]
    sizes = np.array([len(ring) for ring in rings])
    corners = np.stack(from_degrees(*np.concatenate(rings).T), axis=1)
    lines = shapely.linearrings(corners, indices=np.repeat(np.arange(len(cells)), sizes))
    middles = np.array([h3.cell_to_latlng(cell) for cell in cells])
    centres = np.stack(from_degrees(middles[:, 1], middles[:, 0]), axis=1)
    numbers = np.array([h3.str_to_int(cell) for cell in cells], np.uint64)  # ascending

    def exact(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
        longitude, latitude = to_degrees(x, y)
        # The library takes a point at a time; the raster leaves it those near borders.
        of_point = load("h3.api.numpy_int").latlng_to_cell
        pairs = zip(latitude.tolist(), longitude.tolist(), strict=True)
        found = np.fromiter((of_point(*pair, resolution) for pair in pairs), np.uint64, x.size)
        place = np.minimum(np.searchsorted(numbers, found), numbers.size - 1)
        return np.where(numbers[place] == found, place, numbers.size).astype(np.int32)

    return ShapeZones(cells, centres, (), shapely.polygons(lines), exact)


def _as_they_are(
    x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    return x, y


def _edge(box: Box) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return points around a box."""
    along = np.linspace(0.0, 1.0, _SIDES, endpoint=False)
    flat = np.zeros(_SIDES)
    x = np.concatenate([along, flat + 1, 1 - along, flat])
    y = np.concatenate([flat, along, flat + 1, 1 - along])
    return box.x0 + x * (box.x1 - box.x0), box.y0 + y * (box.y1 - box.y0)


def _cells_of(
    h3: Any, resolution: int, edge: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
) -> list[str]:
    """Return the cells that overlap what an edge surrounds, ascending."""
    longitude, latitude = edge
    if not np.isfinite(longitude).all():
        raise SettingError(f"h3:{resolution}: the box of the data cannot be brought into degrees")
    whole = h3.LatLngPoly(list(zip(latitude.tolist(), longitude.tolist(), strict=True)))
    area = load("shapely").Polygon(np.stack(edge, axis=1)).area
    area *= 111.2**2 * np.cos(np.radians(latitude.mean()))  # square kilometres, about
    n_cells = area / h3.average_hexagon_area(resolution)
    if n_cells > MAX_ZONES:
        raise SettingError(
            f"h3:{resolution} makes about {n_cells:,.0f} zones of the box, more than "
            f"{MAX_ZONES:,}; choose a lower resolution"
        )
    return sorted(h3.h3shape_to_cells_experimental(whole, resolution, contain="overlap"))
