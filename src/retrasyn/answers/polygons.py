"""Reads zones from files of polygons: GeoJSON, GeoPackage, Shapefile, FlatGeobuf (extra [geo])."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.answers.shapes import ShapeZones
from retrasyn.answers.zones import MAX_ZONES, OUTSIDE
from retrasyn.errors import InputError, SettingError
from retrasyn.roads.coordinates import WGS84, is_degrees
from retrasyn.roads.extras import load, reason
from retrasyn.space.projection import Projection

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.space import Box

ENDINGS = (".geojson", ".json", ".gpkg", ".shp", ".fgb")
_NAMES = ("name", "zone", "zone_name", "district", "label", "id", "code", "zone_id")


def read_polygons(path: Path, box: Box, crs: str | None, named_by: str | None) -> ShapeZones:
    """Read polygons in the coordinates of the data; those of one name are one zone."""
    _check(path)
    shapely = load("shapely")
    system, geometry, columns = _read(path)
    shapes = shapely.from_wkb(geometry)
    areal = np.isin(shapely.get_type_id(shapes), (3, 6)) & ~shapely.is_empty(shapes)
    if not areal.any():
        raise InputError(f"{path} has no polygons; zones are polygons")
    notes = []
    if not areal.all():
        notes.append(f"{path}: {(~areal).sum():,} shapes that are no polygons were left out")
    names = _names(path, columns, named_by, len(shapes))
    shapes, names = shapes[areal], [name for name, kept in zip(names, areal, strict=True) if kept]
    shapes = shapely.force_2d(shapes)
    crossing = ~shapely.is_valid(shapes)
    if crossing.any():
        notes.append(f"{path}: {crossing.sum():,} polygons crossed themselves and were mended")
        shapes[crossing] = shapely.make_valid(
            shapes[crossing], method="structure", keep_collapsed=False
        )
    shapes, names = _merged(shapely, _in_system(shapely, shapes, system, box, crs, path), names)
    if len(names) > MAX_ZONES:
        raise InputError(f"{path} has {len(names):,} zones, more than {MAX_ZONES:,}; merge some")
    if OUTSIDE in names:
        raise InputError(f"{path} has a zone named {OUTSIDE!r}, which is what lies in none")
    within = shapely.point_on_surface(shapes)
    centres = np.stack([shapely.get_x(within), shapely.get_y(within)], axis=1)
    return ShapeZones(names, centres, tuple(notes), shapes)


def _check(path: Path) -> None:
    """Refuse what is no file of polygons."""
    known = f"grid:K, h3:RES or a file ending in {', '.join(ENDINGS)}"
    if path.suffix.lower() not in ENDINGS:
        raise SettingError(f"zones {str(path)[:80]!r} are not known; choose {known}")
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists fails on a name too long
        raise InputError(f"zones {path} do not exist; check the path")


def _read(path: Path) -> tuple[str | None, Any, dict[str, Any]]:
    """Return the coordinate system, the shapes and the other columns of the one layer."""
    pyogrio = load("pyogrio")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what GDAL finds odd and reads nevertheless
            layers = [str(name) for name, kind in pyogrio.list_layers(path) if kind is not None]
            if len(layers) != 1:
                raise InputError(
                    f"{path} has {len(layers)} layers of shapes ({', '.join(layers)[:200]}); save "
                    "the one with the zones as a file of its own"
                )
            told, _, shapes, columns = pyogrio.raw.read(path, layer=layers[0])
    except (RuntimeError, ValueError, OSError) as error:
        kind = path.suffix[1:].lower()
        raise InputError(f"{path} cannot be read as {kind}: {reason(error)}") from None
    return told["crs"], shapes, dict(zip(told["fields"], columns, strict=True))


def _names(path: Path, columns: dict[str, Any], named_by: str | None, n: int) -> list[str]:
    """Return what each shape is called: by a property, or by its number from 1."""
    by_name = {name.lower(): name for name in reversed(columns)}
    if named_by is not None and named_by not in columns:
        there = ", ".join(columns) or "none"
        raise SettingError(f"{path} has no property {named_by!r} to name zones by (it has {there})")
    found = named_by or next((by_name[name] for name in _NAMES if name in by_name), None)
    if found is None:
        return [str(number) for number in range(1, n + 1)]
    values = enumerate(columns[found].tolist(), 1)
    return [f"zone {number}" if _empty(value) else _text(value) for number, value in values]


def _empty(value: Any) -> bool:
    return value is None or value != value or value == ""  # noqa: PLR0124 - NaN


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _in_system(
    shapely: Any, shapes: Any, system: str | None, box: Box, crs: str | None, path: Path
) -> Any:
    """Return shapes in the coordinates of the data; those that say none are in them already."""
    if crs is None and is_degrees(None, box):
        crs = WGS84
    same = system is None or crs is None or system.upper() == crs.upper()
    if same or (is_degrees(system) and is_degrees(crs)):
        return shapes
    projection = Projection(
        str(system), str(crs), names=(f"the system of {path.name},", "that of the data,")
    )

    def projected(places: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.stack(projection(places[:, 0], places[:, 1]), axis=1)

    moved = shapely.transform(shapes, projected)
    if not np.isfinite(shapely.bounds(moved)).all():
        raise InputError(f"zones of {path} are in {system} and cannot be brought into {crs}")
    return moved


def _merged(shapely: Any, shapes: Any, names: list[str]) -> tuple[Any, list[str]]:
    """Return one shape per name, in the order of their first."""
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        rows.setdefault(name, []).append(row)
    if len(rows) == len(names):
        return shapes, names
    whole = [shapes[each[0]] if len(each) == 1 else shapely.union_all(shapes[each])
             for each in rows.values()]  # fmt: skip
    return np.array(whole, object), list(rows)
