"""Trajectories from CSV and Parquet files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

COLUMNS = ("traj_id", "t", "x", "y")
OPTIONAL = ("user_id",)
SUFFIXES = (".parquet", ".csv")


def read(path: str | os.PathLike[str]) -> Trajectories:
    """Read ``traj_id, t, x, y`` and, where present, ``user_id``; other columns are ignored.

    The format follows the suffix, ``.parquet`` or ``.csv``.
    """
    path = Path(path)
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists fails on a name too long
        raise InputError(f"{path} does not exist; check the path")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a .parquet or .csv file")
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path} ends in {path.suffix or 'nothing'}; use .parquet or .csv")
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{path} is empty; it needs the columns {', '.join(COLUMNS)}")
    try:
        table = _read_csv(path) if path.suffix.lower() == ".csv" else _read_parquet(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path} cannot be read as {path.suffix[1:].lower()}: {first}; "
            "check that the file is whole and its suffix right"
        ) from None
    if table.num_rows == 0:
        raise InputError(f"{path} has no rows; nothing to synthesise from")
    try:
        columns: dict[str, Any] = {name: _column(table, name) for name in table.column_names}
        del table
        return Trajectories.from_columns(**columns)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _read_parquet(path: Path) -> pa.Table:
    names = pa.parquet.read_schema(path).names
    return pa.parquet.read_table(path, columns=_wanted(path, names))


def _read_csv(path: Path) -> pa.Table:
    names = _header(path)
    options = pa.csv.ConvertOptions(
        include_columns=_wanted(path, names),
        null_values=[""],  # "nan" is a number here, and refused as one
        strings_can_be_null=True,
    )
    return pa.csv.read_csv(path, convert_options=options)


def _header(path: Path) -> list[str]:
    """Return the column names of a CSV file."""
    with path.open("rb") as file:
        line = file.readline(1 << 20)
        has_rows = bool(file.read(1 << 16).strip())
    if not line.strip():
        raise InputError(f"{path} begins with an empty line; it needs the columns of its header")
    if not has_rows:
        raise InputError(f"{path} has no rows; nothing to synthesise from")
    header = pa.csv.read_csv(pa.BufferReader(line.rstrip(b"\r\n") + b"\n"))
    return list(header.column_names)


def _wanted(path: Path, names: list[str]) -> list[str]:
    """Return the columns to read, refusing a file that lacks one or has one twice."""
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        there = ", ".join(name if name == name.strip() else repr(name) for name in names)
        raise InputError(
            f"{path} has no column {', '.join(missing)} (it has {there}); "
            f"rename its columns to {', '.join(COLUMNS)}, separated by commas"
        )
    wanted = [name for name in (*COLUMNS, *OPTIONAL) if name in names]
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise InputError(f"{path} has the column {twice[0]} twice; rename one of them")
    return wanted


def _column(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """Return one column as an array, refusing empty cells."""
    column = table.column(name)
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0]) + 1
        raise InputError(
            f"column {name} is empty in row {row} ({column.null_count} such rows); "
            "remove these rows or fill them in"
        )
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise InputError(f"column {name} holds {kind}, not numbers or UTF-8 text; convert it first")
    if not pa.types.is_floating(column.type):
        return column.to_numpy()  # type: ignore[no-any-return]
    numbers = np.empty(len(column))  # filled chunk by chunk: joined and widened in one copy
    row = 0
    for chunk in column.chunks:
        numbers[row : row + len(chunk)] = chunk.to_numpy()
        row += len(chunk)
    return numbers
