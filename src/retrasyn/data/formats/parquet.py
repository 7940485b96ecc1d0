"""Parquet and GeoParquet: columns are found by name, points are well-known binary."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from retrasyn.bounded_json import parse_json
from retrasyn.data.formats.base import WGS84, Fixes, Options, Rows
from retrasyn.data.formats.blocks import files_of
from retrasyn.data.formats.checking import check
from retrasyn.data.formats.columns import Columns, find_columns
from retrasyn.data.formats.delimited import column, points_of_text
from retrasyn.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt


_POINTS = np.array([1, 1001, 2001, 3001])  # xy, xyz, xym, xyzm
_FLAGS = 0xE0000000  # EWKB flags: z, m, SRID
_HAS_SYSTEM = 0x20000000
_HEADER = 5
_SHORTEST = 21


def points(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return x and y of every point; null for empty cells and other geometries."""
    if pa.types.is_struct(column.type):  # GeoArrow stores coordinates as columns
        return pc.struct_field(column, "x"), pc.struct_field(column, "y")
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    column = column.cast(pa.large_binary())
    lengths = pc.binary_length(column).fill_null(0).to_numpy()
    _, offsets_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[column.offset :][: len(column)]
    data = np.frombuffer(data_buffer or b"", np.uint8)
    rows = np.flatnonzero(lengths >= _SHORTEST)
    begins = offsets[rows]
    little = data[begins] == 1
    kind = _gather(data, begins + 1, "u4", little)
    extra = np.where(kind & _HAS_SYSTEM, 4, 0)
    shape = np.isin(kind & ~np.uint32(_FLAGS), _POINTS) & (lengths[rows] >= _SHORTEST + extra)
    rows, begins, little = rows[shape], (begins + _HEADER + extra)[shape], little[shape]
    x, y = np.full((2, len(column)), np.nan)
    x[rows] = _gather(data, begins, "f8", little)
    y[rows] = _gather(data, begins + 8, "f8", little)
    return pa.array(x, mask=np.isnan(x)), pa.array(y, mask=np.isnan(y))


def _gather(
    data: npt.NDArray[np.uint8],
    begins: npt.NDArray[np.int64],
    kind: str,
    little: npt.NDArray[np.bool_],
) -> npt.NDArray[Any]:
    """Return the numbers at the given byte offsets, each in its own byte order."""
    taken = data[begins[:, None] + np.arange(np.dtype(kind).itemsize)]  # [n, n_bytes]
    forth, back = taken.view(f"<{kind}")[:, 0], taken.view(f">{kind}")[:, 0]
    numbers: npt.NDArray[Any] = np.where(little, forth, back)
    return numbers


_ROWS = 1 << 18


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
            row = 1
            for batch in file.iter_batches(batch_size=_ROWS, columns=columns.wanted):
                table = pa.Table.from_batches([batch])
                yield check(_rows(table, path, columns, row, crs), options)
                row += len(batch)
    except (pa.ArrowException, OSError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path} cannot be read as parquet: {first}; check that the file is whole"
        ) from None


def _rows(table: pa.Table, path: Path, columns: Columns, row: int, crs: str | None) -> Rows:
    if columns.geometry:
        shape = column(table, columns.geometry)
        x, y = points_of_text(shape) if pa.types.is_string(shape.type) else points(shape)
    else:
        x, y = column(table, columns.x), column(table, columns.y)
    return Rows(
        path=path,
        user=column(table, columns.user),
        time=column(table, columns.time),
        x=x,
        y=y,
        trip=column(table, columns.traj) if columns.traj else None,
        lines=np.arange(row, row + table.num_rows),
        place="row",
        names=columns.names,
        crs=crs or columns.crs,
    )


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
