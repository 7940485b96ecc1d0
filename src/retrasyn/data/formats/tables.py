"""Tables of any origin: files of columns, and the frames of other libraries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from retrasyn.data import frames, geoparquet
from retrasyn.data.formats.base import Fixes, Options, Rows, constant, owner_of
from retrasyn.data.formats.checking import check
from retrasyn.data.formats.columns import find_columns, plain
from retrasyn.data.formats.delimited import column, points_of_text
from retrasyn.data.formats.times import formats_of, is_day_first, is_text
from retrasyn.data.formats.understanding import Columns
from retrasyn.errors import InputError

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
    day_first: bool | None = None
    for batch in batches:
        table = pa.Table.from_batches([batch])
        lines = np.arange(row, row + batch.num_rows)
        rows = rows_of(table, columns, path, lines, place="row", crs=crs)
        if row == 1 and options.time_format is None:
            day_first = day_first_in(rows.time, columns, path)
        yield check(replace(rows, day_first=day_first), options)
        row += batch.num_rows


def day_first_in(times: pa.Array, columns: Columns, path: Path) -> bool | None:
    """Whether dates such as 31/12/2020 begin with the day; None if there are none."""
    try:
        return is_day_first(times)
    except ValueError as error:
        day, month = formats_of(str(error))
        raise InputError(
            f"{path}: {columns.names['time']} {str(error)!r} may begin with the day or with the "
            f'month, and no other date says which; say `time_format="{day}"` or '
            f'`time_format="{month}"`'
        ) from None


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
        x, y = points_of_text(shape) if is_text(shape.type) else points(shape)
    else:
        x, y = (_coordinates(column(table, name), name) for name in (columns.x, columns.y))
    return Rows(
        path=path,
        user=_users(table, columns, path),
        time=_times(table, columns),
        x=x,
        y=y,
        trip=column(table, columns.traj) if columns.traj else None,
        lines=lines,
        place=place,
        columns=columns,
        crs=crs if columns.geometry else columns.crs,
    )


def _coordinates(cells: pa.Array, name: str) -> pa.Array:
    """Return coordinates; Google's latitudeE7 counts ten-millionths of a degree."""
    if not plain(name).endswith("e7") or is_text(cells.type):
        return cells
    return pc.divide(cells.cast(pa.float64()), 1e7)


def _users(table: pa.Table, columns: Columns, path: Path) -> pa.Array:
    """Return the column of users, or the name of the file or folder whose rows are one person's."""
    owner = owner_of(path, columns)
    return constant(owner, table.num_rows) if owner else column(table, columns.user)


def _times(table: pa.Table, columns: Columns) -> pa.Array:
    """Return the times, joined from dates and times of day if they stand apart."""
    time = column(table, columns.time)
    if not columns.clock:
        return time
    parts = _written(time, "%Y-%m-%d"), _written(column(table, columns.clock), "%H:%M:%S")
    return pc.binary_join_element_wise(*parts, " ")


def _written(cells: pa.Array, form: str) -> pa.Array:
    """Return a column as text."""
    if pa.types.is_timestamp(cells.type) or pa.types.is_date(cells.type):
        return pc.strftime(cells, format=form)
    return pc.utf8_trim_whitespace(cells.cast(pa.string()))
