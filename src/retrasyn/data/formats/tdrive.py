"""T-Drive: a folder of text files with lines ``id,YYYY-MM-DD HH:MM:SS,lon,lat``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from retrasyn.data.formats.base import LABELS, Fixes, Options, Rows
from retrasyn.data.formats.blocks import blocks, files_of
from retrasyn.data.formats.delimited import Layout, Piece, column, parse_pieces
from retrasyn.data.formats.understanding import WGS84, Columns

_COLUMNS = Columns("id", "time", "longitude", "latitude")


def _rows(table: pa.Table, path: Path, lines: Any) -> Rows:
    user, time, x, y = (column(table, name) for name in _COLUMNS.wanted)
    return Rows(path=path, user=user, time=time, x=x, y=y, lines=lines, columns=_COLUMNS, crs=WGS84)


_LAYOUT = Layout(
    tuple(_COLUMNS.wanted),
    (
        ("id", LABELS),
        ("time", pa.timestamp("us")),
        ("longitude", pa.float64()),
        ("latitude", pa.float64()),
    ),
    _rows,
)


def read_tdrive(path: Path, options: Options) -> Iterator[Fixes]:
    """Read a file or all ``.txt`` files of a folder; empty files are taxis without data."""
    files = files_of(path, ".txt")
    pieces = (Piece(block, _LAYOUT) for file in files for block in blocks(file))
    yield from parse_pieces(pieces, options)
