"""Reads trajectories from CSV, Parquet and GeoParquet files."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from retrasyn.data import geoparquet
from retrasyn.data.frames import COLUMNS, OPTIONAL, column
from retrasyn.data.metadata import Metadata
from retrasyn.data.parts import parts_in
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import InputError

SUFFIXES = (".parquet", ".csv", ".geoparquet")


def read(
    path: str | os.PathLike[str],
    kind: str | None = None,
    *,
    every: float | str | None = None,
    **options: Any,
) -> Trajectories:
    """Read ``traj_id, t, x, y`` and, where present, ``user_id``; other columns are ignored.

    The format follows the suffix, ``.parquet``, ``.csv`` or ``.geoparquet``. A folder of parts
    written by shards is read like a single file. A geometry column of a Parquet file is used in
    place of x and y. Epoch, period and coordinate system are read if the file stores them.

    Args:
        path: A file, or for some raw formats a folder.
        kind: A raw format, such as ``tdrive`` or ``gpx``, or ``auto``: the fixes are then
            discretised into time steps. None: the file already has numbered time steps.
        every: Length of a time step of a raw format, in seconds or as text (``10min``).
        options: How a raw format is read: ``user``, ``time``, ``x``, ``y``, ``traj`` name
            columns; ``timezone``, ``on_error`` and ``from_crs`` as in ``retrasyn convert``.
    """
    if kind is not None:
        from retrasyn.data.converting import convert  # noqa: PLC0415 - slow, and rarely needed

        return convert(path, every=every, format=kind, **options)
    if every is not None or options:
        raise InputError(f"{path}: only raw formats take options; name one, or kind='auto'")
    path = check_readable(path)
    try:
        table = read_csv(path) if path.suffix.lower() == ".csv" else _read_parquet(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from None
    if table.num_rows == 0:
        raise InputError(f"{path} has no rows; nothing to synthesise from")
    try:
        known = metadata_of(table.schema)
        columns: dict[str, Any] = {}
        for name in table.column_names:
            if name in (*COLUMNS, *OPTIONAL):
                columns[name] = column(table.column(name), name)
            else:
                columns["x"], columns["y"] = geoparquet.coordinates(table.column(name))
        del table
        found = Trajectories.from_columns(**columns, clock=known.clock, crs=known.crs)
        # Parts always have to be merged in order, so sorting them repairs nothing.
        return dataclasses.replace(found, notes=()) if path.is_dir() else found
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def check_readable(path: str | os.PathLike[str]) -> Path:
    """Reject a path that is not a file or has an unsupported format."""
    path = Path(path)
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists fails on a name too long
        raise InputError(f"{path} does not exist; check the path")
    if path.is_dir() and not parts_in(path):
        raise InputError(f"{path} is a folder; name a .parquet or .csv file")
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{path} ends in {path.suffix or 'nothing'}; use .parquet or .csv (or .geoparquet); "
            "retrasyn convert reads other formats"
        )
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{path} is empty; it needs the columns {', '.join(COLUMNS)}")
    return path


def unreadable(path: Path, error: Exception) -> InputError:
    """Return the error for a file whose content does not match its suffix."""
    first = str(error).splitlines()[0] if str(error) else type(error).__name__
    first = re.sub(r"(got \d+): .*", r"\1", first)  # pyarrow would quote the whole row
    return InputError(
        f"{path} cannot be read as {path.suffix[1:].lower()}: {first}; "
        "check that the file is whole and its suffix right"
    )


def read_columns(path: Path, names: Sequence[str]) -> list[npt.NDArray[Any]]:
    """Read columns of a Parquet file we wrote and checked ourselves, without validation."""
    try:
        with pa.parquet.ParquetFile(path, memory_map=True) as file:
            table = file.read(list(names), use_threads=False)  # its own threads would cost more
        return [table.column(name).to_numpy() for name in names]
    except (pa.ArrowException, OSError, KeyError) as error:
        raise unreadable(path, error) from None


def metadata_of(schema: pa.Schema) -> Metadata:
    """Return the clock and coordinate system stored in a Parquet schema."""
    known = Metadata.of_schema(schema.metadata)
    if known.crs is None and b"geo" in (schema.metadata or {}):
        geometry = geoparquet.geometry_column(schema)
        if geometry is not None:
            return Metadata(known.clock, geoparquet.crs_of(schema, geometry))
    return known


def system_of(path: Path) -> str | None:
    """Return the coordinate system that a Parquet file or folder of parts says, if any."""
    file = next(iter(parts_in(path)), path) if path.is_dir() else path
    if file.suffix.lower() == ".csv" or not file.is_file():
        return None
    try:
        return metadata_of(pa.parquet.read_schema(file)).crs
    except (pa.ArrowException, OSError, InputError):
        return None  # whoever reads the whole file says what is wrong


def points_column(schema: pa.Schema) -> str | None:
    """Return the geometry column, if a Parquet file has neither x nor y."""
    if {"x", "y"} & set(schema.names):
        return None
    return geoparquet.geometry_column(schema)


def _read_parquet(path: Path) -> pa.Table:
    if path.is_dir():
        return pa.concat_tables([_read_parquet(part) for part in parts_in(path)])
    schema = pa.parquet.read_schema(path)
    try:
        points = points_column(schema)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if points is None:
        return pa.parquet.read_table(path, columns=_wanted(path, schema.names))
    wanted = _wanted(path, [*schema.names, "x", "y"])
    names = [name for name in wanted if name not in {"x", "y"}]
    return pa.parquet.read_table(path, columns=[*names, points])


def read_csv(path: Path) -> pa.Table:
    """Read the known columns of a CSV file."""
    return _parse_csv(path, _wanted(path, header(path)))


def _parse_csv(path: Path, columns: list[str]) -> pa.Table:
    """Read columns of a CSV file; types come from the first rows or else the column's name."""
    numbers = dict.fromkeys(("t", "x", "y"), pa.float64())
    kinds = [{}, numbers, numbers | dict.fromkeys(("traj_id", "user_id"), pa.string())]
    refusals = []
    for known in kinds:
        try:
            return pa.csv.read_csv(path, convert_options=_conversion(columns, known))
        except pa.ArrowInvalid as error:  # a later row has another type than the first ones
            refusals.append(error)
    raise refusals[0]


def _conversion(columns: list[str], kinds: dict[str, pa.DataType]) -> pa.csv.ConvertOptions:
    return pa.csv.ConvertOptions(
        include_columns=columns,
        column_types=kinds,
        null_values=[""],  # "nan" parses as a number and is rejected later
        strings_can_be_null=True,
    )


def header(path: Path) -> list[str]:
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
    """Return the columns to read; a missing or duplicate one is an error."""
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        there = ", ".join(name if name == name.strip() else repr(name) for name in names)
        raise InputError(
            f"{path} has no column {', '.join(missing)} (it has {there}); "
            f"rename its columns to {', '.join(COLUMNS)}, separated by commas, "
            "or have them found by retrasyn convert"
        )
    wanted = [name for name in (*COLUMNS, *OPTIONAL) if name in names]
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise InputError(f"{path} has the column {twice[0]} twice; rename one of them")
    return wanted


@dataclass(frozen=True, slots=True)
class OddRow:
    """A row of a CSV file with too few or too many cells."""

    row: int  # counted from 1, the header not included
    n_cells: int
    n_expected: int


@dataclass(frozen=True, slots=True)
class Raw:
    """The known columns of a file as read, before any validation."""

    table: pa.Table
    names: list[str] = field(default_factory=list)  # all columns of the file
    odd: tuple[OddRow, ...] = ()  # rows missing from the table
    refusal: str | None = None  # why the file was read as text

    @property
    def points(self) -> str | None:
        """The geometry column used in place of x and y, if there is one."""
        return points_column(self.table.schema)

    def row_number(self, row: int) -> int:
        """Return the row number in the file of a row of the table."""
        number = row + 1
        for odd in self.odd:  # ascending
            number += odd.row <= number
        return number

    def values(self, row: int) -> dict[str, Any]:
        """Return the cells of a row by name, with points split into x and y."""
        cells = {
            name: self.table.column(name)[row].as_py()
            for name in (*COLUMNS, *OPTIONAL)
            if name in self.table.column_names
        }
        return {name: _plain(value) for name, value in cells.items()}


def read_raw(path: str | os.PathLike[str]) -> Raw:
    """Read the known columns without validating them; only a file that is no table is an error."""
    path = check_readable(path)
    try:
        return _raw_csv(path) if path.suffix.lower() == ".csv" else _raw_parquet(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from None


def _raw_parquet(path: Path) -> Raw:
    if path.is_dir():
        return Raw(_read_parquet(path), list(COLUMNS))
    schema = pa.parquet.read_schema(path)
    points = points_column(schema)
    wanted = [name for name in (*COLUMNS, *OPTIONAL, points) if schema.names.count(name) == 1]
    return Raw(pa.parquet.read_table(path, columns=wanted), schema.names)


def _raw_csv(path: Path) -> Raw:
    names = header(path)
    wanted = [name for name in (*COLUMNS, *OPTIONAL) if names.count(name) == 1]
    if not wanted:
        return Raw(pa.table({}), names)
    try:
        return Raw(_parse_csv(path, wanted), names)
    except pa.ArrowInvalid as error:
        refusal = str(error).splitlines()[0]
    odd: list[OddRow] = []

    def skip(row: Any) -> str:
        odd.append(OddRow(row.number - 1, row.actual_columns, row.expected_columns))
        return "skip"

    table = pa.csv.read_csv(
        path,
        read_options=pa.csv.ReadOptions(use_threads=False),  # threads lose row numbers
        parse_options=pa.csv.ParseOptions(invalid_row_handler=skip),
        convert_options=_conversion(wanted, dict.fromkeys(wanted, pa.string())),
    )
    return Raw(table, names, tuple(odd), refusal)


def _plain(value: Any) -> Any:
    """Return a cell as a JSON-compatible value."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, int | float | str | None) else str(value)
