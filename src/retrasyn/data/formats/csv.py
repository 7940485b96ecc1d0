"""CSV with a header: columns are found by name, the delimiter is detected."""

from __future__ import annotations

import csv as standard
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from retrasyn.data.formats.base import Fixes, Options, Rows
from retrasyn.data.formats.blocks import files_of
from retrasyn.data.formats.columns import find_columns
from retrasyn.data.formats.delimited import (
    Layout,
    headed_pieces,
    label_types,
    number_types,
    parse_pieces,
)
from retrasyn.data.formats.tables import rows_of
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


def _layout(path: Path, header: bytes, rest: bytes, options: Options) -> Layout:
    names, delimiter = split_header(path, header)
    columns = find_columns(names, options, path)
    twice = [name for name in columns.wanted if names.count(name) > 1]
    if twice:
        raise InputError(f"{path}, line 1: the column {twice[0]} stands there twice; rename one")
    sample = _split(_first_line(rest), delimiter)
    at = names.index(columns.time)
    time_type = _time_type(sample[at] if at < len(sample) else "")
    types = [
        *label_types(*([] if columns.owner else [columns.user]), columns.traj),
        (columns.time, time_type),
        *number_types(columns.x, columns.y),
    ]
    if columns.geometry:
        types.append((columns.geometry, pa.string()))
    # Arrow needs distinct names; unwanted columns may have any
    unique = [name if name in columns.wanted else f"{name} #{i}" for i, name in enumerate(names)]
    wanted = tuple(dict(types).items())
    return Layout(tuple(unique), wanted, _ToRows(columns), delimiter, joinable=not columns.owner)


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

    def __call__(self, table: pa.Table, path: Path, lines: Any) -> Rows:
        """Return the rows of a table."""
        return rows_of(table, self.columns, path, lines)
