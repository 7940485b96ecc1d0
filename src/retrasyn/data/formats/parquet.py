"""Parquet of any library: columns are found by name; geometry only where the file is GeoParquet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from retrasyn.data.formats import wkb
from retrasyn.data.formats.base import Fixes, Options, Rows
from retrasyn.data.formats.checking import check
from retrasyn.data.formats.columns import Columns, find_columns
from retrasyn.data.formats.delimited import column, points_of_text
from retrasyn.data.formats.parallel import files_of
from retrasyn.errors import InputError

_ROWS = 1 << 18


def read_parquet(path: Path, options: Options) -> Iterator[Fixes]:
    """Read a file or all ``.parquet`` files of a folder."""
    for file in files_of(path, ".parquet", ".geoparquet"):
        yield from read_table(file, options, geometry=None, crs=None)


def read_table(
    path: Path, options: Options, *, geometry: str | None, crs: str | None
) -> Iterator[Fixes]:
    """Read one file batch by batch; `geometry` names a column to use in place of x and y."""
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
        x, y = points_of_text(shape) if pa.types.is_string(shape.type) else wkb.points(shape)
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
