"""Work on many pieces with all cores, in order, with few pieces in memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from retrasyn.errors import InputError

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def in_order(work: Callable[[_In], _Out], pieces: Iterable[_In]) -> Iterator[_Out]:
    """Yield work(piece) for each piece, in the order of the pieces.

    Threads suffice: Arrow and numpy let go of the interpreter while they work.
    """
    n_workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    ahead = 2 * (n_workers or 1)
    with ThreadPoolExecutor(n_workers) as pool:
        pending: deque[Future[_Out]] = deque()
        try:
            for piece in pieces:
                pending.append(pool.submit(work, piece))
                if len(pending) > ahead:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def files_of(path: Path, *suffixes: str) -> list[Path]:
    """Return a file itself, or all files below a folder with one of the suffixes, sorted."""
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists fails on a name too long
        raise InputError(f"{path} does not exist; check the path")
    if not path.is_dir():
        return [path]
    endings = (*suffixes, *(f"{suffix}.gz" for suffix in suffixes))
    files = [
        Path(folder, name)
        for folder, _, names in os.walk(path, onerror=_refuse)
        for name in names
        if name.lower().endswith(endings) and not name.startswith(".")
    ]
    if not files:
        raise InputError(f"{path} holds no file that ends in {' or '.join(suffixes)}")
    return sorted(files)


def _refuse(error: OSError) -> None:
    raise InputError(f"{error.filename} cannot be read: {error.strerror}") from None


def stem(path: Path) -> str:
    """Return a file's name without its suffixes.

    >>> stem(Path("a/run.gpx.gz"))
    'run'
    """
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return Path(name).stem
