"""Pages of documentation as tests see them: their blocks of code, run in order, in one folder.

A comment above a block says what is special about it:

    <!-- not run: REASON -->        listed by a test, so that nothing is left out silently
    <!-- run with: --reports 9 -->  options added to every command, to be quicker
    <!-- exits with: 1 -->          the exit code that the page speaks of
"""

from __future__ import annotations

import configparser
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
GUIDES = [path for path in DOCUMENTS if path.name == "README.md" or path.parent != ROOT]
_BLOCK = re.compile(
    r"^(?:<!-- (not run|run with|exits with): (.*?) -->\n)?```([^\n]*)\n(.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_STAYS = re.compile(r"retrasyn (serve|watch|demo-live|gateway|demo --live)\b(?!.*--print-config)")
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
    special: str = ""  # what the comment above it begins with
    words: str = ""  # and what it says

    @property
    def is_run(self) -> bool:
        return self.special != "not run"

    @property
    def commands(self) -> list[str]:
        """Return what stands after each prompt, continued lines joined."""
        text = self.text.replace("\\\n", " ")
        return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


def blocks_of(path: Path) -> list[Block]:
    return [
        Block(name_of(path), language, text, special, words)
        for special, words, language, text in _BLOCK.findall(path.read_text())
    ]


class Reader:
    """Does what a page says, from top to bottom, and notes what goes wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.faults: list[str] = []
        self._running = contextlib.ExitStack()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self._port = listener.getsockname()[1]  # not 8700, which may be somebody else's

    def read(self, blocks: list[Block]) -> None:
        with contextlib.chdir(self.folder), self._running:
            for block in blocks:
                if block.is_run:
                    getattr(self, f"_{block.language}")(block)

    def _console(self, block: Block) -> None:
        code = int(block.words) if block.special == "exits with" else 0
        more = f" {block.words}" if block.special == "run with" else ""
        for command in block.commands:
            self._command(command.replace("127.0.0.1:8700", f"127.0.0.1:{self._port}"), more, code)

    def _command(self, command: str, more: str, code: int) -> None:
        if _STAYS.match(command):
            self._running.enter_context(self._in_background(command.removesuffix(" &") + more))
            return
        done = subprocess.run(
            ["sh", "-c", command + more],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != code or "WARNING" in done.stderr:
            self.faults.append(f"{command}{more}\n{done.stdout[-500:]}{done.stderr}")

    @contextlib.contextmanager
    def _in_background(self, command: str) -> Iterator[None]:
        """Run what a reader would leave running, from its first line on, and end it with Ctrl-C."""
        port = self._port if " serve" in command else 0
        process = subprocess.Popen(
            ["sh", "-c", f"exec {command} --port {port}"],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        first = process.stdout.readline()
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
            if not first:
                self.faults.append(f"{command} ended at once\n{said}")

    def _python(self, block: Block) -> None:
        exec(compile(block.text, block.page, "exec"), {"__name__": "__main__"})  # noqa: S102 - ours

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

    def _ini(self, block: Block) -> None:
        """Read a unit of systemd, and the command line in it."""
        unit = configparser.ConfigParser(strict=False)
        unit.read_string(block.text)
        start = unit["Service"]["ExecStart"].split()
        options = {word for word in start if word.startswith("--")}
        assert options <= _options_of(start[1]), f"{block.page}: {options}"

    def _text(self, block: Block) -> None:
        """Leave pictures in letters and output alone."""


def _options_of(name: str) -> set[str]:
    import typer

    from retrasyn.cli import app

    command = typer.main.get_command(app).commands[name]
    return {option for parameter in command.params for option in parameter.opts}
