"""JSON records: an object per line, a list of objects, or an object that holds such a list.

Members of members are named with a point between, such as ``vehicle.position.latitude``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from retrasyn.data.formats.base import Fixes, Options, refusal
from retrasyn.data.formats.blocks import files_of, unpacked
from retrasyn.data.formats.columns import find_columns
from retrasyn.data.formats.geojson import Features, numbers_or_texts
from retrasyn.data.formats.tables import fixes_of
from retrasyn.errors import InputError

SUFFIXES = (".jsonl", ".ndjson", ".json")
_ROWS = 1 << 16
_LIST = re.compile(r"\A\s*(?:\{\s*\"[^\"]*\"\s*:\s*)?\[")


def read_records(path: Path, options: Options) -> Iterator[Fixes]:
    """Read a file, or all ``.jsonl``, ``.ndjson`` and ``.json`` files of a folder."""
    for file in files_of(path, *SUFFIXES):
        records = _records(file)
        first = list(islice(records, _ROWS))
        if not first:
            raise InputError(f"{file} holds no record")
        names = list(dict.fromkeys(name for record in first for name in record))
        columns = find_columns(names, options, file)
        batches = _batches(first, records, columns.wanted)
        yield from fixes_of(batches, columns, file, options)


def _batches(
    first: list[dict[str, Any]], rest: Iterator[dict[str, Any]], wanted: list[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the wanted members of all records as columns."""
    records = first
    while records:
        columns = [numbers_or_texts([record.get(name) for record in records]) for name in wanted]
        yield pa.RecordBatch.from_arrays(columns, wanted)
        records = list(islice(rest, _ROWS))


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield every record, flat."""
    with unpacked(path) as file:
        values = iter(Features(path, file, begins=_LIST))
        first = list(islice(values, 2))
        if len(first) == 1:
            first = [(first[0][0], record) for record in _listed(first[0][1])]
        for line, record in chain(first, values):
            if not isinstance(record, dict):
                raise refusal(path, line, "this is no JSON object with names and values")
            yield _flat(record)


def _listed(value: Any) -> list[Any]:
    """Return the objects of the one list that the only value of a file holds, or the value."""
    members = value.values() if isinstance(value, dict) else ()
    lists = [each for each in members if isinstance(each, list) and each]
    return lists[0] if len(lists) == 1 else [value]


def _flat(record: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Return a record without records in it."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        inner = _flat(value, f"{before}{name}.") if isinstance(value, dict) else None
        flat |= {f"{before}{name}": value} if inner is None else inner
    return flat
