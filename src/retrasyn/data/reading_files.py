"""Trajectories from CSV and Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import InputError

if TYPE_CHECKING:
    import os

    import numpy.typing as npt

COLUMNS = ("traj_id", "t", "x", "y")
OPTIONAL = ("user_id",)
SUFFIXES = (".parquet", ".csv")


def read(path: str | os.PathLike[str]) -> Trajectories:
    """Read ``traj_id, t, x, y`` and, where present, ``user_id``; other columns are ignored.

    The format follows the suffix, ``.parquet`` or ``.csv``.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path} does not exist; check the path")
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path} ends in {path.suffix or 'nothing'}; use .parquet or .csv")
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{path} is empty; it needs the columns {', '.join(COLUMNS)}")
    try:
        table = _read_csv(path) if path.suffix.lower() == ".csv" else _read_parquet(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path} cannot be read as {path.suffix[1:]}: {first}") from None
    if table.num_rows == 0:
        raise InputError(f"{path} has no rows; nothing to synthesise from")
    columns = {name: _column(path, table, name) for name in table.column_names}
    del table
    try:
        return Trajectories.from_columns(**columns)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _read_parquet(path: Path) -> pa.Table:
    names = pa.parquet.read_schema(path).names
    return pa.parquet.read_table(path, columns=_wanted(path, names))


def _read_csv(path: Path) -> pa.Table:
    with pa.csv.open_csv(path) as reader:
        names = reader.schema.names
    options = pa.csv.ConvertOptions(include_columns=_wanted(path, names))
    return pa.csv.read_csv(path, convert_options=options)


def _wanted(path: Path, names: list[str]) -> list[str]:
    """Return the columns to read, refusing a file that lacks one."""
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise InputError(
            f"{path} has no column {', '.join(missing)} (it has {', '.join(names)}); "
            f"rename its columns to {', '.join(COLUMNS)}"
        )
    return [name for name in (*COLUMNS, *OPTIONAL) if name in names]


def _column(path: Path, table: pa.Table, name: str) -> npt.NDArray[Any]:
    """Return one column as an array, refusing empty cells."""
    column = table.column(name)
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0]) + 1
        raise InputError(
            f"{path}: column {name} is empty in row {row} ({column.null_count} such rows); "
            "remove these rows or fill them in"
        )
    if not pa.types.is_floating(column.type):
        return column.to_numpy()  # type: ignore[no-any-return]
    numbers = np.empty(len(column))  # filled chunk by chunk: joined and widened in one copy
    row = 0
    for chunk in column.chunks:
        numbers[row : row + len(chunk)] = chunk.to_numpy()
        row += len(chunk)
    return numbers
