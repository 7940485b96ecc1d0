"""GeoLife: ``Data/<user>/Trajectory/*.plt``.

Six header lines, then ``lat,lon,0,altitude,days,date,time``.
Times are GMT, regardless of the timezone option.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from retrasyn.data.formats.base import Fixes, Options, Rows, constant, stem
from retrasyn.data.formats.blocks import Block, blocks, files_of
from retrasyn.data.formats.delimited import Layout, Piece, column, parse_pieces
from retrasyn.data.formats.understanding import WGS84, Columns
from retrasyn.errors import InputError

_HEADER_LINES = 6
_COLUMNS = Columns("the folder", "date and time", "longitude", "latitude")


def _rows(table: pa.Table, path: Path, lines: Any) -> Rows:
    time = pc.binary_join_element_wise(column(table, "date"), column(table, "time"), " ")
    return Rows(
        path=path,
        user=constant(_user(path), table.num_rows),
        time=time,
        x=column(table, "longitude"),
        y=column(table, "latitude"),
        lines=lines,
        columns=_COLUMNS,
        crs=WGS84,
    )


_LAYOUT = Layout(
    ("latitude", "longitude", "zero", "altitude", "days", "date", "time"),
    (
        ("latitude", pa.float64()),
        ("longitude", pa.float64()),
        ("date", pa.string()),
        ("time", pa.string()),
    ),
    _rows,
    joinable=False,  # the user is named in the path only
)


def _user(path: Path) -> str:
    """Return the name of the user's folder, or the file's name outside that layout."""
    folder = path.parent
    return folder.parent.name if folder.name.lower() == "trajectory" else stem(path)


def read_geolife(path: Path, options: Options) -> Iterator[Fixes]:
    """Read a ``.plt`` file, or all of them in a folder tree."""
    yield from parse_pieces(_pieces(files_of(path, ".plt")), replace(options, timezone="UTC"))


def _pieces(files: list[Path]) -> Iterator[Piece]:
    for file in files:
        for block in blocks(file):
            rows = block if block.first_line > 1 else _after_header(block)
            if rows.data.strip():
                yield Piece(rows, _LAYOUT)


def _after_header(block: Block) -> Block:
    lines = block.data.split(b"\n", _HEADER_LINES)
    if len(lines) <= _HEADER_LINES:
        raise InputError(
            f"{block.path}, line {len(lines)}: the file ends in its header of {_HEADER_LINES} lines"
        )
    return Block(block.path, _HEADER_LINES + 1, lines[-1])
