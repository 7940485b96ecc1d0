"""A data set split into Parquet files: a folder to which every shard writes its own parts.

A part holds the points of one shard over some timestamps and is named after the first of them.
Writing a part again produces the same file with the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from retrasyn.data.frames import TIME
from retrasyn.data.metadata import Metadata, instants
from retrasyn.errors import OutputError
from retrasyn.files import is_there, replacing

Points = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Ids, x and y of one timestamp."""
_NAME = re.compile(r"part-(\d{5})-(\d{10})\.parquet")


def check_new_folder(path: Path) -> Path:
    """Reject a path at which no folder for parts can be created."""
    if path.suffix.lower() != ".parquet":
        raise OutputError(
            f"output {path} ends in {path.suffix or 'nothing'}; parts are Parquet files in a "
            "folder that ends in .parquet"
        )
    if is_there(path):
        raise OutputError(f"output {path} is there already; remove it or name another")
    if not path.parent.is_dir():
        raise OutputError(f"output folder {path.parent} does not exist; create it first")
    return path


def parts_in(folder: Path) -> list[Path]:
    """Return all parts of a data set, sorted by shard and time."""
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def write_part(
    folder: Path,
    shard: int,
    times: Sequence[int],
    columns: Sequence[
        tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]
    ],
    known: Metadata,
) -> None:
    """Atomically write ids, x, y and known times of some timestamps of one shard."""
    fields = {"traj_id": pa.int64(), "t": pa.int64(), "x": pa.float64(), "y": pa.float64()}
    if known.clock is not None:
        fields["time"] = TIME
    schema = pa.schema(fields, known.to_schema() or None)
    with (
        replacing(folder / f"part-{shard:05d}-{times[0]:010d}.parquet") as temporary,
        pa.parquet.ParquetWriter(temporary, schema, use_dictionary=["t", "time"]) as writer,
    ):
        for t, (ids, x, y) in zip(times, columns, strict=True):
            when = np.full(ids.size, t, np.int64)
            arrays = [pa.array(column) for column in (ids, when, x, y)]
            if known.clock is not None:
                arrays.append(pa.array(instants(known.clock, when), TIME))
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def count_points(folder: Path) -> int:
    """Return the number of points in all parts."""
    return sum(pa.parquet.read_metadata(path).num_rows for path in parts_in(folder))


def drop_after(folder: Path, t: int) -> None:
    """Remove parts that begin after timestamp t, from which a run resumes."""
    for path in parts_in(folder):
        found = _NAME.fullmatch(path.name)
        if found is not None and int(found[2]) > t:
            path.unlink()
