"""Engines hold workers, each with a part of something, and ask all of them the same question.

An engine knows nothing of streams or reports. Its user gives it a function that makes a worker,
asks questions through `Workers` and combines the answers. Workers never talk to each other, so a
worker is all that has to run on another machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, TypeVarTuple

import numpy as np
import numpy.typing as npt

from retrasyn.arrays import Arrays


class Worker(Protocol):
    """Holds a part; its other methods are what it can be asked.

    What a worker holds may depend on nothing but the questions it was asked, in their order.
    Arguments and answers are numpy arrays, numbers, texts and tuples of them; a worker must not
    change its arguments.
    """

    @property
    def whole(self) -> bool:
        """Whether `to_arrays` is complete: no question has left work half done."""
        ...  # pragma: no cover - a protocol has no body

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything the worker holds as plain arrays."""
        ...  # pragma: no cover - a protocol has no body

    def load_arrays(self, arrays: Arrays) -> None:
        """Replace what the worker holds by what `to_arrays` gave."""
        ...  # pragma: no cover - a protocol has no body


Make = Callable[[int, int], Worker]
"""Makes worker number i of n, holding nothing yet."""


class Engine(Protocol):
    """Holds n workers and asks them by the name of a method; `Workers` adds the types."""

    @property
    def n_workers(self) -> int:
        """How many workers there are."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def n_threads(self) -> int | None:
        """How many threads a worker may use; None: as many as numba is told to."""
        ...  # pragma: no cover - a protocol has no body

    def open(self, make: Make) -> None:
        """Make all workers, replacing any there were."""
        ...  # pragma: no cover - a protocol has no body

    def each(self, question: str, *arguments: Any) -> list[Any]:
        """Ask every worker the same, and return the answers in the order of the workers."""
        ...  # pragma: no cover - a protocol has no body

    def spread(self, question: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Ask once per row of arguments, going round the workers; return the answers in order."""
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
    """The workers of an engine, asked by their own methods, so that every call is type-checked.

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
        """Make all workers of an engine, replacing any there were."""
        engine.open(make)
        return Workers(engine)

    def each(
        self, question: Callable[[_Worker_co, *_Arguments], _Answer], *arguments: *_Arguments
    ) -> list[_Answer]:
        """Ask every worker the same, and return the answers in the order of the workers."""
        return self.engine.each(question.__name__, *arguments)

    def spread(
        self,
        question: Callable[[_Worker_co, *_Arguments], _Answer],
        arguments: list[tuple[*_Arguments]],
    ) -> list[_Answer]:
        """Ask once per row of arguments, going round the workers; return the answers in order."""
        return self.engine.spread(question.__name__, arguments)


def total(parts: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Add up the whole numbers of all workers; their order does not matter.

    >>> total([np.array([1, 2]), np.array([3, 4])]).tolist()
    [4, 6]
    """
    return parts[0] if len(parts) == 1 else np.sum(parts, axis=0)


@dataclass(slots=True)
class LocalEngine:
    """Asks workers of this process one after the other. One is usual: it has threads of its own.

    >>> LocalEngine(3).n_workers
    3
    """

    n_workers: int = 1
    n_threads: int | None = None
    workers: list[Worker] = field(default_factory=list, repr=False)

    def open(self, make: Make) -> None:
        """Make all workers anew."""
        self.workers = [make(index, self.n_workers) for index in range(self.n_workers)]

    def each(self, question: str, *arguments: Any) -> list[Any]:
        """Ask every worker the same."""
        return [getattr(worker, question)(*arguments) for worker in self.workers]

    def spread(self, question: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Ask once per row of arguments, going round the workers."""
        n = self.n_workers
        return [getattr(self.workers[k % n], question)(*each) for k, each in enumerate(arguments)]

    def close(self) -> None:
        """Drop all workers."""
        self.workers = []
