"""A campaign of real devices, recorded once, and played again to the service of any tree.

The noise of devices comes from the operating system, so two campaigns never agree. `record` runs
one with `retrasyn serve` and `retrasyn fleet` and keeps what the devices sent; `play` sends the
same frames to another service on a clock that is set by hand; `make_again` lets a service make
all releases again from the rounds in its store. Only commands and the HTTP API are used.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

CAMPAIGNS = {
    "steered": ("method=steered",),
    "flags-olh": ("method=steered-flags", "oracle=olh"),
    "budget": ("method=retrasyn-b",),
}
"""What each recorded campaign is set to, beside what all have in common."""
STORES = ("sqlite", "postgresql")
DEVICES, ROUNDS = 200, 12
_COMMON = ("period=1", "window=3", "grid=4", "seed=7", "limits.snapshot_every=5")
_LEAD = 20  # seconds from the first start to round 0, in which devices enrol; if too few, twice
_PATIENCE = 120
_READY = "Stop with Ctrl-C"
_SET_CLOCK = """
import pathlib, runpy, sys, time
clock = pathlib.Path(sys.argv.pop(1))
time.time = lambda: float(clock.read_text())
runpy.run_module("retrasyn", run_name="__main__", alter_sys=True)
"""
"""Runs the command line in a process whose wall clock shows what a file says."""


def command(*words: object) -> list[str]:
    """Return a command of ours for a process; the environment says of which tree."""
    return [sys.executable, "-m", "retrasyn", *map(str, words)]


@dataclass(frozen=True)
class Served:
    """A service that runs."""

    url: str
    folder: Path

    def ask(self, path: str, body: bytes | None = None) -> bytes | None:
        """Return an answer; None where there is none or it is a refusal."""
        headers = {"content-type": "application/octet-stream"}
        asked = urllib.request.Request(self.url + path, body, headers)  # noqa: S310 - our own
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(asked, timeout=30) as answer:
                return bytes(answer.read())
        except (urllib.error.URLError, http.client.HTTPException):
            return None


@contextlib.contextmanager
def serving(
    folder: Path, settings: list[str], *, tree: Path, clock: Path | None = None, port: int = 0
) -> Iterator[Served]:
    """Run the service of a tree over a folder, and end it as Ctrl-C does."""
    words = ["serve", "--port", str(port), "--folder", str(folder)]
    words += [word for setting in settings for word in ("--set", setting)]
    begin = command() if clock is None else [sys.executable, "-c", _SET_CLOCK, str(clock)]
    with (
        folder.with_suffix(".log").open("a") as log,
        subprocess.Popen(
            [*begin, *words], stdout=subprocess.PIPE, stderr=log, text=True, env=environment(tree)
        ) as process,
    ):
        try:
            if not any(line.startswith(_READY) for line in process.stdout or ()):
                raise RuntimeError(f"serve ended: {folder.with_suffix('.log').read_text()}")
            yield Served((folder / "address").read_text().strip(), folder)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=_PATIENCE)


def environment(tree: Path) -> dict[str, str]:
    """Return the environment in which `retrasyn` is that of a tree."""
    return {**os.environ, "PYTHONPATH": str(tree / "src")}


def until(there: Callable[[], bool], what: str) -> None:
    """Wait for something."""
    deadline = time.monotonic() + _PATIENCE
    while not there():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {_PATIENCE} s for {what}")
        time.sleep(0.02)


class Postgres:
    """A server of its own on a socket in a folder. It refuses to run as root."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.n = folder, 0
        self._as = {"user": "nobody", "group": "nogroup", "extra_groups": ()}
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        self.programs = (found[-1] if found else Path(shutil.which("initdb") or "")).parent
        if os.geteuid() == 0:
            os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
        else:
            self._as = {}
        self.run("initdb", "-D", folder / "data", "-A", "trust", "-U", "retrasyn", "--locale=C")
        with (folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(f"listen_addresses = ''\nunix_socket_directories = '{folder}'\n")
        self.run("pg_ctl", "-D", folder / "data", "-w", "-l", folder / "log", "start")

    def run(self, program: str, *words: object, given: bytes = b"") -> bytes:
        """Run one of the server's programs."""
        return subprocess.run(  # type: ignore[call-overload,no-any-return]  # of the account
            [str(self.programs / program), *map(str, words)],
            input=given,
            check=True,
            capture_output=True,
            cwd=self.folder,
            **self._as,
        ).stdout

    def database(self, dump: bytes = b"") -> str:
        """Return the address of a new database, filled with a dump."""
        self.n += 1
        name = f"copy{self.n}"
        self.run("createdb", "-h", self.folder, "-U", "retrasyn", name)
        address = f"postgresql:///{name}?host={self.folder}&user=retrasyn"
        self.run("psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", address, given=dump)
        return address

    def stop(self) -> None:
        """End the server."""
        self.run("pg_ctl", "-D", self.folder / "data", "-w", "-m", "fast", "stop")


@contextlib.contextmanager
def postgres() -> Iterator[Postgres | None]:
    """Run a PostgreSQL server, where one is installed."""
    installed = list(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or shutil.which("initdb")
    if not installed:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as folder:
        server = Postgres(Path(folder))
        try:
            yield server
        finally:
            server.stop()


def record(
    kept: Path, own: tuple[str, ...], tree: Path, database: Postgres | None, lead: int = _LEAD
) -> None:
    """Run a campaign; keep its folder before round 0 and at the end, and every frame sent."""
    kept.mkdir(parents=True)
    epoch = int(time.time()) + lead
    settings = [*_COMMON, *own, f"epoch={epoch}"]
    address = None if database is None else database.database()
    stored = settings if address is None else [*settings, f"store={address}"]
    folder = kept / "whole"
    with serving(folder, stored, tree=tree) as served, _fleet(served, kept, tree) as fleet:
        _first_line(fleet)  # now all are enrolled
        fleet.terminate()  # a script's background may ignore Ctrl-C
    if time.time() > epoch - 1:
        shutil.rmtree(kept)
        record(kept, own, tree, database, 2 * lead)
        return
    shutil.copytree(folder, kept / "begun")
    if database is not None:
        (kept / "begun.sql").write_bytes(database.run("pg_dump", "-d", address))
    port = int(served.url.rpartition(":")[2])  # the devices go on at the address they know
    with serving(folder, stored, tree=tree, port=port) as served:
        with _fleet(served, kept, tree) as fleet:
            fleet.communicate(timeout=_PATIENCE)
        if fleet.returncode:
            raise RuntimeError(f"the fleet ended with code {fleet.returncode}")
        last = max(json.loads(line)["t"] for line in (kept / "frames.jsonl").open())
        until(lambda: _release(folder, last).exists(), f"release {last}")
    if database is not None:
        (kept / "whole.sql").write_bytes(database.run("pg_dump", "-d", address))
    known = {"epoch": epoch, "settings": settings, "ended": time.time()}
    (kept / "campaign.json").write_text(json.dumps(known))


def _fleet(served: Served, kept: Path, tree: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(
            *("fleet", "--server", served.url, "--devices", DEVICES, "--rounds", ROUNDS),
            *("--folder", kept / "fleet", "--record", kept / "frames.jsonl"),
            *("--operator-token", served.folder / "operator.token"),
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(tree),
    )


def _first_line(process: subprocess.Popen[str]) -> str:
    return process.stdout.readline() if process.stdout else ""


def _release(folder: Path, t: int) -> Path:
    (releases,) = (folder / "releases").glob("*")
    return releases / f"{t:010d}.parquet"


def play(kept: Path, work: Path, tree: Path, database: Postgres | None) -> dict[str, bytes]:
    """Send the recorded frames to the service of a tree, round by round; return its releases."""
    campaign, clock = json.loads((kept / "campaign.json").read_text()), work / "clock"
    settings, epoch = campaign["settings"], campaign["epoch"]
    rounds = {line["t"]: line for line in map(json.loads, (kept / "frames.jsonl").open())}
    folder = work / "service"
    shutil.copytree(kept / "begun", folder)
    if database is not None:
        settings.append(f"store={database.database((kept / 'begun.sql').read_bytes())}")
    _set(clock, epoch - 5)
    statuses = b""
    with serving(folder, settings, tree=tree, clock=clock) as served:
        for t in range(max(rounds) + 1):
            _set(clock, epoch + t + 0.3)
            until(lambda t=t: served.ask(f"/v1/rounds/{t}") is not None, f"round {t}")  # type: ignore[misc]  # bound at once
            frames = _accepted(rounds.get(t, {"frames": [], "statuses": []}))
            if frames:
                statuses += served.ask("/v1/reports/batch", _batch(frames)) or b"refused"
        _set(clock, epoch + max(rounds) + 1.3)
        until(lambda: _release(folder, max(rounds)).exists(), "the last release")
    return {**released(folder, max(rounds)), "statuses": statuses}


def make_again(kept: Path, work: Path, tree: Path, database: Postgres | None) -> dict[str, bytes]:
    """Let the service of a tree make all releases of the campaign again from its store."""
    campaign, clock = json.loads((kept / "campaign.json").read_text()), work / "clock"
    folder, last = work / "service", max(recorded(kept))
    shutil.copytree(kept / "whole", folder)
    shutil.rmtree(folder / "releases")
    shutil.rmtree(folder / "snapshots")
    if database is not None:
        dump = (kept / "whole.sql").read_bytes()
        campaign["settings"].append(f"store={database.database(dump)}")
    _set(clock, campaign["ended"])  # a clock that was set back is refused
    with serving(folder, campaign["settings"], tree=tree, clock=clock):
        until(lambda: _release(folder, last).exists(), "the last release")
    return released(folder, last)


def recorded(kept: Path) -> list[int]:
    """Return the timestamps for which the devices of a campaign were heard."""
    return [json.loads(line)["t"] for line in (kept / "frames.jsonl").open()]


def released(folder: Path, last: int) -> dict[str, bytes]:
    """Return every file of the releases up to a timestamp."""
    files = sorted(path for path in (folder / "releases").rglob("*") if path.is_file())
    return {path.name: path.read_bytes() for path in files if int(path.name[:10]) <= last}


def _set(clock: Path, instant: float) -> None:
    fresh = clock.with_suffix(".new")
    fresh.write_text(repr(instant))
    fresh.replace(clock)


def _accepted(line: dict[str, list[str]]) -> list[bytes]:
    pairs = zip(line["frames"], line["statuses"], strict=True)
    return [bytes.fromhex(frame) for frame, status in pairs if status == "accepted"]


def _batch(frames: list[bytes]) -> bytes:
    return b"".join(len(frame).to_bytes(2, "little") + frame for frame in frames)
