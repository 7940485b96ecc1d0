"""Output of Brinkhoff's network-based generator: tab-separated lines, time already in steps.

``newpoint | point | disappearpoint  id  sequence  class  t  x  y  speed  next-x  next-y``
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from retrasyn.data.formats.base import LABELS, Fixes, Options, Rows
from retrasyn.data.formats.blocks import Block, blocks, files_of
from retrasyn.data.formats.delimited import Layout, Piece, column, parse_pieces
from retrasyn.data.formats.understanding import Columns

_WORDS = pa.array(["newpoint", "point", "disappearpoint"])
_COLUMNS = Columns("id (after newpoint, point or disappearpoint)", "t", "x", "y")
_REST = re.compile(rb"^((?:[^\t\r\n]*\t){6}[^\t\r\n]*)\t[^\r\n]*", re.MULTILINE)


def _rows(table: pa.Table, path: Path, lines: Any) -> Rows:
    # a line of another kind has no position: clearing its identifier makes the check reject it
    known = pc.is_in(column(table, "kind").cast(pa.string()), value_set=_WORDS)
    user = column(table, "id")
    if not pc.all(known, min_count=0).as_py():
        user = pc.if_else(known, user.cast(pa.string()), None)
    return Rows(
        path=path,
        user=user,
        time=column(table, "t"),
        x=column(table, "x"),
        y=column(table, "y"),
        lines=lines,
        columns=_COLUMNS,
        steps=True,
    )


_LAYOUT = Layout(
    ("kind", "id", "sequence", "class", "t", "x", "y"),
    (
        ("kind", LABELS),
        ("id", LABELS),
        ("t", pa.int64()),
        ("x", pa.float64()),
        ("y", pa.float64()),
    ),
    _rows,
    delimiter="\t",
)


def read_brinkhoff(path: Path, options: Options) -> Iterator[Fixes]:
    """Read a file, or all ``.txt`` and ``.dat`` files of a folder."""
    files = files_of(path, ".txt", ".dat")
    pieces = (Piece(_trimmed(block), _LAYOUT) for file in files for block in blocks(file))
    yield from parse_pieces(pieces, options)


def _trimmed(block: Block) -> Block:
    """Drop the fields after the position; their number depends on the generator's version."""
    return Block(block.path, block.first_line, _REST.sub(rb"\1", block.data))
