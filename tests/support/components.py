"""Programs of the system that some tests need: found, installed, or named in what to type."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

_APT = ("apt-get", "-y", "-qq", "-o", "DPkg::Lock::Timeout=300")


def need(program: str, *, package: str) -> Path:
    """Return where a program is, installing its Debian package if that is possible.

    Where it is not, the test is skipped with the command that helps; with CI set, it fails.
    """
    place = shutil.which(program)
    if place is None and can_install():
        _install(package)
        place = shutil.which(program)
    if place is None:
        give_up(f"{program} is missing: sudo apt-get install -y {package}")
    return Path(place)


def can_install() -> bool:
    """Tell whether this is Debian or a child of it, and we may change it."""
    return Path("/etc/debian_version").exists() and os.geteuid() == 0 and _has_apt()


def _has_apt() -> bool:
    return shutil.which("apt-get") is not None


@functools.cache  # a second try would fail for the same reason, as slowly
def _install(package: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (("update",), ("install", "--no-install-recommends", package)):
        subprocess.run([*_APT, *words], env=environment, check=False, capture_output=True)


def give_up(reason: str) -> NoReturn:
    """Skip a test that cannot run here; with CI set, fail it."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
