"""All replicas of one timestamp in one Parquet file: replica (from 1), traj_id, t, x, y.

A stream of releases would otherwise take as many files, and waits for the disk, as replicas. Each
replica is a row group of its own, and can be read alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from retrasyn.data.metadata import Metadata
from retrasyn.data.reading_files import unreadable
from retrasyn.files import make_durable, replacing

Columns = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Ids of streams, x and y of the points of a replica."""
_SCHEMA = {
    "replica": pa.int16(),
    "traj_id": pa.int64(),
    "t": pa.int64(),
    "x": pa.float64(),
    "y": pa.float64(),
}


def write_replicas(path: Path, t: int, replicas: Sequence[Columns], known: Metadata) -> None:
    """Write the replicas of a timestamp, durable but for the name when this returns."""
    schema = pa.schema(_SCHEMA, known.to_schema())
    coded = ["replica", "t"]
    with replacing(path) as temporary:
        with pa.parquet.ParquetWriter(temporary, schema, use_dictionary=coded) as writer:
            for number, (ids, x, y) in enumerate(replicas, 1):
                columns = [np.full(ids.size, number), ids, np.full(ids.size, t), x, y]
                arrays = [
                    pa.array(column, kind)
                    for column, kind in zip(columns, _SCHEMA.values(), strict=True)
                ]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
        make_durable(temporary)


def count_replicas(path: Path) -> int:
    """Return how many replicas a file holds; an InputError says why it cannot be read."""
    try:
        with pa.parquet.ParquetFile(path) as file:
            return int(file.num_row_groups)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from None


def read_replica(path: Path, number: int) -> Columns | None:
    """Return the points of one replica, from 1 on; None if there are not so many."""
    try:
        with pa.parquet.ParquetFile(path, memory_map=True) as file:
            if not 0 < number <= file.num_row_groups:
                return None
            table = file.read_row_group(number - 1, ["traj_id", "x", "y"], use_threads=False)
        ids, x, y = (table.column(name).to_numpy() for name in ("traj_id", "x", "y"))
    except (pa.ArrowException, OSError, KeyError) as error:
        raise unreadable(path, error) from None
    return ids, x, y
