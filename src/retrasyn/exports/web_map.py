"""PMTiles for any map in a browser: how dense a release is at every zoom, and some of its trips.

Layer ``cells`` has squares that hold points, as many to a tile at each zoom, with ``points`` and
``share``; layer ``trips`` has lines, a sample of the streams, evenly chosen.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.data.geoparquet import load_extra
from retrasyn.data.metadata import instants, iso_texts
from retrasyn.errors import MissingExtra, OutputError
from retrasyn.exports.systems import in_degrees
from retrasyn.exports.vector_tiles import EXTENT, LINE, POLYGON, TileShape, tile_bytes
from retrasyn.files import replacing

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories

    TilePlace = tuple[int, int, int]  # zoom, column, row from the north

N_TRIPS = 1_000
_SQUARES = 32  # to a side of a tile
_OUT, _IN = 2, 3  # zooms beside the one at which all points fit in about one tile
_DEEPEST = 16
_NORTHERNMOST = 85.0511287798066  # degrees; web maps end there
_BEYOND = EXTENT // 64  # units that lines go on beyond a tile, so that no end shows


def write_tiles(data: Trajectories, path: Path) -> None:
    """Write a file of tiles, from a zoom that shows the surroundings to one that shows streets."""
    data = in_degrees(data, "a web map")
    x, y = _on_square(data)
    zooms = _zooms(x, y)
    trips = _SampledTrips.of(data, x, y)
    shapes: dict[TilePlace, dict[str, list[TileShape]]] = {}
    for zoom in zooms:
        for place, shape in _squares(x, y, zoom):
            shapes.setdefault(place, {}).setdefault("cells", []).append(shape)
        for place, shape in trips.lines(zoom):
            shapes.setdefault(place, {}).setdefault("trips", []).append(shape)
    bounds = (data.x.min(), data.y.min(), data.x.max(), data.y.max())
    _write(path, shapes, zooms, tuple(map(float, bounds)))


def _on_square(data: Trajectories) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return points on the square of web maps: x from 0 in the west to 1, y from the north."""
    if np.abs(data.y).max() > _NORTHERNMOST:
        raise OutputError(
            f"a web map ends at {_NORTHERNMOST:.2f} degrees north and south, and there are points "
            "beyond; leave them out"
        )
    x = (data.x + 180) / 360 % 1.0
    y = 0.5 - np.arctanh(np.sin(np.radians(data.y))) / (2 * np.pi)
    return x, y


def _zooms(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> range:
    span = max(float(np.ptp(x)), float(np.ptp(y)), 2.0**-_DEEPEST)
    fits = math.floor(-math.log2(span))
    return range(max(fits - _OUT, 0), min(fits + _IN, _DEEPEST) + 1)


def _squares(
    x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], zoom: int
) -> Iterator[tuple[TilePlace, TileShape]]:
    """Yield the squares that hold points, and their tiles."""
    side = _SQUARES << zoom
    columns, rows = ((side * values).astype(np.int64).clip(0, side - 1) for values in (x, y))
    keys, counts = np.unique(rows * side + columns, return_counts=True)
    size = EXTENT // _SQUARES
    for key, n in zip(keys.tolist(), counts.tolist(), strict=True):
        (tile_y, row), (tile_x, column) = (divmod(each, _SQUARES) for each in divmod(key, side))
        west, north = column * size, row * size
        ring = [(west, north), (west + size, north), (west + size, north + size)]
        ring.append((west, north + size))
        share = round(n / x.size, 6)
        yield (zoom, tile_x, tile_y), TileShape(POLYGON, ring, {"points": n, "share": share})


@dataclass(frozen=True, slots=True, eq=False)
class _SampledTrips:
    """Lines on the square of web maps, and what is told of each."""

    shapes: Any  # [n_trips], of shapely
    properties: list[dict[str, str]]

    @classmethod
    def of(
        cls, data: Trajectories, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
    ) -> _SampledTrips:
        shapely = load_extra("shapely", "for lines in tiles")
        moving = np.flatnonzero(data.lengths > 1)
        n_drawn = min(N_TRIPS, moving.size)
        chosen = moving[np.linspace(0, moving.size - 1, n_drawn).astype(int)]
        places = [slice(data.starts[one], data.starts[one + 1]) for one in chosen]
        shapes = [shapely.LineString(np.stack([x[rows], y[rows]], axis=1)) for rows in places]
        names = [{"traj_id": data.name("traj_id", int(data.stream_ids[one]))} for one in chosen]
        if data.clock is not None:
            begins = iso_texts(instants(data.clock, data.begins[chosen]), whole_seconds=True)
            names = [{**name, "begin": at} for name, at in zip(names, begins.tolist(), strict=True)]
        return cls(np.array(shapes, object), names)

    def lines(self, zoom: int) -> Iterator[tuple[TilePlace, TileShape]]:
        """Yield the parts of lines that lie in each tile."""
        shapely = load_extra("shapely", "for lines in tiles")
        if not self.shapes.size:
            return
        tile = 1 / (1 << zoom)
        low_x, low_y, high_x, high_y = (shapely.bounds(self.shapes).T // tile).astype(int)
        edge = tile * _BEYOND / EXTENT
        for column in range(low_x.min(), high_x.max() + 1):
            for row in range(low_y.min(), high_y.max() + 1):
                here = (low_x <= column) & (column <= high_x) & (low_y <= row) & (row <= high_y)
                if not here.any():
                    continue
                west, north = column * tile, row * tile
                box = (west - edge, north - edge, west + tile + edge, north + tile + edge)
                cut = shapely.clip_by_rect(self.shapes[here], *box)
                parts, whose = shapely.get_parts(cut, return_index=True)
                for part, which in zip(parts, np.flatnonzero(here)[whose].tolist(), strict=True):
                    points = _in_tile(shapely.get_coordinates(part), west, north, tile)
                    if len(points) > 1:
                        yield (zoom, column, row), TileShape(LINE, points, self.properties[which])


def _in_tile(
    places: npt.NDArray[np.float64], west: float, north: float, tile: float
) -> list[tuple[int, int]]:
    """Return points in the units of a tile, without those that fall on the one before."""
    units = np.rint((places - [west, north]) / tile * EXTENT).astype(int)
    moved = np.append(True, (np.diff(units, axis=0) != 0).any(axis=1))
    return [tuple(point) for point in units[moved].tolist()]


def _write(
    path: Path,
    shapes: dict[TilePlace, dict[str, list[TileShape]]],
    zooms: range,
    bounds: tuple[float, ...],
) -> None:
    try:
        from pmtiles.tile import Compression, TileType, zxy_to_tileid  # noqa: PLC0415 - an extra
        from pmtiles.writer import Writer  # noqa: PLC0415 - as above
    except ImportError:
        raise MissingExtra('pmtiles is not installed: pip install "retrasyn[geo]"') from None
    untyped: Any = Writer
    low, high = zooms[0], zooms[-1]
    west, south, east, north = (round(1e7 * degrees) for degrees in bounds)
    header = {
        "tile_type": TileType.MVT,
        "tile_compression": Compression.GZIP,
        "center_zoom": low + _OUT,
        **dict(zip(("min_lon_e7", "min_lat_e7"), (west, south), strict=True)),
        **dict(zip(("max_lon_e7", "max_lat_e7"), (east, north), strict=True)),
        "center_lon_e7": (west + east) // 2,
        "center_lat_e7": (south + north) // 2,
    }
    fields = {
        "cells": {"points": "Number", "share": "Number"},
        "trips": {"traj_id": "String", "begin": "String"},
    }
    layers = [
        {"id": name, "fields": known, "minzoom": low, "maxzoom": high}
        for name, known in fields.items()
    ]
    about = {"name": path.stem, "format": "pbf", "type": "overlay", "vector_layers": layers}
    with replacing(path) as temporary, temporary.open("wb") as file:
        writer: Any = untyped(file)
        by_number = {zxy_to_tileid(*place): found for place, found in shapes.items()}
        for number in sorted(by_number):
            writer.write_tile(number, gzip.compress(tile_bytes(by_number[number]), mtime=0))
        writer.finalize(header, about)
