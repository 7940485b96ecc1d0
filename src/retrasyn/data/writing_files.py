"""Trajectories and receipts to files, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from retrasyn.data.reading_files import SUFFIXES
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import OutputError

_ROWS_AT_ONCE = 1 << 20
_SCHEMA = pa.schema(
    [("traj_id", pa.int64()), ("t", pa.int64()), ("x", pa.float64()), ("y", pa.float64())]
)


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Refuse an output that could not be written later; leaves nothing behind."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(f"output {path} ends in {path.suffix or 'nothing'}; use .parquet or .csv")
    if path.is_dir():
        raise OutputError(f"output {path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise OutputError(f"output folder {path.parent} does not exist; create it first")
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"output folder {path.parent} cannot be written; choose another")
    return path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary file that becomes `path` when the block ends well, and vanishes if not."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def write(trajectories: Trajectories, path: str | os.PathLike[str]) -> None:
    """Write ``traj_id, t, x, y`` sorted by (traj_id, t); the format follows the suffix."""
    path = check_writable(path)
    is_csv = path.suffix.lower() == ".csv"
    with replacing(path) as temporary, temporary.open("wb") as file:
        # Coordinates are all different: a dictionary of them would only cost time.
        writer = (
            pa.csv.CSVWriter(file, _SCHEMA)
            if is_csv
            else pa.parquet.ParquetWriter(file, _SCHEMA, use_dictionary=["traj_id", "t"])
        )
        with writer:
            for block in trajectories.blocks(_ROWS_AT_ONCE):
                columns = [block.traj_id, block.t, block.x, block.y]
                writer.write_table(pa.table([pa.array(c) for c in columns], schema=_SCHEMA))
