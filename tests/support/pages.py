"""Pages of documentation as tests see them: their blocks of code, run in order, in one folder.

Comments above a block say what is special about it:

    <!-- long: REASON -->           run by `make test-long` only
    <!-- given: COMMAND & -->       what the page takes for granted, run before the block
    <!-- run with: --reports 9 -->  options added to every command, to be quicker
    <!-- exits with: 1 -->          the exit code that the page speaks of
    <!-- without: COMMAND -->       a command of the block that is not run
    <!-- not run: REASON -->        nothing of the block is run

What the last two say is listed by a test, so that nothing is left out silently.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support.command_line import Outcome, run

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
GUIDES = [path for path in DOCUMENTS if path.name == "README.md" or path.parent != ROOT]
_NOTE = r"<!-- (not run|long|given|run with|exits with|without): (.*?) -->\n"
_BLOCK = re.compile(rf"^((?:{_NOTE})*)```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_STAYS = re.compile(
    r".* &$|\S*retrasyn (serve|watch|gateway|demo --live|demo --devices|device run)\b"
    r"(?!.*--(print-config|rounds))"
)
_LISTENS = re.compile(r"\S*retrasyn (serve|watch|gateway|demo)\b")
_IS_OURS = re.compile(r"retrasyn [^$<>|&;`*~]+")  # nothing in it is for a shell
_IS_UP = re.compile(r"http://|^round |runtime started")
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two fences."""

    page: str
    language: str
    text: str
    notes: Mapping[str, str] = field(default_factory=dict)  # what the comments above it say

    @property
    def is_run(self) -> bool:
        return "not run" not in self.notes

    @property
    def is_long(self) -> bool:
        return self.is_run and "long" in self.notes

    @property
    def commands(self) -> list[str]:
        """Return what stands after each prompt, continued lines joined."""
        text = re.sub(r"\\\n *", "", self.text)
        return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


def blocks_of(path: Path) -> list[Block]:
    return [
        Block(name_of(path), found[4], found[5], dict(re.findall(_NOTE, found[1])))
        for found in _BLOCK.finditer(path.read_text())
    ]


class Reader:
    """Does what a page says, from top to bottom, and notes what goes wrong.

    A command that goes on for ever is ended with Ctrl-C as soon as it says that it is up; with an
    ampersand behind it, at the end of the page. Addresses and folders that stand for the reader's
    own are replaced, and so is the name of our package by a wheel.
    """

    def __init__(
        self,
        folder: Path,
        *,
        environment: Mapping[str, str] = ENVIRONMENT,
        inside: tuple[str, ...] = (),
        wheel: Path | None = None,
    ) -> None:
        self.folder = folder
        self.faults: list[str] = []
        self._environment = environment
        self._inside = inside  # what commands are run by, if they have to be kept somewhere
        self._running = contextlib.ExitStack()
        self._taken = False  # a service that runs to the end of the page has the port
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self._port = listener.getsockname()[1]  # not 8700, which may be somebody else's
        self._own = {
            "127.0.0.1:8700": f"127.0.0.1:{self._port}",
            "192.168.1.10": "127.0.0.1",
            "/opt/": f"{folder}/opt/",
            "/shared/": f"{folder}/shared/",
            "--shards 32": "--shards 2",
        }
        if wheel is not None:  # never what a registry has under our name
            self._own['install "retrasyn['] = f'install "{wheel}['

    def read(self, blocks: list[Block]) -> None:
        with contextlib.chdir(self.folder), self._running:
            for block in blocks:
                if block.is_run:
                    getattr(self, f"_{block.language}")(block)

    def _console(self, block: Block) -> None:
        if "given" in block.notes:
            self._command(block.notes["given"], "", 0)
        more = f" {block.notes['run with']}" if "run with" in block.notes else ""
        for command in block.commands:
            if command != block.notes.get("without"):
                self._command(command, more, int(block.notes.get("exits with", 0)))

    def _command(self, command: str, more: str, code: int) -> None:
        for theirs, ours in self._own.items():
            command = command.replace(theirs, ours)
        if _STAYS.match(command):
            staying = self._started(command.removesuffix(" &") + more)
            if command.endswith(" &"):
                self._running.enter_context(staying)
                self._taken = self._taken or "retrasyn serve" in command
            else:
                with staying:
                    pass
            return
        done = self._run(command + more)
        said = done.err.replace("WARNING: release ", "")  # a page may release the same data twice
        warned = "WARNING" in said and "retrasyn " in command  # pip's own are not ours
        if done.code != code or warned:
            self.faults.append(f"{command}{more}\n{done.out[-500:]}{done.err[-5000:]}")

    def _run(self, command: str) -> Outcome:
        """Run a command to its end; the reader agrees to whatever it asks."""
        inside = () if "pip install" in command else self._inside  # pip needs the network
        done = subprocess.run(
            [*inside, "sh", "-c", command],
            env=self._environment,
            input="y\n",
            capture_output=True,
            text=True,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    @contextlib.contextmanager
    def _started(self, command: str) -> Iterator[None]:
        """Run what goes on for ever, from when it is up, and end it with Ctrl-C."""
        if _LISTENS.match(command):
            own = "retrasyn serve" in command and not self._taken
            command += f" --port {self._port if own else 0}"
        process = subprocess.Popen(
            [*self._inside, "sh", "-c", f"exec {command}"],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended, and will be found so
            process.stdin.write("y\n")
            process.stdin.flush()
        is_up = any(_IS_UP.search(line) for line in process.stdout)
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
            ended_well = process.returncode in (0, 130) or "retrasyn" not in command
            if not (is_up and ended_well):
                self.faults.append(f"{command} ended with {process.returncode}\n{said[-5000:]}")

    def _python(self, block: Block) -> None:
        if self._environment is ENVIRONMENT:
            exec(compile(block.text, block.page, "exec"), {"__name__": "__main__"})  # noqa: S102 - ours
            return
        subprocess.run(["python", "-c", block.text], env=self._environment, check=True)

    def _toml(self, block: Block) -> None:
        from retrasyn.service.settings import Settings

        path = self.folder / "settings-of-the-page.toml"
        path.write_text(block.text)
        Settings.load(path)

    def _json(self, block: Block) -> None:
        json.loads(block.text)

    def _yaml(self, block: Block) -> None:
        import yaml

        assert all(yaml.safe_load_all(block.text))

    def _nginx(self, block: Block) -> None:
        """Leave proxies to `service/test_proxies.py`, which runs every block of them."""

    _caddyfile = _nginx

    def _text(self, block: Block) -> None:
        """Leave pictures in letters and output alone."""


class QuickReader(Reader):
    """Does the same, and starts no process for a command of ours that ends by itself."""

    def _run(self, command: str) -> Outcome:
        if _IS_OURS.fullmatch(command):
            return run(*shlex.split(command)[1:], stdin="y\n")
        return super()._run(command)
