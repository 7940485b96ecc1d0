"""Back-up, restore and change of a campaign as documented, with real processes and real devices."""

import asyncio
import os
import random
import re
import signal
import socket
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from retrasyn.service.service import Service
from retrasyn.service.settings import Settings
from support import postgres
from support.command_line import run
from support.components import need
from support.live_service import COMMAND, end
from support.pages import ENVIRONMENT, ROOT, blocks_of

pytestmark = pytest.mark.system

QUICK = ("--set", "period=1", "--set", "window=1", "--set", "method=uniform-b")
"""Everybody reports in every round."""
COMMANDS = [block.commands for block in blocks_of(ROOT / "docs" / "operations.md")]


def block_with(*words: str) -> list[str]:
    """Return the commands of the one block of the page that has all these words."""
    (found,) = [block for block in COMMANDS if all(word in "\n".join(block) for word in words)]
    return found


def do(commands: list[str], folder: Path, environment=ENVIRONMENT) -> None:
    """Run documented commands to the letter."""
    for command in commands:
        done = subprocess.run(
            ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, check=False
        )
        assert done.returncode == 0, (command, done.stderr)


@pytest.fixture
def port():
    """Return a port that nobody is given while the service is stopped."""
    for number in random.sample(range(20_000, 30_000), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", number)):
            return number
    raise OSError("no free port")


@contextmanager
def serving(command: str, *options: str, port: int, folder: Path, environment=ENVIRONMENT):
    """Run a documented command that stays; give what it says first."""
    words = [*COMMAND, *command.split()[1:], "--port", str(port), *options]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        said = ""
        while "Stop with Ctrl-C" not in said:
            line = process.stdout.readline()
            assert line, (folder / "log").read_text()
            said += line
        yield said
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130, (folder / "log").read_text()
    finally:
        end(process)


def enrol(said: str, device: Path) -> None:
    link = re.search(r"http\S+#enrol=\S+", said)[0]
    done = run("device", "enrol", link, "--yes", "--folder", device)
    assert done.code == 0, done.err


def take_part(device: Path, rounds: int = 4):
    return run("device", "run", "--at", "2.5,7.1", "--rounds", rounds, "--folder", device)


def test_a_back_up_of_sqlite_made_while_it_runs_is_restored_as_documented(tmp_path, port):
    need("sqlite3", package="sqlite3")
    device = tmp_path / "device"
    begin = "retrasyn serve --folder service"
    with serving(begin, *QUICK, port=port, folder=tmp_path) as said:
        assert "A new campaign, the first in this folder: round 0 comes next." in said
        enrol(said, device)
        assert "reported, accepted" in take_part(device, 5).out
        do(block_with("sqlite3 service/service.sqlite"), tmp_path)
    (tmp_path / "service").rename(tmp_path / "lost")
    *commands, last = block_with("cp -a copy restored")
    do(commands, tmp_path)
    with serving(last, port=port, folder=tmp_path) as said:
        assert re.search(r"It goes on where it was: round \d+ comes next, after \d+\.\n", said)
        assert "reported, accepted" in take_part(device).out


def test_a_back_up_of_postgres_made_while_it_runs_is_restored_as_documented(
    tmp_path, port, monkeypatch
):
    server, device = postgres.server(), tmp_path / "device"
    environment = {**ENVIRONMENT, "PGHOST": str(server.folder), "PGUSER": postgres.USER}
    environment["PATH"] = f"{server.programs}{os.pathsep}{environment['PATH']}"
    given = {"port": port, "folder": tmp_path, "environment": environment}
    _, create, begin = block_with("createdb retrasyn", "pip install")
    do([create], tmp_path, environment)
    with serving(begin, *QUICK, **given) as said:
        enrol(said, device)
        assert "reported, accepted" in take_part(device, 5).out
        do(block_with("pg_dump"), tmp_path, environment)
    (tmp_path / "curator").rename(tmp_path / "lost")
    do(["dropdb retrasyn"], tmp_path, environment)
    *commands, last = block_with("pg_restore")
    do(commands, tmp_path, environment)
    with serving(last, **given) as said:
        assert re.search(r"It goes on where it was: round \d+ comes next, after \d+\.\n", said)
        assert "reported, accepted" in take_part(device).out
    monkeypatch.setenv("PGHOST", environment["PGHOST"])
    monkeypatch.setenv("PGUSER", environment["PGUSER"])
    again = Service(Settings.load(None, {"folder": str(tmp_path / "copied")}))
    asyncio.run(start_and_stop(again))
    assert again.beginning.startswith("It goes on where it was"), "the folder knows its database"
    assert again.runtime.devices.n == 1


async def start_and_stop(service):
    await service.start(runs=False)
    await service.stop()


@pytest.mark.long
def test_devices_are_told_of_a_new_campaign_and_go_on_when_it_returns(tmp_path, port):
    loyal, changed = tmp_path / "loyal", tmp_path / "changed"
    given, command = {"port": port, "folder": tmp_path}, "retrasyn serve --folder service"
    with serving(command, *QUICK, **given) as said:
        enrol(said, loyal)
        link = run("invite", "--folder", tmp_path / "service").out
        enrol(link, changed)
        assert "reported, accepted" in take_part(loyal, 6).out
    refused = run("serve", "--folder", tmp_path / "service", "--set", "window=2", "--port", port)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "window is 1 there and 2 now. Leave them out" in refused.err
    with serving(command, "--set", "window=2", "--new-campaign", **given) as said:
        assert "round 0 comes next; 2 enrolled devices stay silent until their owners" in said
        told = take_part(loyal)
        assert (told.code, told.out) == (2, "")
        assert "now promises something else than you agreed to" in told.err
        assert run("device", "accept", "--yes", "--folder", changed).code == 0
        assert "quarantine (the campaign changed)" in take_part(changed, 2).out
    with serving(command, "--set", "window=1", "--new-campaign", **given) as said:
        assert re.search(r"It returns to the campaign of .*: round \d+ comes next, after \d+", said)
        assert "reported, accepted" in take_part(loyal).out, "nobody was asked again"
        assert "now promises something else than you agreed to" in take_part(changed).err
        assert run("device", "accept", "--yes", "--folder", changed).code == 0
        assert "quarantine (the campaign changed)" in take_part(changed, 2).out
    with serving(command, **given) as said:
        assert "It goes on where it was: round " in said
        assert "reported, accepted" in take_part(loyal).out
    with socket.create_server(("127.0.0.1", 0)) as listener:
        given["port"] = listener.getsockname()[1]
    with serving(command, **given) as said:
        assert f"It was reached at http://127.0.0.1:{port} before: devices that enrolled" in said
