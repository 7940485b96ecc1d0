"""From the name of a table or figure to its files, running only what is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from retrasyn.experiments import figures, tables
from retrasyn.experiments.cells import Cell, Results, Timing, Timings
from retrasyn.experiments.folder import Folder
from retrasyn.experiments.runner import Pool, Told, load, run_cells, run_timings, tasks_for
from retrasyn.experiments.sources import DataSet, Progress, Source
from retrasyn.experiments.studies import ALL_DATA, Scope, Study, cells_of, timings_of
from retrasyn.simulation.checkpoint import fingerprint


@dataclass(slots=True)
class Reproduction:
    """Some studies on some data, in one folder."""

    studies: Sequence[Study]
    sources: list[Source]
    folder: Folder
    scope: Scope
    datasets: list[DataSet] = field(default_factory=list)

    def prepare(self, told: Callable[[str], None], progress: Progress | None = None) -> None:
        """Make what must be made, read everything once, and see that it is what it was."""
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
        """Return the runs of a study that need a stopwatch."""
        return timings_of(study, self._names(study), self.scope)

    def run(
        self, *, jobs: int, told: Told, stopping: Callable[[], None], pool: Pool | None = None
    ) -> None:
        """Run what is missing; what needs a stopwatch runs here, whatever the pool."""
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
            if not self._names(study):  # not about any data set at hand
                continue
            written.append(self.folder.write(f"{study.name}.md", self.text(study)))
            if study.has_figure:
                figure = figures.FIGURES[study.name](*self._found(study))
                written += figures.save(figure, self.folder.path / study.name)
        return written

    def text(self, study: Study) -> str:
        """Return the page of a study, from what the folder holds."""
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
        """Return the data sets a study runs on: those it is about, or what stands in for them."""
        names = [one.name for one in self.datasets]
        return [name for name in names if name in study.data or name not in ALL_DATA]
