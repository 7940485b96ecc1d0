"""Roads under the data: the lines of a GeoJSON file that touch the box, and nothing else of it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrasyn.errors import InputError
from retrasyn.service.basemap.documents import read_document
from retrasyn.space import Box
from retrasyn.space.grid import format_box

Line = list[list[float]]
_DIGITS = 7  # after the point in degrees: a centimetre


def read_roads(path: Path, box: Box) -> bytes:
    """Return the roads as GeoJSON; names and other properties stay behind."""
    try:
        lines = [line for line in _lines(read_document("map.roads", path)) if _touches(line, box)]
    except (KeyError, TypeError, ValueError, RecursionError):
        raise InputError(
            f"map.roads {path} is not GeoJSON of LineString and MultiLineString; convert it"
        ) from None
    if not lines:
        raise InputError(
            f"map.roads {path} has no line in the box {format_box(box)}; give it in the "
            "coordinates of the data"
        )
    shape = {"type": "MultiLineString", "coordinates": lines}
    feature = {"type": "Feature", "properties": {}, "geometry": shape}
    whole = {"type": "FeatureCollection", "features": [feature]}
    return json.dumps(whole, separators=(",", ":")).encode()


def _lines(thing: dict[str, Any]) -> Iterator[Line]:
    """Go through all lines of a GeoJSON object."""
    match thing["type"]:
        case "FeatureCollection":
            for feature in thing["features"]:
                yield from _lines(feature)
        case "Feature":
            if thing["geometry"] is not None:
                yield from _lines(thing["geometry"])
        case "GeometryCollection":
            for geometry in thing["geometries"]:
                yield from _lines(geometry)
        case "LineString":
            yield _line(thing["coordinates"])
        case "MultiLineString":
            yield from map(_line, thing["coordinates"])
        case other:
            raise ValueError(other)


def _line(positions: list[list[float]]) -> Line:
    """Return a line without heights, as finely as can be seen."""
    line = [[round(float(part), _DIGITS) for part in position[:2]] for position in positions]
    if len(line) < 2 or any(len(place) != 2 or not _finite(place) for place in line):  # noqa: PLR2004 - two ends, two coordinates
        raise ValueError("a line needs two places of two numbers")
    return line


def _finite(place: list[float]) -> bool:
    return all(map(math.isfinite, place))


def _touches(line: Line, box: Box) -> bool:
    """Return whether the rectangle around a line meets the box."""
    xs, ys = zip(*line, strict=True)
    apart = max(xs) < box.x0 or min(xs) > box.x1 or max(ys) < box.y0 or min(ys) > box.y1
    return not apart
