"""Writes trajectories and receipts to files, atomically."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from retrasyn.data import geojson, geoparquet
from retrasyn.data.frames import schema_of, table_of, time_texts
from retrasyn.data.geojson import BlockWriter
from retrasyn.data.metadata import Metadata, clock_of
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import MissingExtra, OutputError
from retrasyn.files import is_there, replacing

SUFFIXES = (".parquet", ".csv", ".geoparquet", ".geojson", ".mfjson")
_ROWS_AT_ONCE = 1 << 20
_FIRST_NATIVE = 21  # of pyarrow that writes geometries of Parquet's own


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Reject an output path that cannot be written, without leaving a file behind."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(
            f"output {path} ends in {path.suffix or 'nothing'}; use .parquet or .csv, "
            "or for maps .geoparquet, .geojson or .mfjson"
        )
    return check_place(path)


def check_place(path: Path) -> Path:
    """Reject a path at which no file can be created, by trying to create one."""
    try:
        if is_there(path) and path.is_dir():  # is_there raises if the name is too long
            raise OutputError(f"output {path} is a folder; name a file in it")
        if not path.parent.is_dir():
            what = (
                "is not a folder; choose another place"
                if path.parent.exists()
                else "does not exist; create it first"
            )
            raise OutputError(f"output folder {path.parent} {what}")
        with tempfile.TemporaryFile(prefix=f".{path.name}.", dir=path.parent):
            return path
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written ({error.strerror}); choose another place"
        ) from None


def check_apart(output: Path, other: Path, *, named: str) -> None:
    """Reject an output path that would overwrite another file of the same command."""
    if os.path.realpath(output) == os.path.realpath(other) or (
        os.path.exists(output) and os.path.exists(other) and output.samefile(other)  # noqa: PTH110
    ):
        raise OutputError(f"output {output} is the {named} itself; name another file")


def write(
    trajectories: Trajectories,
    path: str | os.PathLike[str],
    *,
    datetime: bool | None = None,
    on_written: Callable[[Path], None] | None = None,
) -> None:
    """Write ``traj_id, t, x, y`` and, where known, ``user_id``, sorted by (traj_id, t).

    The format follows the suffix: .parquet, .csv, .geoparquet, .geojson or .mfjson. A column
    ``time`` holds the start of each timestamp where the clock is known; with `datetime` it has to
    be, and False leaves the column out. Epoch, period and coordinate system are stored in every
    format that supports them. `on_written` is called with the finished temporary file just before
    it replaces `path`; an exception prevents the replacement.
    """
    path = check_writable(path)
    check_expressible(trajectories, path, datetime=datetime)
    with replacing(path) as temporary:
        with (
            temporary.open("wb") as file,
            block_writer(trajectories, path, file, datetime=datetime) as write_block,
        ):
            for block in trajectories.blocks(_ROWS_AT_ONCE):
                write_block(block)
        if on_written is not None:
            on_written(temporary)


def write_native(trajectories: Trajectories, path: Path) -> None:
    """Write GeoParquet 2.0, whose geometries are of a type that Parquet has itself."""
    if int(pa.__version__.partition(".")[0]) < _FIRST_NATIVE:
        raise MissingExtra(
            f"pyarrow {pa.__version__} cannot write Parquet's geometries: "
            f'pip install "pyarrow>={_FIRST_NATIVE}"'
        )
    known = trajectories.clock is not None
    with (
        replacing(path) as temporary,
        temporary.open("wb") as file,
        _native_rows(trajectories, file, datetime=known) as write_block,
    ):
        for block in trajectories.blocks(_ROWS_AT_ONCE):
            write_block(block)


def check_expressible(
    trajectories: Trajectories, path: str | os.PathLike[str], *, datetime: bool | None = None
) -> None:
    """Reject a format that cannot express this clock and coordinate system."""
    suffix = Path(path).suffix.lower()
    if suffix == ".mfjson":
        clock_of(trajectories.clock, f"{path}: MF-JSON")
    elif datetime:
        clock_of(trajectories.clock, f"{path}: the column time")
    if suffix == ".geoparquet":
        geoparquet.projjson(trajectories.crs)


def block_writer(
    trajectories: Trajectories,
    path: str | os.PathLike[str],
    file: IO[bytes],
    *,
    datetime: bool | None = None,
) -> AbstractContextManager[BlockWriter]:
    """Open the writer for the format of a path; each block passed in adds its points to `file`."""
    if datetime is None:
        datetime = trajectories.clock is not None
    match Path(path).suffix.lower():
        case ".geojson":
            return geojson.point_features(trajectories, file, datetime=datetime)
        case ".mfjson":
            return geojson.stream_features(trajectories, file)
        case ".geoparquet":
            return _geoparquet_rows(trajectories, file, datetime=datetime)
        case ".csv":
            return _csv_rows(trajectories, file, datetime=datetime)
        case _:
            return _parquet_rows(trajectories, file, datetime=datetime)


@dataclass(frozen=True, slots=True)
class _OpenRows(AbstractContextManager[BlockWriter]):
    """An open writer of tables, and what hands it a block.

    Not a generator: one that nobody ends is closed with what uses it, in any order.
    """

    writer: Any
    write_block: BlockWriter

    def __enter__(self) -> BlockWriter:
        return self.write_block

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.writer.__exit__(kind, error, trace)


def _csv_rows(trajectories: Trajectories, file: IO[bytes], *, datetime: bool) -> _OpenRows:
    schema = schema_of(trajectories, datetime=datetime)
    if datetime:
        schema = schema.set(schema.names.index("time"), pa.field("time", pa.string()))
    writer = pa.csv.CSVWriter(file, schema)

    def write_block(block: Trajectories) -> None:
        table = table_of(block)
        if datetime:
            times = time_texts(clock_of(block.clock, "the column time"), block.t)
            table = table.add_column(schema.names.index("time"), "time", times)
        writer.write_table(table)

    return _OpenRows(writer, write_block)


def _parquet_rows(trajectories: Trajectories, file: IO[bytes], *, datetime: bool) -> _OpenRows:
    writer = _parquet_writer(file, schema_of(trajectories, datetime=datetime))
    return _OpenRows(writer, lambda block: writer.write_table(table_of(block, datetime=datetime)))


def _geoparquet_rows(trajectories: Trajectories, file: IO[bytes], *, datetime: bool) -> _OpenRows:
    entry = geoparquet.geo_entry(trajectories)
    return _geometry_rows(trajectories, file, pa.binary(), entry, datetime=datetime)


def _native_rows(trajectories: Trajectories, file: IO[bytes], *, datetime: bool) -> _OpenRows:
    geometry = geoparquet.NativeGeometry(trajectories.crs)
    entry = geoparquet.native_entry(trajectories)
    return _geometry_rows(trajectories, file, geometry, entry, datetime=datetime)


def _geometry_rows(
    trajectories: Trajectories,
    file: IO[bytes],
    geometry: pa.DataType,
    entry: dict[bytes, bytes],
    *,
    datetime: bool,
) -> _OpenRows:
    fields = [
        *(field for field in schema_of(trajectories, datetime=datetime) if field.name not in "xy"),
        pa.field(geoparquet.GEOMETRY, geometry),
    ]
    schema = pa.schema(fields, entry | Metadata(trajectories.clock, trajectories.crs).to_schema())
    writer = _parquet_writer(file, schema)

    def write_block(block: Trajectories) -> None:
        table = table_of(block, datetime=datetime).drop_columns(["x", "y"])
        points = geoparquet.points(block.x, block.y).cast(geometry)
        table = table.append_column(geoparquet.GEOMETRY, points)
        writer.write_table(table.replace_schema_metadata(schema.metadata))

    return _OpenRows(writer, write_block)


def _parquet_writer(file: IO[bytes], schema: pa.Schema) -> Any:
    # Coordinates are mostly distinct: dictionary encoding would only cost time.
    unique = {"x", "y", geoparquet.GEOMETRY}
    coded = [name for name in schema.names if name not in unique]
    return pa.parquet.ParquetWriter(file, schema, use_dictionary=coded)
