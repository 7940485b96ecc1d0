"""Files: existence, atomic replacement, durable writes."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from retrasyn.errors import OutputError


def is_there(path: Path) -> bool:
    """Whether a path exists; raises OSError if that cannot be determined.

    >>> is_there(Path("/")), is_there(Path("/no/such/file"))
    (True, False)
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


@contextlib.contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a temporary file that replaces `path` on success and is removed on failure.

    A private file is readable by its owner only. A symbolic link is replaced, not followed, since
    someone else may have put it there. A device, pipe or folder is never replaced.
    """
    try:
        if path.exists() and not path.is_file():
            raise OutputError(f"{path} cannot be written: it is no file; name another")
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


def write_durably(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file atomically and wait until it is durable on disk."""
    write_whole(path, content, private=private)
    make_durable(path.parent)


def write_whole(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file atomically, without waiting until the rename is durable."""
    with replacing(path, private=private) as temporary:
        temporary.write_bytes(content)
        make_durable(temporary)


def make_durable(path: Path) -> None:
    """Sync a file, or the entries of a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
