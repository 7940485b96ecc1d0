"""Tables of any origin: files of columns, and the frames of other libraries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from retrasyn.data import frames, geoparquet
from retrasyn.data.formats.base import Fixes, Options, Rows, constant, owner_of
from retrasyn.data.formats.checking import check
from retrasyn.data.formats.columns import find_columns
from retrasyn.data.formats.delimited import column, points_of_text
from retrasyn.data.formats.understanding import Columns

if TYPE_CHECKING:
    import numpy.typing as npt

ROWS = 1 << 18
"""How many rows of a table are read at once."""
FRAME = Path("the frame")
"""What stands in the place of a path in messages about a frame."""
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


def read_frame(frame: Any, options: Options) -> Iterator[Fixes]:
    """Read the frame of another library, in batches."""
    table = frames.as_table(frame)
    geometry = geoparquet.geometry_column(table.schema)
    columns = find_columns(table.schema.names, options, FRAME, geometry=geometry)
    crs = geoparquet.crs_of(table.schema, geometry) if geometry else None
    yield from fixes_of(table.to_batches(ROWS), columns, FRAME, options, crs=crs)


def fixes_of(
    batches: Iterable[pa.RecordBatch],
    columns: Columns,
    path: Path,
    options: Options,
    *,
    crs: str | None = None,
) -> Iterator[Fixes]:
    """Check the rows of a table whose columns are known; `crs` is that of its geometry."""
    row = 1
    for batch in batches:
        table = pa.Table.from_batches([batch])
        lines = np.arange(row, row + batch.num_rows)
        yield check(rows_of(table, columns, path, lines, place="row", crs=crs), options)
        row += batch.num_rows


def rows_of(
    table: pa.Table,
    columns: Columns,
    path: Path,
    lines: Any,
    *,
    place: str = "line",
    crs: str | None = None,
) -> Rows:
    """Return the rows of a table whose columns are known."""
    if columns.geometry:
        shape = column(table, columns.geometry)
        x, y = points_of_text(shape) if _is_text(shape.type) else points(shape)
    else:
        x, y = column(table, columns.x), column(table, columns.y)
    return Rows(
        path=path,
        user=_users(table, columns, path),
        time=column(table, columns.time),
        x=x,
        y=y,
        trip=column(table, columns.traj) if columns.traj else None,
        lines=lines,
        place=place,
        columns=columns,
        crs=crs if columns.geometry else columns.crs,
    )


def _users(table: pa.Table, columns: Columns, path: Path) -> pa.Array:
    """Return the column of users, or the name of the file or folder whose rows are one person's."""
    owner = owner_of(path, columns)
    return constant(owner, table.num_rows) if owner else column(table, columns.user)


def _is_text(kind: pa.DataType) -> bool:
    return kind in {pa.string(), pa.large_string(), pa.string_view()}
