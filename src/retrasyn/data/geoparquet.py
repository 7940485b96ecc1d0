"""Points in GeoParquet 1.1: well-known binary and the file's ``geo`` metadata."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from retrasyn.bounded_json import parse_json
from retrasyn.errors import InputError, MissingExtra, OutputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories

GEOMETRY = "geometry"
LONGITUDE_LATITUDE = ("EPSG:4326", "OGC:CRS84")
_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])
_LITTLE, _BIG = 1, 0
_FLAT, _DEEP = (1,), (1001, 2001, 0x80000001, 0x40000001)  # with an extra z or m
_SCHEMA = "https://proj.org/schemas/v0.7/projjson.schema.json"
_WGS_84: dict[str, Any] = {
    "type": "GeographicCRS",
    "name": "WGS 84",
    "datum_ensemble": {
        "name": "World Geodetic System 1984 ensemble",
        "members": [
            {"name": f"World Geodetic System 1984 ({name})"}
            for name in ("Transit", "G730", "G873", "G1150", "G1674", "G1762", "G2139", "G2296")
        ],
        "ellipsoid": {
            "name": "WGS 84",
            "semi_major_axis": 6378137,
            "inverse_flattening": 298.257223563,
        },
        "accuracy": "2.0",
        "id": {"authority": "EPSG", "code": 6326},
    },
    "coordinate_system": {
        "subtype": "ellipsoidal",
        "axis": [
            {
                "name": "Geodetic latitude",
                "abbreviation": "Lat",
                "direction": "north",
                "unit": "degree",
            },
            {
                "name": "Geodetic longitude",
                "abbreviation": "Lon",
                "direction": "east",
                "unit": "degree",
            },
        ],
    },
    "id": {"authority": "EPSG", "code": 4326},
}


# Writing


def points(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> pa.Array:
    """Return points as well-known binary, 21 bytes each: [n_points]."""
    packed = np.empty(x.size, _POINT)
    packed["order"], packed["kind"] = _LITTLE, _FLAT[0]
    packed["x"], packed["y"] = x, y
    offsets = np.arange(x.size + 1, dtype=np.int32) * np.int32(_POINT.itemsize)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(packed.view(np.uint8))]
    return pa.Array.from_buffers(pa.binary(), x.size, buffers)


def geo_entry(trajectories: Trajectories) -> dict[bytes, bytes]:
    """Return the schema's ``geo`` entry, which readers need to recognise the geometry."""
    x, y = trajectories.x, trajectories.y
    bounds = (x.min(), y.min(), x.max(), y.max()) if x.size else ()
    return entry_of(trajectories.crs, ["Point"], bounds)


def entry_of(crs: str | None, kinds: list[str], bounds: Sequence[float]) -> dict[bytes, bytes]:
    """Return the entry of a file with such geometries."""
    about: dict[str, Any] = {"encoding": "WKB", "geometry_types": kinds, "crs": projjson(crs)}
    if len(bounds) and np.isfinite(bounds).all():
        about["bbox"] = [float(edge) for edge in bounds]
    entry = {"version": "1.1.0", "primary_column": GEOMETRY, "columns": {GEOMETRY: about}}
    return {b"geo": json.dumps(entry).encode()}


def projjson(crs: str | None) -> dict[str, Any] | None:
    """Return a coordinate system as PROJJSON; degrees are built in, others need pyproj."""
    if crs is None:
        return None
    if crs.upper() == "EPSG:4326":
        return {"$schema": _SCHEMA, **_WGS_84}
    if crs.upper() == "OGC:CRS84":
        system = dict(_WGS_84["coordinate_system"], axis=_WGS_84["coordinate_system"]["axis"][::-1])
        identity = {"authority": "OGC", "code": "CRS84"}
        changes = {"name": "WGS 84 (CRS84)", "coordinate_system": system, "id": identity}
        return {"$schema": _SCHEMA, **_WGS_84, **changes}
    if crs.startswith("{"):
        return parse_json(crs)  # type: ignore[no-any-return]
    pyproj = load_extra("pyproj", f"to describe {crs}")
    try:
        return pyproj.CRS.from_user_input(crs).to_json_dict()  # type: ignore[no-any-return]
    except pyproj.exceptions.CRSError:
        raise OutputError(
            f"coordinate system {crs!r} is not known to pyproj; name it like EPSG:3857"
        ) from None


def load_extra(name: str, purpose: str) -> Any:
    """Import a library of the ``geo`` extra, or raise with the command that installs it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they warn about their own optional dependencies
            return import_module(name)
    except ImportError:
        raise MissingExtra(
            f'{name} is not installed, and is needed {purpose}: pip install "retrasyn[geo]"'
        ) from None


# Reading


def geometry_column(schema: pa.Schema) -> str | None:
    """Return the name of the geometry column, if there is one."""
    try:
        entry = parse_json((schema.metadata or {}).get(b"geo", b"{}"))
        primary = entry.get("primary_column")
    except (ValueError, AttributeError):
        raise InputError("its metadata 'geo' is damaged; write the file again") from None
    if isinstance(primary, str) and primary in schema.names:
        return primary
    for field in schema:
        if (field.metadata or {}).get(b"ARROW:extension:name", b"").startswith(b"geoarrow."):
            return str(field.name)
    return GEOMETRY if GEOMETRY in schema.names else None


def crs_of(schema: pa.Schema, geometry: str) -> str | None:
    """Return the file's coordinate system: authority and code, or its full PROJJSON."""
    try:
        if b"geo" in (schema.metadata or {}):
            about = parse_json(schema.metadata[b"geo"])["columns"][geometry]
            if "crs" not in about:
                return "OGC:CRS84"  # the standard's default
        else:
            extension = (schema.field(geometry).metadata or {}).get(b"ARROW:extension:metadata")
            about = parse_json(extension or b"{}")
        system = about.get("crs")
        if not isinstance(system, dict):
            return system if isinstance(system, str) else None
        if "id" not in system:
            return json.dumps(system)
        return f"{system['id']['authority']}:{system['id']['code']}"
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"what it says of column {geometry} is damaged; write it again") from None


def coordinates(
    column: pa.ChunkedArray,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return x and y of a column of points; any other value is an error."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0]) + 1
        raise InputError(f"column {GEOMETRY} is empty in row {row}; remove this row or fill it in")
    x, y = np.empty(len(column)), np.empty(len(column))
    row = 0
    for chunk in column.chunks:
        rows = slice(row, row + len(chunk))
        x[rows], y[rows] = _chunk_coordinates(getattr(chunk, "storage", chunk), row)
        row += len(chunk)
    return x, y


def _chunk_coordinates(chunk: pa.Array, row: int) -> tuple[Any, Any]:
    """Return x and y of one chunk that starts at row `row` of its file."""
    if pa.types.is_struct(chunk.type) and {"x", "y"} <= {field.name for field in chunk.type}:
        return chunk.field("x").to_numpy(), chunk.field("y").to_numpy()
    if chunk.type not in {pa.binary(), pa.large_binary(), pa.binary_view()}:
        raise InputError(f"column {GEOMETRY} holds {chunk.type}, not points as well-known binary")
    if not len(chunk):
        return [], []
    chunk = chunk.cast(pa.large_binary())
    offsets = np.frombuffer(chunk.buffers()[1], np.int64)[chunk.offset :][: len(chunk) + 1]
    data = np.frombuffer(chunk.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    size = int(offsets[1] - offsets[0])
    odd = np.flatnonzero(np.diff(offsets) != size)
    if not odd.size and size >= _POINT.itemsize:
        records = data.reshape(len(chunk), size)
        odd = np.flatnonzero((records[:, :5] != records[0, :5]).any(axis=1))
        if not odd.size:
            return _unpack(records, row)
    which = row + 1 + (int(odd[0]) if odd.size else 0)
    raise InputError(
        f"column {GEOMETRY} does not hold a point like the others in row {which}; "
        "give every row one point"
    )


def _unpack(records: npt.NDArray[np.uint8], row: int) -> tuple[Any, Any]:
    """Return x and y of records that share the same header."""
    order = "<" if records[0, 0] == _LITTLE else ">"
    kind = int(records[0, 1:5].copy().view(f"{order}u4")[0])
    n_numbers = 2 if kind in _FLAT else 3
    if records[0, 0] not in {_LITTLE, _BIG} or kind not in _FLAT + _DEEP:
        raise InputError(f"column {GEOMETRY} holds something other than a point in row {row + 1}")
    if records.shape[1] != 5 + 8 * n_numbers:
        raise InputError(f"column {GEOMETRY} holds a damaged point in row {row + 1}")
    numbers = np.ascontiguousarray(records[:, 5:]).view(f"{order}f8")
    return numbers[:, 0], numbers[:, 1]
