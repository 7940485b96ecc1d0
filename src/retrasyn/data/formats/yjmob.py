"""YJMob100K: CSV with ``uid,d,t,x,y``: t is the half hour of day d, x and y are cells of 500 m."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from retrasyn.data.formats.base import LABELS, Fixes, Options, Rows
from retrasyn.data.formats.blocks import files_of
from retrasyn.data.formats.csv import split_header
from retrasyn.data.formats.delimited import Layout, column, headed_pieces, parse_pieces
from retrasyn.data.formats.times import is_text
from retrasyn.data.formats.understanding import Columns
from retrasyn.errors import InputError

HEADER = ["uid", "d", "t", "x", "y"]
_HALF_HOURS = 48  # in a day
_COLUMNS = Columns("uid", "d", "x", "y", clock="t")


def _rows(table: pa.Table, path: Path, lines: Any) -> Rows:
    day, half_hour = (_whole(column(table, name)) for name in ("d", "t"))
    return Rows(
        path=path,
        user=column(table, "uid"),
        time=pc.add(pc.multiply(day, _HALF_HOURS), half_hour),
        x=column(table, "x"),
        y=column(table, "y"),
        lines=lines,
        columns=_COLUMNS,
        steps=True,
    )


def _whole(cells: pa.Array) -> pa.Array:
    """Return whole numbers, null where a text is none."""
    if is_text(cells.type):
        written = pc.match_substring_regex(cells, r"^\s*[0-9]{1,9}\s*$").fill_null(False)
        cells = pc.utf8_trim_whitespace(pc.if_else(written, cells, None))
    return cells.cast(pa.int64())


def read_yjmob(path: Path, options: Options) -> Iterator[Fixes]:
    """Read a file or all ``.csv`` files of a folder."""
    pieces = headed_pieces(files_of(path, ".csv"), lambda file, header, _: _layout(file, header))
    yield from parse_pieces(pieces, options)


def _layout(path: Path, header: bytes) -> Layout:
    names, delimiter = split_header(path, header)
    if names != HEADER:
        raise InputError(f"{path}, line 1: a file of YJMob100K has the columns {', '.join(HEADER)}")
    numbers = [("d", pa.int64()), ("t", pa.int64()), ("x", pa.float64()), ("y", pa.float64())]
    return Layout(tuple(names), (("uid", LABELS), *numbers), _rows, delimiter)
