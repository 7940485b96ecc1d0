"""Where the replicas of a release lie: numbered files in a folder beside it."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from retrasyn.data.writing_files import write
from retrasyn.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from retrasyn.data.trajectories import Trajectories


def replica_folder(path: Path) -> Path:
    """Return the folder of a release's replicas: NAME.replicas beside NAME.parquet."""
    return path.with_suffix(".replicas")


def replica_paths(path: Path) -> list[Path]:
    """Return the files of a release's replicas in their order; none if it has no replicas."""
    return files_in(replica_folder(path))


def files_in(folder: Path) -> list[Path]:
    """Return the files of replicas in a folder, in their order."""
    return sorted(folder.glob("[0-9]*.parquet"))


def check_replica_folder(path: Path) -> Path:
    """Return the folder for a release's replicas; refuse one that holds anything else."""
    folder = replica_folder(path)
    if folder.exists():
        files = set(files_in(folder)) if folder.is_dir() else None
        other = (
            folder
            if files is None
            else next((one for one in folder.iterdir() if one not in files), None)
        )
        if other is not None:
            raise OutputError(f"{other} is in the way of replicas; move it, or name another output")
    return folder


@contextlib.contextmanager
def replacing_replicas(
    replicas: Iterable[Trajectories], path: Path, *, datetime: bool = False
) -> Iterator[Path]:
    """Write replicas to a hidden folder, which takes its place once the release has taken its own.

    Those of an earlier release of the same name are removed, also where there are no new ones.
    """
    folder = check_replica_folder(path)
    hidden = folder.with_name(f".{folder.name}.unfinished")
    shutil.rmtree(hidden, ignore_errors=True)
    try:
        for number, replica in enumerate(replicas, 1):
            hidden.mkdir(exist_ok=True)
            write(replica, hidden / f"{number:04d}.parquet", datetime=datetime)
        yield hidden
        _remove(folder)
        if hidden.exists():
            hidden.rename(folder)
    except OSError as error:
        raise OutputError(f"{folder} cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def _remove(folder: Path) -> None:
    """Remove a folder that holds replicas only."""
    if folder.exists():
        for file in files_in(folder):
            file.unlink()
        folder.rmdir()
