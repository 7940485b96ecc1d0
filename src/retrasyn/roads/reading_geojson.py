"""Reads road networks from GeoJSON: LineStrings and MultiLineStrings, other shapes left out.

By RFC 7946 the coordinates are degrees. What cannot be degrees is taken to be in the coordinates
of the data, unless a member `crs`, of an older form of GeoJSON, names their system or is null.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrasyn.bounded_json import parse_json
from retrasyn.errors import InputError
from retrasyn.roads.coordinates import WGS84, is_degrees
from retrasyn.roads.lines import Lines
from retrasyn.roads.network import RoadNetwork
from retrasyn.space import Box

_SHAPES = ("Point", "MultiPoint", "Polygon", "MultiPolygon")


def read_geojson(path: Path) -> RoadNetwork:
    """Read the lines of a GeoJSON file."""
    try:
        whole = parse_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from None
    except ValueError:  # also bytes that are no text
        raise InputError(f"{path} is not GeoJSON: it is not JSON") from None
    lines = Lines()
    for number, feature in enumerate(_features(path, whole), 1):
        try:
            for places, tags in _lines(feature):
                lines.add([place[:2] for place in places], tags)
        except (
            InputError,
            ArithmeticError,
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
        ) as error:
            why = error if isinstance(error, InputError) else "it is malformed"
            raise InputError(f"{path}, feature {number}: {why}") from None
    network = lines.network(path, _named_system(whole))
    if "crs" not in whole and is_degrees(None, Box.around(network.x, network.y)):
        return dataclasses.replace(network, crs=WGS84)
    return network


def _features(path: Path, whole: Any) -> Iterator[Any]:
    """Yield the features of a collection, or the one there is."""
    kind = whole.get("type") if isinstance(whole, dict) else None
    if kind == "FeatureCollection" and isinstance(whole.get("features"), list):
        yield from whole["features"]
    elif kind is not None:
        yield whole
    else:
        raise InputError(f"{path} is not GeoJSON: it has no type")


def _lines(shape: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the vertices and tags of every line of a feature or geometry."""
    tags: dict[str, Any] = {}
    if shape["type"] == "Feature":
        tags = shape.get("properties") or {}
        shape = shape.get("geometry")
    if shape is None:
        return
    if shape["type"] == "LineString":
        yield shape["coordinates"], tags
    elif shape["type"] == "MultiLineString":
        for line in shape["coordinates"]:
            yield line, tags
    elif shape["type"] == "GeometryCollection":
        for inner in shape["geometries"]:
            for line, _ in _lines(inner):
                yield line, tags
    elif shape["type"] not in _SHAPES:
        raise InputError(f"{str(shape['type'])[:40]!r} is no shape of GeoJSON")


def _named_system(whole: dict[str, Any]) -> str | None:
    """Return the system that the file names."""
    try:
        name = str(whole["crs"]["properties"]["name"])
    except (KeyError, TypeError):
        return None
    return WGS84 if name.endswith(("CRS84", ":4326")) else name
