"""Trajectories and receipts to files, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from retrasyn.data.reading_files import SUFFIXES
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import OutputError

if TYPE_CHECKING:
    import numpy.typing as npt

_ROWS_AT_ONCE = 1 << 20


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Refuse an output that could not be written later; leaves nothing behind."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(f"output {path} ends in {path.suffix or 'nothing'}; use .parquet or .csv")
    return check_place(path)


def check_place(path: Path) -> Path:
    """Refuse a place where no file can be put; tries it, since only that tells for sure."""
    try:
        if path.is_dir():
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


@contextlib.contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Give a temporary file that becomes `path` when the block ends well, and vanishes if not.

    A private file is for its owner's eyes only.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        if not private:
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def write(trajectories: Trajectories, path: str | os.PathLike[str]) -> None:
    """Write ``traj_id, t, x, y`` and, where known, ``user_id``, sorted by (traj_id, t).

    The format follows the suffix.
    """
    path = check_writable(path)
    with (
        replacing(path) as temporary,
        temporary.open("wb") as file,
        contextlib.ExitStack() as stack,
    ):
        writer = None
        for block in trajectories.blocks(_ROWS_AT_ONCE):
            table = _table(block, trajectories.labels)
            if writer is None:
                writer = stack.enter_context(_writer(path, file, table.schema))
            writer.write_table(table)


def _writer(path: Path, file: IO[bytes], schema: pa.Schema) -> Any:
    """Return the writer of a file's format."""
    if path.suffix.lower() == ".csv":
        return pa.csv.CSVWriter(file, schema)
    # Coordinates are all different: a dictionary of them would only cost time.
    coded = [name for name in schema.names if name not in {"x", "y"}]
    return pa.parquet.ParquetWriter(file, schema, use_dictionary=coded)


def _table(block: Trajectories, labels: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
    """Return the rows of some streams, identifiers as the user wrote them."""
    columns: dict[str, npt.NDArray[Any]] = {"traj_id": block.traj_id}
    if block.user_id is not None:
        columns["user_id"] = block.user_id
    for name, texts in labels.items():
        columns[name] = texts[columns[name]]
    columns |= {"t": block.t, "x": block.x, "y": block.y}
    return pa.table({name: pa.array(column) for name, column in columns.items()})
