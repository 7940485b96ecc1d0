"""Engines hold workers, each with one part of the state, and call the same method on all.

An engine knows nothing about streams or reports. Its user passes a function that creates a
worker, calls methods through `Workers` and combines the results. Workers never communicate with
each other, so only the worker itself has to run on another machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, TypeVarTuple

import numpy as np
import numpy.typing as npt

from retrasyn.arrays import Arrays


class Worker(Protocol):
    """Holds one part of the state; its other methods are the questions it answers.

    A worker's state may depend only on the questions it was asked and their order. Arguments and
    answers are numpy arrays, numbers, texts and tuples of them; a worker must not change its
    arguments.
    """

    @property
    def whole(self) -> bool:
        """Whether `to_arrays` would be complete, with no operation half done."""
        ...  # pragma: no cover - a protocol has no body

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the worker's complete state as plain arrays."""
        ...  # pragma: no cover - a protocol has no body

    def load_arrays(self, arrays: Arrays) -> None:
        """Restore the state that `to_arrays` returned."""
        ...  # pragma: no cover - a protocol has no body


Make = Callable[[int, int], Worker]
"""Creates worker number i of n, with empty state."""


class Engine(Protocol):
    """Holds n workers and calls their methods by name; `Workers` adds type checking."""

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def n_threads(self) -> int | None:
        """Threads each worker may use; None: numba's setting."""
        ...  # pragma: no cover - a protocol has no body

    def open(self, make: Make) -> None:
        """Create all workers, replacing existing ones."""
        ...  # pragma: no cover - a protocol has no body

    def each(self, question: str, *arguments: Any) -> list[Any]:
        """Ask every worker the same question; return the answers in worker order."""
        ...  # pragma: no cover - a protocol has no body

    def spread(self, question: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Ask once per row of arguments, round-robin over workers; return answers in row order."""
        ...  # pragma: no cover - a protocol has no body

    def close(self) -> None:
        """Drop all workers."""
        ...  # pragma: no cover - a protocol has no body


_Worker_co = TypeVar("_Worker_co", bound=Worker, covariant=True)
_Opened = TypeVar("_Opened", bound=Worker)
_Answer = TypeVar("_Answer")
_Arguments = TypeVarTuple("_Arguments")


@dataclass(frozen=True, slots=True)
class Workers(Generic[_Worker_co]):
    """Typed access to an engine's workers: questions are passed as methods of the worker class.

    >>> class Adder:
    ...     whole, total = True, 0
    ...     def add(self, number: int) -> int:
    ...         self.total += number
    ...         return self.total
    >>> adders = Workers.open(LocalEngine(2), lambda index, n_workers: Adder())
    >>> adders.each(Adder.add, 3), adders.spread(Adder.add, [(1,), (2,), (3,)])
    ([3, 3], [4, 5, 7])
    """

    engine: Engine

    @classmethod
    def open(cls, engine: Engine, make: Callable[[int, int], _Opened]) -> Workers[_Opened]:
        """Create all workers of an engine, replacing existing ones."""
        engine.open(make)
        return Workers(engine)

    def each(
        self, question: Callable[[_Worker_co, *_Arguments], _Answer], *arguments: *_Arguments
    ) -> list[_Answer]:
        """Ask every worker the same question; return the answers in worker order."""
        return self.engine.each(question.__name__, *arguments)

    def spread(
        self,
        question: Callable[[_Worker_co, *_Arguments], _Answer],
        arguments: list[tuple[*_Arguments]],
    ) -> list[_Answer]:
        """Ask once per row of arguments, round-robin over workers; return answers in row order."""
        return self.engine.spread(question.__name__, arguments)


def total(parts: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Sum the integer arrays of all workers; integers make the order irrelevant.

    >>> total([np.array([1, 2]), np.array([3, 4])]).tolist()
    [4, 6]
    """
    return parts[0] if len(parts) == 1 else np.sum(parts, axis=0)


@dataclass(slots=True)
class LocalEngine:
    """Runs workers in this process, one after the other; usually one, which is multi-threaded.

    >>> LocalEngine(3).n_workers
    3
    """

    n_workers: int = 1
    n_threads: int | None = None
    workers: list[Worker] = field(default_factory=list, repr=False)

    def open(self, make: Make) -> None:
        """Create all workers, replacing existing ones."""
        self.workers = [make(index, self.n_workers) for index in range(self.n_workers)]

    def each(self, question: str, *arguments: Any) -> list[Any]:
        """Ask every worker the same question."""
        return [getattr(worker, question)(*arguments) for worker in self.workers]

    def spread(self, question: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Ask once per row of arguments, round-robin over workers."""
        n = self.n_workers
        return [getattr(self.workers[k % n], question)(*each) for k, each in enumerate(arguments)]

    def close(self) -> None:
        """Drop all workers."""
        self.workers = []
