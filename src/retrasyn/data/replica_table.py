"""All replicas of one timestamp in one Parquet file: replica (from 1), traj_id, t, x, y.

A stream of releases would otherwise take as many files, and waits for the disk, as replicas.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from retrasyn.data.metadata import Metadata
from retrasyn.data.reading_files import read_columns, unreadable
from retrasyn.files import make_durable, replacing

Columns = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Ids of streams, x and y of the points of a replica."""
_HOW_MANY = b"retrasyn:replicas"  # one without points has no row


def write_replicas(path: Path, t: int, replicas: Sequence[Columns], known: Metadata) -> None:
    """Write the replicas of a timestamp, durable but for the name when this returns."""
    sizes = [ids.size for ids, _, _ in replicas]
    ids, x, y = (np.concatenate(column) for column in zip(*replicas, strict=True))
    columns: dict[str, npt.NDArray[Any]] = {
        "replica": np.repeat(np.arange(1, len(replicas) + 1, dtype=np.int16), sizes),
        "traj_id": ids,
        "t": np.full(ids.size, t, np.int64),
        "x": x,
        "y": y,
    }
    more = {_HOW_MANY: str(len(replicas)).encode()}
    table = pa.table(columns).replace_schema_metadata(known.to_schema() | more)
    with replacing(path) as temporary:
        pa.parquet.write_table(table, temporary, use_dictionary=["replica", "t"])
        make_durable(temporary)


def read_replicas(path: Path) -> list[Columns]:
    """Return the replicas of a timestamp in their order; an InputError says why it cannot."""
    replica, ids, x, y = read_columns(path, ("replica", "traj_id", "x", "y"))
    try:
        n = int(pa.parquet.read_schema(path).metadata[_HOW_MANY])
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise unreadable(path, error) from None
    ends = np.searchsorted(replica, np.arange(1, n), side="right")
    parts = (np.split(column, ends) for column in (ids, x, y))
    return list(zip(*parts, strict=True))
