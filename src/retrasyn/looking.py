"""Whether a file is there: "no" is only said where it was seen.

From Python 3.14 on `Path.exists` also says no where the disk fails or a folder is closed to us. Who
takes that for an answer begins a new ledger, or draws a new key, beside the old one.
"""

from pathlib import Path


def is_there(path: Path) -> bool:
    """Tell whether something is at a path; where that cannot be known, the OSError is raised.

    >>> is_there(Path("/")), is_there(Path("/no/such/file"))
    (True, False)
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
