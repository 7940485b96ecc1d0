"""Checks each part of an installation: present, missing, or broken.

Only what `synthesize` and `evaluate` cannot do without may be broken. Everything else is there, or
missing with the words that bring it.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.resources
import os
import re
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

OLDEST_PYTHON = (3, 11)
_OLDEST_SQLITE = (3, 35)
_BUILT = 1_767_225_600  # seconds since 1970 at the start of 2026: no clock is right before it
_FAR = 4_102_444_800  # the start of 2100: nor after it
_ENOUGH_MEMORY = 1.0  # GiB
_LAST_PORT = 65535
_AGAIN = "pip install --force-reinstall retrasyn"
_OURS = ("dev", "docs")  # extras for those who work on the package itself
KEEP_KERNELS = 'export NUMBA_CACHE_DIR="$(mktemp -d)"'
"""What lets compiled kernels be kept: for good, take a folder that nobody else can fill."""

Verdict = Literal["ok", "miss", "FAIL", "note"]


@dataclass(frozen=True, slots=True)
class InstalledPart:
    """One part, how it is, and what to type where something can be done."""

    name: str
    verdict: Verdict
    detail: str
    remedy: str = ""


def examine(port: int) -> list[InstalledPart]:
    """Check everything, in the order in which problems should be fixed."""
    return [
        _python(),
        *_libraries(),
        _guarded("kernels", _kernels, KEEP_KERNELS),
        _guarded("randomness", _randomness),
        _guarded("sqlite", _sqlite, 'export TMPDIR="$HOME"', verdict="miss"),
        *_extras(),
        _guarded("live map", _live_map, verdict="miss"),
        _port(port),
        _clock(),
        _machine(),
        _tools(),
    ]


def _guarded(
    name: str,
    check: Callable[[], InstalledPart],
    remedy: str = _AGAIN,
    *,
    verdict: Verdict = "FAIL",
) -> InstalledPart:
    """Turn any exception into a finding: an installation may be broken in any way."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a doctor is not stopped by an illness
        said = " ".join(str(error).split()) or type(error).__name__
        return InstalledPart(name, verdict, said, remedy)


def _python() -> InstalledPart:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return InstalledPart(
            "python", "FAIL", f"{version} is too old", "install Python 3.11 or newer"
        )
    return InstalledPart("python", "ok", f"{version} in {sys.prefix}")


def _libraries() -> Iterator[InstalledPart]:
    """Look for what the base needs."""
    for name in ("retrasyn", *requirements()[""]):
        yield _guarded(name, functools.partial(_library, name))


def _library(name: str) -> InstalledPart:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return InstalledPart(name, "FAIL", "is not installed", _AGAIN)
    importlib.import_module(name)  # it may be there and broken
    return InstalledPart(name, "ok", version)


def requirements() -> dict[str, list[str]]:
    """Return the names of libraries by extra, as the package declares them; the base is ''."""
    found: dict[str, list[str]] = {"": []}
    try:
        lines = importlib.metadata.requires("retrasyn") or []
    except importlib.metadata.PackageNotFoundError:
        return found
    for line in lines:
        named = re.match(r"[\w.-]+", line)
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        if named:
            found.setdefault(extra[1] if extra else "", []).append(named[0])
    return found


def _extras() -> Iterator[InstalledPart]:
    """Look for optional libraries, extra by extra."""
    for extra, names in requirements().items():
        if extra in ("", *_OURS):
            continue
        missing = [name for name in names if not _is_installed(name)]
        if missing:
            what = f"{', '.join(missing)}: not installed"
            remedy = f'{_pip()} install "retrasyn[{extra}]"'
            yield InstalledPart(f"[{extra}]", "miss", what, remedy)
        else:
            yield InstalledPart(f"[{extra}]", "ok", ", ".join(names))


def _pip() -> str:
    """Return how the pip of this environment is called: the one of pipx is not on the path."""
    return "pipx runpip retrasyn" if Path(sys.prefix, "pipx_metadata.json").exists() else "pip"


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _kernels() -> InstalledPart:
    """Run a compiled kernel, and check whether compiled code can be cached."""
    import numpy as np

    from retrasyn.oracles.kernels import count_bits

    began = time.monotonic()
    counted = count_bits(np.array([[0b101]], dtype=np.uint8), 8)
    took = time.monotonic() - began
    if int(counted.sum()) != 2:  # noqa: PLR2004 - bits of 0b101
        raise ArithmeticError(f"a compiled kernel counted {counted.tolist()} in 0b101")
    folder = Path(count_bits.stats.cache_path or sys.prefix)
    if not os.access(_nearest(folder), os.W_OK):
        return InstalledPart(
            "kernels",
            "note",
            f"work, and are compiled anew each time: {folder} cannot be written",
            KEEP_KERNELS,
        )
    return InstalledPart("kernels", "ok", f"ready in {took:.1f} s, kept in {folder}")


def _nearest(folder: Path) -> Path:
    """Return the folder, or the first above it that exists."""
    return next((place for place in (folder, *folder.parents) if place.exists()), folder)


def _randomness() -> InstalledPart:
    from retrasyn.randomness.words import system_bytes

    if system_bytes(32) == system_bytes(32):
        raise ArithmeticError("the operating system handed out the same 32 bytes twice")
    return InstalledPart("randomness", "ok", "the operating system's generator answers")


def _sqlite() -> InstalledPart:
    """Check that the service's store would work here."""
    import sqlite3

    version = sqlite3.sqlite_version
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "doctor.sqlite"
        with closing(sqlite3.connect(place)) as connection:
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE or mode != "wal":
        detail = f"{version}, journal {mode}: too old for serve"
        return InstalledPart("sqlite", "miss", detail, "install a Python with SQLite 3.35 or newer")
    return InstalledPart("sqlite", "ok", f"{version}, with a write-ahead log")


def _live_map() -> InstalledPart:
    page = importlib.resources.files("retrasyn") / "service/web/static/map/index.html"
    if page.is_file():
        return InstalledPart("live map", "ok", "built in; no Node and no Chromium are needed")
    remedy = f"make viewer in a clone, else {_AGAIN}"
    return InstalledPart("live map", "miss", "this package was built without it", remedy)


def _port(port: int) -> InstalledPart:
    fault = _hindrance(port)
    if fault is None:
        return InstalledPart(f"port {port}", "ok", "is free")
    others = (other for other in range(port + 1, _LAST_PORT + 1) if _hindrance(other) is None)
    return InstalledPart(f"port {port}", "note", fault, f"retrasyn serve --port {next(others, 0)}")


def _hindrance(port: int) -> str | None:
    """Return why the port cannot be listened on; None if it can."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            return error.strerror or "is taken"
    return None


def _clock() -> InstalledPart:
    now = time.time()
    said = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now))
    if not _BUILT <= now < _FAR:
        return InstalledPart("clock", "note", f"{said} cannot be right", "timedatectl set-ntp true")
    return InstalledPart(
        "clock", "ok", f"{said}; how far it is off cannot be told from here: run NTP"
    )


def _machine() -> InstalledPart:
    """Report the machine's resources."""
    n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    detail = f"{n} CPUs, {memory:.1f} GiB of memory"
    if memory < _ENOUGH_MEMORY:
        return InstalledPart(
            "machine", "note", f"{detail}: little for large files", "retrasyn help scaling"
        )
    return InstalledPart("machine", "ok", detail)


def _tools() -> InstalledPart:
    """Look for the one program that an operator may want besides."""
    found = shutil.which("psql")
    if found:
        return InstalledPart("postgresql", "ok", f"psql in {found}")
    detail = "no psql; only who stores in PostgreSQL may want it"
    return InstalledPart("postgresql", "note", detail, "apt install postgresql-client")
