"""Reads road networks from GeoPackages and Shapefiles (extra [geo])."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrasyn.errors import InputError
from retrasyn.roads.extras import load, reason
from retrasyn.roads.lines import KINDS, Lines
from retrasyn.roads.network import RoadNetwork

_COLUMNS = (*KINDS, "oneway", "junction")
_BESIDE = (".shp", ".dbf", ".prj", ".shx")


def read_layers(path: Path) -> RoadNetwork:
    """Read the lines of all layers, which have to be in one coordinate system."""
    pyogrio, shapely = load("pyogrio"), load("shapely")
    lines, systems = Lines(), set()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what GDAL finds odd and reads nevertheless
            for layer, kind in pyogrio.list_layers(path):
                if "LineString" in str(kind) or kind == "Unknown":
                    told, _, shapes, columns = pyogrio.raw.read(path, layer=layer, columns=_COLUMNS)
                    systems.add(told["crs"])
                    named = dict(zip(told["fields"], columns, strict=True))
                    for places, tags in _lines(shapely, shapes, named):
                        lines.add(places, tags)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (RuntimeError, ValueError, OSError, shapely.errors.ShapelyError) as error:
        kind = path.suffix[1:].lower()
        raise InputError(f"{path} cannot be read as {kind}: {reason(error)}") from None
    if len(systems) > 1:
        raise InputError(
            f"layers of {path} are in {len(systems)} coordinate systems; one is needed"
        )
    return lines.network(path, next(iter(systems), None))


def layer_files(path: Path) -> tuple[Path, ...]:
    """Return the files of a GeoPackage, which is one, or of a Shapefile."""
    if path.suffix.lower() != ".shp":
        return (path,)
    beside = (path.with_suffix(ending) for ending in _BESIDE)
    return tuple(file for file in beside if file.exists())


def _lines(
    shapely: Any, shapes: Any, columns: dict[str, Any]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the vertices and tags of every line."""
    parts, rows = shapely.get_parts(shapely.from_wkb(shapes), return_index=True)
    is_line = shapely.get_type_id(parts) == shapely.GeometryType.LINESTRING
    for part, row in zip(parts[is_line], rows[is_line].tolist(), strict=True):
        tags = {name: _known(values[row]) for name, values in columns.items()}
        yield shapely.get_coordinates(part), tags


def _known(value: Any) -> Any:
    """Return a value of a column; a number that is none is unknown."""
    return None if value != value else value  # noqa: PLR0124 - NaN
