"""Counts the floor plan of a source tree: `python docs/making/floor_plan.py [TREE ...]`.

Sizes and imports are read from the syntax trees. The two walks are measured: functions that run are
recorded by file, once while one timestamp is synthesised, and once while one device reports to a
running service on loopback. A column per tree, so that a change can be put beside what was before.
"""

from __future__ import annotations

import ast
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SHORT = 60
_PARTS = ("privacy/division.py", "privacy/ledger.py", "privacy/selection.py", "mechanisms/")
_PARTS_BY_NAME = ("synthesis/lifecycle.py",)
# These run because a release has a point now; they are not on a report's way.
_OF_RELEASES = ("data/", "privacy/")

# Put in front of a program: records which functions of the package run, by file.
_RECORDER = """
import atexit, os, sys, threading
seen = set()
def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and "/retrasyn/" in code.co_filename and not code.co_name.startswith("<"):
        if "_call_with_frames_removed" not in _callers(frame):
            seen.add(code.co_filename.rsplit("/retrasyn/", 1)[1] + ":" + code.co_name)
def _callers(frame):
    names = []
    while frame is not None:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return names
def save():
    sys.setprofile(None)
    with open(os.environ["WALK"], "w") as file:
        file.write("\\n".join(sorted(seen)))
if "WALK" in os.environ:
    if "WALK_LATER" not in os.environ:
        sys.setprofile(note)
        threading.setprofile(note)
        atexit.register(save)
"""
_ONE_TIMESTAMP = """
import sys, sitecustomize, retrasyn
city = retrasyn.demo_city(n_users=60, n_timestamps=12, seed=1)
def watch(release):
    sys.setprofile(None)
    if release.t == 5:
        sys.setprofile(sitecustomize.note)
retrasyn.synthesize(
    city, sys.argv[1], window=3, grid=3, box=(0, 0, 10, 10), seed=0, on_release=watch
)
sitecustomize.save()
"""


def modules(tree: Path) -> dict[str, Path]:
    """Return every module of a source tree by its dotted name."""
    source = tree / "src"
    named = {}
    for path in sorted((source / "retrasyn").rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return named


def imported(path: Path, known: dict[str, Path]) -> set[str]:
    """Return the modules that are loaded when this one is: imports at its top level."""
    found = set()
    for node in _loaded(ast.parse(path.read_text()).body):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in known}
        elif node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found |= {inner if inner in known else node.module} & known.keys()
    return found


def _loaded(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.Try) or (
            isinstance(node, ast.If) and ast.unparse(node.test) != "TYPE_CHECKING"
        ):
            yield from _loaded(node.body)


def deepest_chain(known: dict[str, Path]) -> list[str]:
    """Return the longest chain of modules of which each loads the next."""
    imports = {name: imported(path, known) - {name} for name, path in known.items()}
    longest: dict[str, list[str]] = {}

    def chain(name: str, above: tuple[str, ...] = ()) -> list[str]:
        if name in above:
            raise SystemExit(f"a circle of imports: {' > '.join([*above, name])}")
        if name not in longest:
            below = (chain(other, (*above, name)) for other in sorted(imports[name]))
            longest[name] = [name, *max(below, key=len, default=[])]
        return longest[name]

    return max((chain(name) for name in known), key=len)


def classes(path: Path) -> list[str]:
    """Return the names of all classes that a module defines."""
    return [n.name for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ClassDef)]


def checks_on_parts(tree: Path, known: dict[str, Path]) -> list[str]:
    """Return each `isinstance` on a part of a method outside the package that defines the part."""
    root = tree / "src" / "retrasyn"
    home = {
        name: path.relative_to(root).parts[0]
        for path in known.values()
        if path.relative_to(root).as_posix().startswith((*_PARTS, *_PARTS_BY_NAME))
        for name in classes(path)
    }
    found = []
    for path in known.values():
        place = path.relative_to(root)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                names = re.findall(r"\w+", ast.unparse(node.args[1]))
                if any(home.get(name, place.parts[0]) != place.parts[0] for name in names):
                    found.append(f"{place}:{node.lineno}")
    return found


def walk_of_timestamp(tree: Path, method: str) -> set[str]:
    """Return the files that run while one timestamp is synthesised."""
    with tempfile.TemporaryDirectory() as folder:
        environment = _environment(tree, Path(folder), WALK_LATER="1")
        command = [sys.executable, "-c", _ONE_TIMESTAMP, method]
        subprocess.run(command, check=True, env=environment, timeout=300)
        return _files(Path(folder) / "walk")


def walk_of_report(tree: Path) -> set[str]:
    """Return the files that run in device and service because the device reports.

    What also runs in an idle service, or when a device only shows its status, is no part of it.
    """
    with tempfile.TemporaryDirectory() as folder:
        idle = _serve(tree, Path(folder) / "idle", devices=0)
        busy = _serve(tree, Path(folder) / "busy", devices=1)
        place = Path(folder) / "busy"
        device = _functions(place / "device" / "walk") - _functions(place / "status" / "walk")
    service = {name for name in busy - idle if not name.startswith(_OF_RELEASES)}
    return {name.split(":")[0] for name in service | device}


def _serve(tree: Path, folder: Path, *, devices: int) -> set[str]:
    """Run a service for some rounds, with a device that stands still or none; what ran in it."""
    folder.mkdir()
    run = [sys.executable, "-m", "retrasyn"]
    settings = [word for text in ("period=2", "window=2", "fewest=1") for word in ("--set", text)]
    server = subprocess.Popen(
        [*run, "serve", "--port", "0", "--folder", str(folder / "service"), *settings],
        env=_environment(tree, folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        for line in server.stdout or ():
            if line.startswith("Stop with"):
                break
        plain = _environment(tree, folder / "device")
        walk = plain.pop("WALK")
        link = _output([*run, "invite", "--folder", str(folder / "service")], plain)
        place = ["--folder", str(folder / "phone")]
        _output([*run, "device", "enrol", link, *place, "--yes"], plain)
        if devices:
            here = ["--at", "3,4", "--rounds", "9"]
            said = _output([*run, "device", "run", *place, *here], {**plain, "WALK": walk})
            walk = _environment(tree, folder / "status")["WALK"]
            _output([*run, "device", "status", *place], {**plain, "WALK": walk})
            if "accepted" not in said:
                raise SystemExit(f"the device was to report: {said}")
        else:
            time.sleep(18)
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)
    return _functions(folder / "walk")


def _output(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _environment(tree: Path, folder: Path, **more: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(_RECORDER)
    return {
        **os.environ,
        "PYTHONPATH": f"{folder}{os.pathsep}{tree.absolute() / 'src'}",
        "NUMBA_DISABLE_JIT": "1",  # what is compiled is not seen
        "PYTHONWARNINGS": "ignore",  # of words that overflow, as they are meant to
        "WALK": str(folder / "walk"),
        **more,
    }


def _functions(walk: Path) -> set[str]:
    return set(walk.read_text().splitlines())


def _files(walk: Path) -> set[str]:
    return {name.split(":")[0] for name in _functions(walk)}


def count(tree: Path) -> dict[str, int | str]:
    """Return every figure of one tree."""
    known = modules(tree)
    lines = {name: len(path.read_text().splitlines()) for name, path in known.items()}
    longest = max(lines, key=lines.__getitem__)
    names = Counter(name for path in known.values() for name in classes(path))
    pages = [page for page in (tree / "docs").rglob("*.md") if "reproduction" not in page.parts]
    return {
        "modules": len(known),
        "lines": sum(lines.values()),
        "lines of the median module": int(statistics.median(lines.values())),
        "lines of the longest module": f"{lines[longest]} ({longest.removeprefix('retrasyn.')})",
        f"modules under {SHORT} lines": sum(n < SHORT for n in lines.values()),
        "modules of service": sum(name.startswith("retrasyn.service") for name in known),
        "deepest import chain": len(deepest_chain(known)),
        "class names used twice": sum(n > 1 for n in names.values()),
        "isinstance on parts elsewhere": len(checks_on_parts(tree, known)),
        "files in a timestamp, retrasyn-p": len(walk_of_timestamp(tree, "retrasyn-p")),
        "files in a timestamp, steered": len(walk_of_timestamp(tree, "steered")),
        "files in a report": len(walk_of_report(tree)),
        "lines of README": len((tree / "README.md").read_text().splitlines()),
        "words in docs": sum(len(page.read_text().split()) for page in pages),
    }


def main() -> None:
    """Print a table with a column per tree."""
    trees = [Path(word) for word in sys.argv[1:]] or [Path(__file__).parents[2]]
    columns = [count(tree) for tree in trees]
    for name in columns[0]:
        print(f"{name:36}", *(f"{column[name]!s:>28}" for column in columns))


if __name__ == "__main__":
    main()
