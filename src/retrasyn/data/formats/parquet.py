"""Parquet and GeoParquet: columns are found by name, points are well-known binary."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from retrasyn.bounded_json import parse_json
from retrasyn.data.formats.base import Fixes, Options
from retrasyn.data.formats.blocks import files_of
from retrasyn.data.formats.columns import find_columns
from retrasyn.data.formats.tables import ROWS, fixes_of
from retrasyn.data.formats.understanding import WGS84
from retrasyn.errors import InputError


def read_parquet(path: Path, options: Options) -> Iterator[Fixes]:
    """Read a file or all ``.parquet`` files of a folder."""
    for file in files_of(path, ".parquet", ".geoparquet"):
        yield from read_table(file, options, geometry=None, crs=None)


def read_table(
    path: Path, options: Options, *, geometry: str | None, crs: str | None
) -> Iterator[Fixes]:
    """Read one file in batches; `geometry` names a column to use in place of x and y."""
    try:
        with pa.parquet.ParquetFile(path) as file:
            columns = find_columns(file.schema_arrow.names, options, path, geometry=geometry)
            batches = file.iter_batches(batch_size=ROWS, columns=columns.wanted)
            yield from fixes_of(batches, columns, path, options, crs=crs)
    except (pa.ArrowException, OSError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path} cannot be read as parquet: {first}; check that the file is whole"
        ) from None


def read_geoparquet(path: Path, options: Options) -> Iterator[Fixes]:
    """Read a file or all ``.parquet`` files of a folder."""
    for file in files_of(path, ".parquet", ".geoparquet"):
        geometry, crs = describe_geometry(file)
        yield from read_table(file, options, geometry=geometry, crs=crs)


def describe_geometry(path: Path) -> tuple[str, str | None]:
    """Return the geometry column and its coordinate system, from the ``geo`` metadata."""
    try:
        metadata = (pa.parquet.read_schema(path).metadata or {}).get(b"geo")
        geo = parse_json(metadata) if metadata is not None else None
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as parquet: {str(error)[:200]}") from None
    except ValueError:
        raise InputError(f"{path}: its geo metadata is not JSON; write the file again") from None
    if geo is None:
        raise InputError(f"{path} has no geo metadata; read it as parquet")
    try:
        name = geo["primary_column"]
        column = geo["columns"][name]
    except (KeyError, TypeError):
        raise InputError(f"{path}: its geo metadata names no primary column") from None
    return str(name), name_of_crs(column.get("crs", WGS84) if isinstance(column, dict) else None)


def name_of_crs(crs: Any) -> str | None:
    """Return the short name of a coordinate system, or its PROJJSON if it has none.

    >>> name_of_crs({"id": {"authority": "EPSG", "code": 25832}})
    'EPSG:25832'
    """
    if crs is None or isinstance(crs, str):
        return crs
    identifier = crs.get("id") if isinstance(crs, dict) else None
    if not isinstance(identifier, dict):
        return json.dumps(crs)
    name = f"{identifier.get('authority')}:{identifier.get('code')}"
    return WGS84 if name == "OGC:CRS84" else name
