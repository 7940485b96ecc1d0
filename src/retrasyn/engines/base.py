"""What an engine is: it holds workers, each with a part of something, and asks them by name.

An engine knows nothing of streams or reports. Whoever uses one gives it a function that makes a
worker, asks all workers the same question and combines what they answer. Workers never talk to
each other. That is all that has to run on another machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from retrasyn.arrays import Arrays


class Worker(Protocol):
    """Holds a part; its other methods are what it can be asked.

    What a worker holds may depend on nothing but the questions it was asked, in their order.
    Arguments and answers are numpy arrays, numbers, texts and tuples of them; arguments are not
    to be changed.
    """

    @property
    def whole(self) -> bool:
        """Whether `to_arrays` tells all: nothing is half done."""
        ...  # pragma: no cover - a protocol has no body

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that is held as plain arrays."""
        ...  # pragma: no cover - a protocol has no body

    def load_arrays(self, arrays: Arrays) -> None:
        """Take over what `to_arrays` gave."""
        ...  # pragma: no cover - a protocol has no body


Make = Callable[[int, int], Worker]
"""Makes worker number i of n, holding nothing yet."""


class Engine(Protocol):
    """Holds n workers and asks them."""

    @property
    def n_workers(self) -> int:
        """How many there are."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def n_threads(self) -> int | None:
        """How many threads a worker may use; None: as many as numba is told to."""
        ...  # pragma: no cover - a protocol has no body

    def open(self, make: Make) -> None:
        """Make all workers; those there were before are gone."""
        ...  # pragma: no cover - a protocol has no body

    def each(self, question: str, *arguments: Any) -> list[Any]:
        """Ask every worker the same, and return the answers in the order of the workers."""
        ...  # pragma: no cover - a protocol has no body

    def spread(self, question: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Ask with other arguments: the first goes to the first worker, and around again."""
        ...  # pragma: no cover - a protocol has no body

    def close(self) -> None:
        """Let all workers go."""
        ...  # pragma: no cover - a protocol has no body


def total(parts: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Add whole numbers of all workers up; it does not matter in which order.

    >>> total([np.array([1, 2]), np.array([3, 4])]).tolist()
    [4, 6]
    """
    return parts[0] if len(parts) == 1 else np.sum(parts, axis=0)


@dataclass(slots=True)
class LocalEngine:
    """Asks workers one after the other. One is the usual number: it uses threads itself.

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
        """Ask with other arguments: the first goes to the first worker, and around again."""
        n = self.n_workers
        return [getattr(self.workers[k % n], question)(*each) for k, each in enumerate(arguments)]

    def close(self) -> None:
        """Let all workers go."""
        self.workers = []
