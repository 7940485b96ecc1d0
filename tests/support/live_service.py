"""`retrasyn serve` as a process of its own on a free port of the loopback."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

COMMAND = (sys.executable, "-m", "retrasyn")
_PATIENCE = 60.0  # seconds


@dataclass
class Live:
    """A running service."""

    process: subprocess.Popen[str]
    folder: Path
    url: str
    link: str

    @property
    def operator_token(self) -> Path:
        return self.folder / "operator.token"

    @property
    def releases(self) -> Path:
        """Where the releases of its only campaign are."""
        (folder,) = (self.folder / "releases").iterdir()
        return folder

    def links(self, n: int) -> list[str]:
        """Return new enrolment links."""
        done = run("invite", n, "--folder", self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    def release(self, t: int) -> Path:
        """Return the file of a release, once it is there."""
        path = self.releases / f"{t:010d}.parquet"
        wait_for(path.exists, f"release {t}")
        return path


def run(*arguments: object, stdin: str = "", timeout: float = 120) -> subprocess.CompletedProcess:
    """Run a command to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def wait_for(happened: Callable[[], bool], what: str, seconds: float = _PATIENCE) -> None:
    """Look again and again until something has happened."""
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, f"{what} did not happen"
        time.sleep(0.02)


@contextmanager
def service(
    folder: Path, *, port: int = 0, new_campaign: bool = False, **settings: object
) -> Iterator[Live]:
    """Start a service and stop it again."""
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    words += ["--new-campaign"] if new_campaign else []
    with (folder.parent / f"{folder.name}.log").open("a") as log:
        process = subprocess.Popen(
            [*COMMAND, "serve", "--port", str(port), "--folder", str(folder), *words],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        said = ""
        while "enrol=" not in said:
            line = process.stdout.readline()
            assert line, (folder.parent / f"{folder.name}.log").read_text()
            said += line
        link = re.search(r"http\S+enrol=\S+", said)
        assert link is not None
        yield Live(process, folder, link[0].partition("/#")[0], link[0])
    finally:
        end(process)


def end(process: subprocess.Popen[str]) -> None:
    """End a process that a test has started, as its owner would."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
