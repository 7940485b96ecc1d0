"""Porto taxis: a CSV of trips, each with a POLYLINE of points fifteen seconds apart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from retrasyn.data.formats.base import LABELS, Fixes, Options, Rows
from retrasyn.data.formats.blocks import files_of
from retrasyn.data.formats.csv import split_header
from retrasyn.data.formats.delimited import Layout, column, headed_pieces, parse_pieces
from retrasyn.data.formats.understanding import WGS84, Columns
from retrasyn.errors import InputError

_SECONDS = 15
_WANTED = ("TRIP_ID", "TAXI_ID", "TIMESTAMP", "POLYLINE")
_COLUMNS = Columns("TAXI_ID", "TIMESTAMP", traj="TRIP_ID", geometry="POLYLINE")
_POINT = r"\[\s*-?[0-9.]+(?:[eE][+-]?[0-9]+)?\s*,\s*-?[0-9.]+(?:[eE][+-]?[0-9]+)?\s*\]"
_POLYLINE = rf"^\s*\[\s*(?:{_POINT}(?:\s*,\s*{_POINT})*)?\s*\]\s*$"


def _rows(table: pa.Table, path: Path, lines: Any) -> Rows:
    """Expand trips to one row per point; a broken polyline gives one row without position."""
    polyline = column(table, "POLYLINE")
    whole = pc.match_substring_regex(polyline, _POLYLINE).fill_null(False)
    bare = pc.replace_substring_regex(pc.if_else(whole, polyline, "?,?"), r"[\[\]\s]", "")
    fields = pc.split_pattern(pc.if_else(pc.equal(bare, ""), None, bare), ",")
    n_fields = pc.list_value_length(fields).fill_null(0).to_numpy()
    n_points = n_fields // 2  # [n_trips]
    trip = np.repeat(np.arange(table.num_rows), n_points)  # [n_points]
    sequence = np.arange(trip.size) - np.repeat(np.cumsum(n_points) - n_points, n_points)
    flat = pc.list_flatten(fields)
    flat = pc.if_else(pc.equal(flat, "?"), None, flat)
    start = column(table, "TIMESTAMP")
    if pa.types.is_string(start.type):
        written = pc.match_substring_regex(start, r"^\s*[0-9]{1,12}\s*$").fill_null(False)
        start = pc.utf8_trim_whitespace(pc.if_else(written, start, None)).cast(pa.int64())
    seconds = pc.add(start.take(pa.array(trip)), pa.array(sequence * _SECONDS))
    return Rows(
        path=path,
        user=column(table, "TAXI_ID").take(pa.array(trip)),
        time=seconds.cast(pa.timestamp("s", "UTC")),
        x=flat.take(pa.array(np.arange(trip.size) * 2)),
        y=flat.take(pa.array(np.arange(trip.size) * 2 + 1)),
        trip=column(table, "TRIP_ID").take(pa.array(trip)),
        lines=None if lines is None else lines[trip],
        columns=_COLUMNS,
        crs=WGS84,
    )


def read_porto(path: Path, options: Options) -> Iterator[Fixes]:
    """Read a file or all ``.csv`` files of a folder."""
    pieces = headed_pieces(files_of(path, ".csv"), lambda file, header, _: _layout(file, header))
    yield from parse_pieces(pieces, options)


def _layout(path: Path, header: bytes) -> Layout:
    names, delimiter = split_header(path, header)
    missing = [name for name in _WANTED if name not in names]
    if missing:
        raise InputError(
            f"{path}, line 1: no column {', '.join(missing)} (it has {', '.join(names)[:200]}); "
            "a file of Porto taxis has TRIP_ID, TAXI_ID, TIMESTAMP and POLYLINE"
        )
    types = (
        ("TRIP_ID", LABELS),
        ("TAXI_ID", LABELS),
        ("TIMESTAMP", pa.int64()),
        ("POLYLINE", pa.string()),
    )
    return Layout(tuple(names), types, _rows, delimiter)
