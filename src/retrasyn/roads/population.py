"""Reads rasters of public population, as sums over the squares of a public map."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from retrasyn.errors import InputError, RetraSynError
from retrasyn.roads import rasters
from retrasyn.roads.coordinates import WGS84, Coordinates
from retrasyn.roads.extras import load, reason
from retrasyn.roads.public_map import SIDE
from retrasyn.space import Box
from retrasyn.space.grid import format_box
from retrasyn.space.projection import Projection

_COLUMNS = (("x", "y", "weight"), ("x", "y", "people"), ("lon", "lat", "population"))
_ROWS = 1024  # of a raster that are read at once
_FINER = 8.0  # pixels to a square along each side, at least; coarser ones are divided
_MOST_PARTS = 512  # of a pixel, along each side

Places = npt.NDArray[np.float64]
"""Places and weights: [3, n_places]."""


def read_population(path: Path, box: Box, coordinates: Coordinates) -> npt.NDArray[np.float64]:
    """Return the population in every square of a box: [SIDE, SIDE]."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"population {path} ends in none of {', '.join(ENDINGS)}")
    laid = np.zeros((SIDE, SIDE))
    extent = None
    for x, y, weights in reader(path, box, coordinates):
        laid += rasters.of_places(box, x, y, weights)
        extent = Box.around(x, y) if x.size else extent
    if not laid.any():
        own = f"; its own is {format_box(extent)}" if extent else ""
        raise InputError(
            f"nobody of {path.name} is inside the box {format_box(box)}{own}: is it of another "
            "place, or in other coordinates?"
        )
    return laid


def _read_raster(path: Path, box: Box, coordinates: Coordinates) -> Iterator[Places]:
    """Yield the pixels of a raster around a box, in the coordinates of the data."""
    rasterio = load("rasterio")
    load("rasterio.warp")
    try:
        with rasterio.open(path) as raster:
            if raster.transform.is_degenerate or not np.isfinite(raster.transform).all():
                raise InputError(f"{path} does not say where its pixels are")
            crs = None if raster.crs is None else raster.crs.to_string()
            there = None
            if crs is not None and coordinates.crs is not None and crs != coordinates.crs:
                there = Projection(
                    crs, coordinates.crs, names=(f"the system of {path.name},", "that of the data,")
                )
            wanted = tuple(box)
            if there is not None:
                wanted = rasterio.warp.transform_bounds(coordinates.crs, crs, *box)
            for window in _windows(rasterio, raster, wanted):
                x, y, weights = _pixels(raster, window, wanted)
                if there is not None:
                    x, y = there(x, y)
                yield np.stack([x, y, weights])
    except RetraSynError:
        raise
    except (rasterio.errors.RasterioError, ArithmeticError, OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a GeoTIFF: {reason(error)}") from None


def _windows(rasterio: Any, raster: Any, wanted: tuple[float, ...]) -> Iterator[Any]:
    """Yield the parts of a raster that a box touches, some rows at a time."""
    inverse = ~raster.transform
    x, y = np.repeat(wanted[::2], 2), np.tile(wanted[1::2], 2)
    columns, rows = _through(inverse, x, y)
    left, top = max(0, math.floor(min(columns))), max(0, math.floor(min(rows)))
    right = min(raster.width, math.ceil(max(columns)))
    bottom = min(raster.height, math.ceil(max(rows)))
    for row in range(top, bottom, _ROWS):
        if right > left:
            height = min(_ROWS, bottom - row)
            yield rasterio.windows.Window(left, row, right - left, height)


def _pixels(raster: Any, window: Any, wanted: tuple[float, ...]) -> Places:
    """Return the middles of the inhabited pixels of a window, coarse ones divided evenly."""
    people = raster.read(1, window=window, masked=True).filled(0).astype(np.float64)
    row, column = np.nonzero(np.isfinite(people) & (people > 0))
    weights = people[row, column]
    step = raster.transform
    parts = (
        _FINER
        * SIDE
        * max(abs(step.a) / (wanted[2] - wanted[0]), abs(step.e) / (wanted[3] - wanted[1]))
    )
    n = min(_MOST_PARTS, max(1, math.ceil(parts)))
    offsets = (np.arange(n) + 0.5) / n
    columns = (column[:, None, None] + window.col_off + offsets).repeat(n, axis=1).ravel()
    rows = (row[:, None, None] + window.row_off + offsets[:, None]).repeat(n, axis=2).ravel()
    x, y = _through(step, columns, rows)
    return np.stack([x, y, np.repeat(weights / n**2, n**2)])


def _through(
    affine: Any, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return points moved by an affine transformation."""
    return affine.a * x + affine.b * y + affine.c, affine.d * x + affine.e * y + affine.f


def _read_csv(path: Path, box: Box, coordinates: Coordinates) -> Iterator[Places]:
    """Yield the places of a table, in the coordinates of the data."""
    del box
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.reader(file)
            columns, places = _columns(path, next(table, []))
            rows = np.array(list(_rows(path, table, columns, places)), np.float64)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or "it is not a table of plain text"
        raise InputError(f"{path} cannot be read: {why}") from None
    if not rows.size:
        raise InputError(f"{path} has no rows; one per place is needed")
    x, y, weights = rows.T
    if columns[0] == "lon" and coordinates.crs is not None and not coordinates.degrees:
        names = (f"the system of {path.name},", "that of the data,")
        x, y = Projection(WGS84, coordinates.crs, names=names)(x, y)
    yield np.stack([x, y, weights])


def _columns(path: Path, header: list[str]) -> tuple[tuple[str, ...], list[int]]:
    """Return the names of the three columns that are used, and where they are."""
    names = [name.strip().lower() for name in header]
    columns = next((wanted for wanted in _COLUMNS if set(wanted) <= set(names)), None)
    if columns is None:
        forms = " or ".join(",".join(wanted) for wanted in _COLUMNS)
        raise InputError(f"{path} has the columns {','.join(names)[:80]!r}; it needs {forms}")
    return columns, [names.index(name) for name in columns]


def _rows(
    path: Path, table: Any, columns: tuple[str, ...], places: list[int]
) -> Iterator[tuple[float, ...]]:
    """Yield x, y and weight of every row."""
    for row in table:
        if not row:
            continue
        try:
            values = tuple(float(row[place]) for place in places)
        except (ValueError, IndexError):
            values = (math.nan,)
        if not all(map(math.isfinite, values)) or values[-1] < 0:
            raise InputError(
                f"{path}, line {table.line_num}: {','.join(columns)} is {','.join(row)[:80]!r}; "
                "three finite numbers are needed, the last not below 0"
            )
        yield values


_READERS: dict[str, Callable[[Path, Box, Coordinates], Iterator[Places]]] = {
    ".csv": _read_csv,
    ".tif": _read_raster,
    ".tiff": _read_raster,
}
ENDINGS = tuple(_READERS)
"""Endings of the files that a population may be read from."""
