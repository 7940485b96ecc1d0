"""Fresh beginnings: a copy of the repository, an environment with nothing in it, our own wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_OURS = {"PYTHONPATH", "NUMBA_CACHE_DIR", "VIRTUAL_ENV"}  # what a newcomer has not set
_BUILD = "import hatchling.build as build, sys; build.build_wheel(sys.argv[1])"


def copy_repository(folder: Path) -> None:
    """Copy what a clone would have, with changes that are not committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def build_wheel(folder: Path) -> Path:
    """Build the package of this tree; return the file."""
    subprocess.run([sys.executable, "-c", _BUILD, folder], cwd=ROOT, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def make_environment(folder: Path, *paths: Path) -> dict[str, str]:
    """Make a virtual environment; return variables with it on the path, behind other folders.

    Versions are pinned as for developers.
    """
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    own = Path(sys.executable).parent
    found = [place for place in os.environ["PATH"].split(os.pathsep) if Path(place) != own]
    return {
        **{name: value for name, value in os.environ.items() if name not in _OURS},
        "PATH": os.pathsep.join([*map(str, paths), str(folder / "bin"), *found]),
        "PIP_CONSTRAINT": str(write_constraints(folder)),
    }


def write_constraints(folder: Path) -> Path:
    """Write the pins without their hashes, which pip wants of all files or of none."""
    files = [ROOT / "requirements" / f"{name}.txt" for name in ("build", "dev", "node")]
    lines = [line for file in files for line in file.read_text().splitlines()]
    path = folder / "constraints.txt"
    path.write_text("".join(line.rstrip(" \\") + "\n" for line in lines if line[:1].isalpha()))
    return path
