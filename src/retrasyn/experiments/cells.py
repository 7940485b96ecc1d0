"""The key of one run (a cell), and the files that store results."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from retrasyn.errors import InputError
from retrasyn.metrics.suite import METRICS


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cell:
    """One run evaluated with one span: the key of a row of utility scores."""

    data: str
    method: str
    epsilon: float = 1.0
    window: int = 20
    side: int = 6  # K
    span: int = 20  # phi
    share: float = 1.0  # of the users
    faithful: bool = False
    seed: int = 0

    @property
    def run(self) -> Cell:
        """The same run, whatever span it is evaluated with."""
        return dataclasses.replace(self, span=20)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Timing:
    """One timed run: the key of a row of seconds."""

    data: str
    method: str
    side: int = 6
    share: float = 1.0
    faithful: bool = False
    seed: int = 0


Key = TypeVar("Key", Cell, Timing)

UTILITY = (
    *(metric.key for metric in METRICS),
    "n_active",  # mean per timestamp
    "n_timestamps",
    "n_states",
    "n_reports",  # in total
    "bits",  # sent by all devices, mean per timestamp
    "never_asked",  # share of persons who were never asked
    "worst_window",  # epsilon, per person and position
    "seconds",  # of the whole run, evaluation included
)
"""What is stored of a run. Columns that do not depend on the span are stored with span 20 only."""
SECONDS = (
    "seconds_user",
    "seconds_model",
    "seconds_update",
    "seconds_synthesis",
    "seconds_total",
    "n_active",
    "n_reports",
    "n_timestamps",
)
"""What is stored of a timed run: means per timestamp, except the number of timestamps."""


@dataclass(slots=True)
class ResultTable(Generic[Key]):
    """Rows of figures by key. A missing figure is left out, never NaN."""

    rows: dict[Key, Mapping[str, float]] = field(default_factory=dict)

    key_type: ClassVar[type[Any]]

    def values(self, measure: str, **key: Any) -> list[float]:
        """Return a measure for every seed, in the order of the seeds."""
        wanted = self.key_type(**{**key, "seed": 0})
        rows = sorted((k.seed, row) for k, row in self.rows.items() if _alike(k, wanted))
        return [row[measure] for _, row in rows if measure in row]


class Results(ResultTable[Cell]):
    """Utility scores by cell."""

    __slots__ = ()
    key_type = Cell


class Timings(ResultTable[Timing]):
    """Seconds per timestamp by timed run."""

    __slots__ = ()
    key_type = Timing


@dataclass(frozen=True, slots=True)
class ResultFile(Generic[Key]):
    """A CSV file that grows by one row per finished run and survives a crash.

    Rows are appended and flushed to disk one at a time. A truncated last line is
    dropped when the file is opened again.
    """

    path: Path
    key_type: type[Key]
    measures: tuple[str, ...]

    def load(self) -> dict[Key, Mapping[str, float]]:
        """Return all complete rows; empty if there is no file yet."""
        if not self.path.exists():
            return {}
        text = self.path.read_text("utf-8")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            _replace(self.path, whole)
        rows: dict[Key, Mapping[str, float]] = {}
        for line, entry in enumerate(csv.DictReader(io.StringIO(whole)), start=2):
            try:
                rows[self._key(entry)] = self._figures(entry)
            except (KeyError, TypeError, ValueError) as error:
                raise InputError(
                    f"{self.path}, line {line}: not a row of results ({error}); "
                    "mend or remove the file"
                ) from None
        return rows

    def append(self, key: Key, figures: Mapping[str, float]) -> None:
        """Append one row and flush it to disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = not self.path.exists() or self.path.stat().st_size == 0
        with self.path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if fresh:
                writer.writerow([*self._names(), *self.measures])
            writer.writerow(self._fields(key, figures))
            file.flush()
            os.fsync(file.fileno())

    def sort(self) -> None:
        """Rewrite the rows in the order of their keys, so that equal results are equal files."""
        rows = self.load()
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*self._names(), *self.measures])
        writer.writerows(self._fields(key, rows[key]) for key in sorted(rows))
        _replace(self.path, text.getvalue())

    def _names(self) -> list[str]:
        return [column.name for column in dataclasses.fields(self.key_type)]

    def _key(self, entry: Mapping[str, str]) -> Key:
        values: dict[str, Any] = {}
        for column in dataclasses.fields(self.key_type):
            values[column.name] = _READ[str(column.type)](entry[column.name])
        return self.key_type(**values)

    def _fields(self, key: Key, figures: Mapping[str, float]) -> list[str]:
        """Format a row so that its numbers can be read back exactly."""
        texts: list[str] = [
            repr(float(figures[name])) if name in figures else "" for name in self.measures
        ]
        return [*map(str, dataclasses.astuple(key)), *texts]

    def _figures(self, entry: Mapping[str, str]) -> dict[str, float]:
        return {name: float(entry[name]) for name in self.measures if entry[name]}


def _alike(key: Any, wanted: Any) -> bool:
    return bool(dataclasses.replace(key, seed=0) == wanted)


def _switch(text: str) -> bool:
    if text not in ("True", "False"):
        raise ValueError(f"{text!r} is neither True nor False")
    return text == "True"


_READ: dict[str, Callable[[str], Any]] = {"str": str, "int": int, "float": float, "bool": _switch}


def _replace(path: Path, text: str) -> None:
    """Write a file atomically."""
    beside = path.with_name(path.name + ".new")
    beside.write_text(text, "utf-8")
    beside.replace(path)
