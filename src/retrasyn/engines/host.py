"""A worker on another machine: answers numbered questions once, and saves what it holds.

What a worker holds follows from the questions it was asked. So whoever asks keeps the questions
since the last save but one; a worker that is lost begins anew from a save and is asked them again.
Saving happens when asking again would take much longer than saving, so it costs a small part of
the time whatever there is to save, and so does starting again.
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
_PATIENCE = 20.0  # seconds of work that are worth a second of saving
_FIRST = 0.02  # seconds a save is taken to last before there was one


@dataclass(frozen=True, slots=True)
class Saves:
    """What one worker saved in a folder, by the number of the last question it had answered."""

    folder: Path
    index: int

    def write(self, number: int, worker: Worker) -> None:
        """Save what a worker holds; the newest few are kept."""
        save_arrays(self._path(number), worker.to_arrays())
        for old in self.numbers()[:-KEPT]:
            self._path(old).unlink(missing_ok=True)

    def numbers(self) -> list[int]:
        """Return what is there, ascending."""
        return sorted(int(path.stem.rpartition("-")[2]) for path in self.folder.glob(self._names))

    def read(self, worker: Worker, *, below: int) -> int:
        """Give a worker the newest whole save before a question; return its number, 0 if none.

        What was saved later is of a time that begins again, and removed.
        """
        for number in reversed(self.numbers()):
            path = self._path(number)
            if number < below:
                try:
                    arrays = load_arrays(path)
                    check_seal(path, arrays)
                except CheckpointError:  # cut off by the loss we come from: an older one is whole
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
    """Answers in order, each question once."""

    worker: Worker
    saves: Saves
    number: int = 0  # of the last question answered
    _answer: Any = None
    _busy: float = 0.0  # seconds since the last save
    _last_save: float = field(default=_FIRST)

    @classmethod
    def open(cls, make: Make, index: int, n_workers: int, folder: str) -> Host:
        """Make a worker that holds nothing."""
        return cls(make(index, n_workers), Saves(Path(folder), index))

    def restore(self, below: int) -> int:
        """Begin from the newest save before a question; return its number, 0 for nothing."""
        self.number = self.saves.read(self.worker, below=below)
        return self.number

    def ask(self, number: int, question: str, *arguments: Any) -> tuple[Any, list[int]]:
        """Answer a question, or repeat the answer to the last one; tell what is saved."""
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
        """Save what is held, unless something is half done; tell what is saved."""
        if self.worker.whole:
            begin = time.perf_counter()
            self.saves.write(self.number, self.worker)
            self._last_save, self._busy = time.perf_counter() - begin, 0.0
        return self.saves.numbers()
