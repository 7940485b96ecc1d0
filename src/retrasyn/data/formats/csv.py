"""CSV with a header: columns are found by name, the delimiter is detected."""

from __future__ import annotations

import csv as standard
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from retrasyn.data.formats.base import LABELS, Fixes, Options, Rows
from retrasyn.data.formats.blocks import Block, files_of
from retrasyn.data.formats.columns import find_columns
from retrasyn.data.formats.delimited import (
    Layout,
    headed_pieces,
    parse_pieces,
    read_text,
)
from retrasyn.data.formats.tables import day_first_in, rows_of
from retrasyn.data.formats.times import has_slashed_date
from retrasyn.data.formats.understanding import Columns
from retrasyn.errors import InputError

_DELIMITERS = ",;\t|"
_TIME_TYPES = (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.int64(), pa.float64())


def read_csv(path: Path, options: Options) -> Iterator[Fixes]:
    """Read a file or all ``.csv`` and ``.txt`` files of a folder."""
    pieces = headed_pieces(
        files_of(path, ".csv", ".txt", ".tsv"),
        lambda file, header, rest: _layout(file, header, rest, options),
    )
    yield from parse_pieces(pieces, options)


def split_header(path: Path, header: bytes) -> tuple[list[str], str]:
    """Return the column names of a header and its most frequent delimiter."""
    try:
        text = header.decode().strip("\r\n")
    except UnicodeDecodeError:
        raise InputError(f"{path}, line 1: the header is not UTF-8 text") from None
    if not text.strip():
        raise InputError(f"{path}, line 1 is empty; it needs the columns of a header")
    delimiter = max(_DELIMITERS, key=text.count)
    if delimiter not in text and " " in text:
        delimiter = " "
    names = _split(text, delimiter)
    if not names:
        raise InputError(f"{path}, line 1 is no header of column names")
    return [name.strip() for name in names], delimiter


def _split(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line, empty if it cannot be split."""
    try:
        return next(standard.reader([line], delimiter=delimiter), [])
    except standard.Error:
        return []


def _has_header(names: list[str]) -> bool:
    """Whether the first line holds names, not a row: a row has a time, a fraction or no words."""
    numbers = [name for name in names if _time_type(name) != pa.string()]
    if len(numbers) < len(names):
        return all(name.isdecimal() for name in numbers)
    return names == [str(number) for number in range(len(names))]  # as pandas counts columns


def _layout(path: Path, header: bytes, rest: bytes, options: Options) -> Layout:
    names, delimiter = split_header(path, header)
    headed = _has_header(names)
    rows = rest if headed else header + b"\n" + rest
    if not headed:
        names = [str(number + 1) for number in range(len(names))]
    columns = _columns(names, options, path, headed=headed)
    sample = _split(_first_line(rows), delimiter)
    at = names.index(columns.time)
    time = sample[at] if at < len(sample) else ""
    # Arrow needs distinct names; unwanted columns may have any
    unique = [name if name in columns.wanted else f"{name} #{i}" for i, name in enumerate(names)]
    layout = Layout(
        tuple(unique),
        tuple(_types(columns, time, options).items()),
        _ToRows(columns),
        delimiter,
        headed=headed,
        joinable=not columns.owner,
    )
    if options.time_format is not None or not has_slashed_date(time):
        return layout
    known, _ = read_text(rows, layout, Block(path, 1 + headed, rows))
    day_first = day_first_in(layout.to_rows(known, path, None).time, columns, path)
    return replace(layout, to_rows=_ToRows(columns, day_first))


def _columns(names: list[str], options: Options, path: Path, *, headed: bool) -> Columns:
    """Find the columns, each of which has a name of its own."""
    try:
        columns = find_columns(names, options, path)
    except InputError as error:
        why = "" if headed else "; its first line is no header: columns have numbers"
        why += "; is the delimiter another?" if len(names) == 1 else ""
        raise InputError(f"{error}{why}") from None
    twice = [name for name in columns.wanted if names.count(name) > 1]
    if twice:
        raise InputError(f"{path}, line 1: the column {twice[0]} stands there twice; rename one")
    return columns


def _types(columns: Columns, time: str, options: Options) -> dict[str, pa.DataType]:
    """Return the types of the wanted columns, given the first time."""
    is_text = options.time_format is not None or columns.clock
    number = pa.float64() if options.decimal == "." else pa.string()
    types = {} if columns.owner else {columns.user: LABELS}
    types |= {columns.traj: LABELS} if columns.traj else {}
    for name in (columns.time, columns.clock):
        types |= {name: pa.string() if is_text else _time_type(time)} if name else {}
    for name in (columns.x, columns.y):
        types |= {name: number} if name else {}
    return types | ({columns.geometry: pa.string()} if columns.geometry else {})


def _first_line(data: bytes) -> str:
    return data.lstrip(b"\r\n").partition(b"\n")[0].decode(errors="replace").strip("\r\x00")


def _time_type(text: str) -> pa.DataType:
    """Return the Arrow type that can parse a time, or string if none can."""
    for kind in _TIME_TYPES:
        try:
            pa.array([text.strip()]).cast(kind)
        except pa.ArrowException:
            continue
        return kind
    return pa.string()


@dataclass(frozen=True, slots=True)
class _ToRows:
    """Converts parsed tables to rows."""

    columns: Columns
    day_first: bool | None = None

    def __call__(self, table: pa.Table, path: Path, lines: Any) -> Rows:
        """Return the rows of a table."""
        return replace(rows_of(table, self.columns, path, lines), day_first=self.day_first)
