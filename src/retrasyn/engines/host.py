"""Host of a remote worker: answers each numbered question once and saves the worker's state.

A worker's state follows from the questions it was asked. So the caller keeps the questions since
the last save but one; a lost worker is restored from a save and asked them again. A save is made
when repeating the questions would take much longer than saving, so both saving and recovery cost
only a small part of the run time, whatever the size of the state.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrasyn.arrays import check_seal, load_arrays, save_arrays
from retrasyn.engines.base import Make, Worker
from retrasyn.errors import CheckpointError

KEPT = 2
_PATIENCE = 20.0  # seconds of work per second spent saving
_FIRST = 0.02  # assumed seconds of a save before the first one


@dataclass(frozen=True, slots=True)
class Saves:
    """The saves of one worker in a folder, each named by the last question answered."""

    folder: Path
    index: int

    def write(self, number: int, worker: Worker) -> None:
        """Save a worker's state; only the newest few saves are kept."""
        save_arrays(self._path(number), worker.to_arrays())
        for old in self.numbers()[:-KEPT]:
            self._path(old).unlink(missing_ok=True)

    def numbers(self) -> list[int]:
        """Return the numbers of all saves, ascending."""
        return sorted(int(path.stem.rpartition("-")[2]) for path in self.folder.glob(self._names))

    def read(self, worker: Worker, *, below: int) -> int:
        """Restore the newest intact save before question `below`; return its number, 0 if none.

        Later saves are removed, since the worker resumes before them.
        """
        for number in reversed(self.numbers()):
            path = self._path(number)
            if number < below:
                try:
                    arrays = load_arrays(path)
                    check_seal(path, arrays)
                except CheckpointError:  # truncated when the worker was lost: try an older one
                    path.unlink(missing_ok=True)
                    continue
                worker.load_arrays(arrays)
                return number
            path.unlink(missing_ok=True)
        return 0

    @property
    def _names(self) -> str:
        return f"worker-{self.index:05d}-*.npz"

    def _path(self, number: int) -> Path:
        return self.folder / f"worker-{self.index:05d}-{number:012d}.npz"


@dataclass(slots=True)
class Host:
    """Runs one worker and answers numbered questions in order, each once."""

    worker: Worker
    saves: Saves
    number: int = 0  # number of the last question answered
    _answer: Any = None
    _busy: float = 0.0  # seconds of work since the last save
    _last_save: float = field(default=_FIRST)

    @classmethod
    def open(cls, make: Make, index: int, n_workers: int, folder: str) -> Host:
        """Create a worker with empty state."""
        return cls(make(index, n_workers), Saves(Path(folder), index))

    def restore(self, below: int) -> int:
        """Restore the newest save before question `below`; return its number, 0 if none."""
        self.number = self.saves.read(self.worker, below=below)
        return self.number

    def ask(self, number: int, question: str, *arguments: Any) -> tuple[Any, list[int]]:
        """Answer a question, or repeat the last answer; also return the numbers of all saves."""
        if number == self.number + 1:
            begin = time.perf_counter()
            self._answer = getattr(self.worker, question)(*arguments)
            self.number = number
            self._busy += time.perf_counter() - begin
            if self._busy > _PATIENCE * self._last_save:
                self.save()
        elif number != self.number:
            raise CheckpointError(
                f"worker {self.saves.index} answered question {self.number} and is asked question "
                f"{number}: what it held is lost; start the run again from its checkpoint"
            )
        return self._answer, self.saves.numbers()

    def save(self) -> list[int]:
        """Save the worker, unless an operation is half done; return the numbers of all saves."""
        if self.worker.whole:
            begin = time.perf_counter()
            self.saves.write(self.number, self.worker)
            self._last_save, self._busy = time.perf_counter() - begin, 0.0
        return self.saves.numbers()
