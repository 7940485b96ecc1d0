"""Feather and Arrow IPC, as a file or as a stream: columns are found by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from retrasyn.data import geoparquet
from retrasyn.data.formats.base import Fixes, Options
from retrasyn.data.formats.blocks import files_of, whole_file
from retrasyn.data.formats.columns import find_columns
from retrasyn.data.formats.tables import fixes_of
from retrasyn.errors import InputError

SUFFIXES = (".feather", ".arrow", ".ipc", ".arrows")
_MARK = b"ARROW1"


def read_feather(path: Path, options: Options) -> Iterator[Fixes]:
    """Read a file or all such files of a folder."""
    for file in files_of(path, *SUFFIXES):
        with whole_file(file) as whole:
            yield from _read(file, whole, options)


def _read(path: Path, whole: Path, options: Options) -> Iterator[Fixes]:
    try:
        with whole.open("rb") as start:
            is_file = start.read(len(_MARK)) == _MARK
        opener = pa.ipc.open_file if is_file else pa.ipc.open_stream
        with pa.OSFile(str(whole)) as file, opener(file) as reader:
            geometry = geoparquet.geometry_column(reader.schema)
            crs = geoparquet.crs_of(reader.schema, geometry) if geometry else None
            columns = find_columns(reader.schema.names, options, path, geometry=geometry)
            batches = _batches(reader) if is_file else reader
            yield from fixes_of(batches, columns, path, options, crs=crs)
    except (pa.ArrowException, OSError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path} cannot be read as feather: {first}; check that the file is whole"
        ) from None


def _batches(reader: pa.RecordBatchFileReader) -> Iterator[pa.RecordBatch]:
    """Yield one batch after the other, so that they need not fit into memory together."""
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)
