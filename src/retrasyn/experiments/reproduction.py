"""Writes the files of a table or figure, running only the cells that are missing."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrasyn._version import __version__
from retrasyn.bounded_json import parse_json
from retrasyn.errors import InputError, OutputError
from retrasyn.experiments import figures, tables
from retrasyn.experiments.cells import SECONDS, UTILITY, Cell, ResultFile, Results, Timing, Timings
from retrasyn.experiments.runner import Pool, Told, load, run_cells, run_timings, tasks_for
from retrasyn.experiments.sources import CITY, TITLES, DataSet, DataSource, Progress
from retrasyn.experiments.studies import ALL_DATA, Scope, Study, cells_of, timings_of
from retrasyn.files import replacing
from retrasyn.simulation.checkpoint import fingerprint


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of a reproduction: results, tables and plots in readable files."""

    path: Path

    @classmethod
    def open(cls, path: Path) -> Folder:
        """Create the folder, or raise if that is impossible."""
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
    def cells(self) -> ResultFile[Cell]:
        """Utility scores of all finished runs."""
        return ResultFile(self.path / "cells.csv", Cell, UTILITY)

    @property
    def timings(self) -> ResultFile[Timing]:
        """Seconds of all finished timed runs."""
        return ResultFile(self.path / "timings.csv", Timing, SECONDS)

    def claim(self, data: DataSet, digest: str) -> None:
        """Record which data the results belong to; refuse to mix them with results of others."""
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
        """The data sets the results belong to, by name, in the paper's order."""
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
        """Record which machine the timings were taken on."""
        self.write("machine.txt", machine() + "\n")

    @property
    def machine(self) -> str:
        """The machine the timings were taken on; empty if there are none."""
        path = self.path / "machine.txt"
        return path.read_text("utf-8").strip() if path.exists() else ""

    def write(self, name: str, text: str) -> Path:
        """Write a text file atomically."""
        path = self.path / name
        with replacing(path) as temporary:
            temporary.write_text(text, "utf-8")
        return path


def machine() -> str:
    """Describe this machine in a few words."""
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
    """Return the CPU's model name from the lines of /proc/cpuinfo.

    >>> _model(["processor : 0", "model name : Fast One"])
    'Fast One'
    """
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return ""


@dataclass(slots=True)
class Reproduction:
    """A selection of studies and data sets, reproduced in one folder."""

    studies: Sequence[Study]
    sources: list[DataSource]
    folder: Folder
    scope: Scope
    datasets: list[DataSet] = field(default_factory=list)

    def prepare(self, told: Callable[[str], None], progress: Progress | None = None) -> None:
        """Generate missing data, read every data set once, and check that it has not changed."""
        figures.load_matplotlib()
        for source in self.sources:
            if source.generated and not source.file.exists():
                told(f"generating: {source.title}")
                source.make(progress)
            told(f"reading: {source.title}")
            real = load(source)
            data = DataSet.of(source, real)
            self.folder.claim(data, fingerprint(real))
            self.datasets.append(data)

    def cells(self, study: Study) -> list[Cell]:
        """Return the utility runs of a study."""
        return cells_of(study, self._names(study), self.scope)

    def timings(self, study: Study) -> list[Timing]:
        """Return the timed runs of a study."""
        return timings_of(study, self._names(study), self.scope)

    def run(
        self, *, jobs: int, told: Told, stopping: Callable[[], None], pool: Pool | None = None
    ) -> None:
        """Run what is missing; timed runs always run in this process, whatever the pool."""
        cells = [cell for study in self.studies for cell in self.cells(study)]
        tasks = tasks_for(cells, self.folder.cells.load(), self.sources)
        run_cells(tasks, self.folder.cells, jobs=jobs, told=told, stopping=stopping, pool=pool)
        done = self.folder.timings.load()
        timings = dict.fromkeys(timing for study in self.studies for timing in self.timings(study))
        missing = [timing for timing in timings if timing not in done]
        if missing:
            self.folder.note_machine()
            run_timings(missing, self.folder.timings, self.sources, told=told)

    def write(self) -> list[Path]:
        """Write the tables and plots of every study; return the files."""
        for store in (self.folder.cells, self.folder.timings):
            if store.path.exists():
                store.sort()
        written: list[Path] = []
        for study in self.studies:
            if not self._names(study):  # none of its data sets is selected
                continue
            written.append(self.folder.write(f"{study.name}.md", self.text(study)))
            if study.has_figure:
                figure = figures.FIGURES[study.name](*self._found(study))
                written += figures.save(figure, self.folder.path / study.name)
        return written

    def text(self, study: Study) -> str:
        """Return the Markdown page of a study, from the results in the folder."""
        found = self._found(study)
        parts = [f"# {study.title}", tables.TABLES[study.name](*found).strip()]
        if found[1].rows:
            parts.append(f"Times were taken on: {self.folder.machine}.")
        return "\n\n".join(parts) + "\n"

    def _found(self, study: Study) -> tuple[Results, Timings, list[DataSet]]:
        """Return the results of a study's own runs, and its data sets."""
        cells, timings = self.folder.cells.load(), self.folder.timings.load()
        names = self._names(study)
        return (
            Results({key: cells[key] for key in self.cells(study) if key in cells}),
            Timings({key: timings[key] for key in self.timings(study) if key in timings}),
            [one for one in self.datasets if one.name in names],
        )

    def _names(self, study: Study) -> list[str]:
        """Return the data sets a study runs on: the ones it names, or their stand-in."""
        names = [one.name for one in self.datasets]
        return [name for name in names if name in study.data or name not in ALL_DATA]
