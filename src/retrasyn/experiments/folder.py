"""The folder a reproduction works in: results so far, generated data, tables and plots."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrasyn._version import __version__
from retrasyn.errors import InputError, OutputError
from retrasyn.experiments.cells import SECONDS, UTILITY, Cell, Store, Timing
from retrasyn.experiments.sources import CITY, TITLES, DataSet
from retrasyn.foreign import parse_json
from retrasyn.replacing import replacing


@dataclass(frozen=True, slots=True)
class Folder:
    """Everything is beside everything else, in files that people can read."""

    path: Path

    @classmethod
    def open(cls, path: Path) -> Folder:
        """Make the folder, or say why it cannot be."""
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"folder {path} cannot be made ({error.strerror}); name another with --out"
            ) from None
        if not os.access(path, os.W_OK):
            raise OutputError(f"folder {path} cannot be written to; name another with --out")
        return cls(path)

    @property
    def cells(self) -> Store[Cell]:
        """Utility figures of all finished runs."""
        return Store(self.path / "cells.csv", Cell, UTILITY)

    @property
    def timings(self) -> Store[Timing]:
        """Seconds of all finished runs with a stopwatch."""
        return Store(self.path / "timings.csv", Timing, SECONDS)

    def claim(self, data: DataSet, digest: str) -> None:
        """Note which data the results are of; refuse to mix them with those of other data."""
        known = self._known()
        before = known.get(data.name)
        if before is not None and before["digest"] != digest:
            raise InputError(
                f"{self.path} holds results of another file called {data.name}; "
                "name another folder with --out"
            )
        known[data.name] = {**dataclasses.asdict(data), "digest": digest}
        self.write("data.json", json.dumps(known, indent=2, sort_keys=True) + "\n")

    @property
    def data(self) -> dict[str, DataSet]:
        """The data sets that the results are of, by name, in the paper's order."""
        known = self._known()
        return {
            name: DataSet(**{key: value for key, value in known[name].items() if key != "digest"})
            for name in (*TITLES, CITY)
            if name in known
        }

    def _known(self) -> dict[str, dict[str, Any]]:
        path = self.path / "data.json"
        try:
            known: dict[str, dict[str, Any]] = parse_json(path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError:
            raise InputError(f"{path} is damaged; remove it and {self.cells.path}") from None
        return known

    def note_machine(self) -> None:
        """Write down which machine the stopwatch ran on."""
        self.write("machine.txt", machine() + "\n")

    @property
    def machine(self) -> str:
        """The machine the stopwatch ran on; nothing if it never did."""
        path = self.path / "machine.txt"
        return path.read_text("utf-8").strip() if path.exists() else ""

    def write(self, name: str, text: str) -> Path:
        """Put a text file in place at once."""
        path = self.path / name
        with replacing(path) as temporary:
            temporary.write_text(text, "utf-8")
        return path


def machine() -> str:
    """Name this machine in a few words."""
    name = platform.processor() or platform.machine()
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as file:
            name = _model(file) or name
    except OSError:
        pass
    return (
        f"{name}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, "
        f"RetraSyn {__version__}"
    )


def _model(lines: Iterable[str]) -> str:
    """Return the model name in a list of processors.

    >>> _model(["processor : 0", "model name : Fast One"])
    'Fast One'
    """
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return ""
