"""Files that are there whole or not at all, and still there after the power failed."""

from __future__ import annotations

import os
from pathlib import Path

from retrasyn.replacing import replacing


def write_durably(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file under another name, give it its own, and wait until that is on the disk."""
    write_whole(path, content, private=private)
    make_durable(path.parent)


def write_whole(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file under another name and give it its own, which may not be durable yet."""
    with replacing(path, private=private) as temporary:
        temporary.write_bytes(content)
        make_durable(temporary)


def make_durable(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
