"""Workers in this process: the reference for every other engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from retrasyn.engines.base import Make, Worker


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
