"""Files that take their place whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from retrasyn.errors import OutputError


@contextlib.contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Give a temporary file that becomes `path` when the block ends well, and vanishes if not.

    A private file is for its owner's eyes only. A link is replaced, not followed: somebody else may
    have put it there. A device, a pipe or a folder is never replaced.
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
