"""One engine for several users: each of its workers holds an equal worker for every user.

A curator and its replicas share the workers of one engine, so a cluster needs no more processes
for them, and what brings a lost worker back brings back all it held.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from retrasyn.arrays import with_prefix, without_prefix

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.arrays import Arrays
    from retrasyn.engines.base import Engine, Make, Worker


@dataclass(slots=True)
class WorkerGroup:
    """A worker made of equal workers, one for each user of the engine."""

    members: list[Worker]

    def ask(self, user: int, question: str, *arguments: Any) -> Any:
        """Pass a user's question to its member."""
        return getattr(self.members[user], question)(*arguments)

    @property
    def whole(self) -> bool:
        """Whether all members are."""
        return all(member.whole for member in self.members)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the states of all members as plain arrays."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        for user, member in enumerate(self.members):
            arrays |= with_prefix(f"{user}_", member.to_arrays())
        return arrays

    def load_arrays(self, arrays: Arrays) -> None:
        """Restore the states of all members."""
        for user, member in enumerate(self.members):
            member.load_arrays(without_prefix(f"{user}_", arrays))


def make_group(index: int, n_workers: int, *, make: Make, n_users: int) -> WorkerGroup:
    """Create a worker for all users, with empty state."""
    return WorkerGroup([make(index, n_workers) for _ in range(n_users)])


@dataclass(frozen=True, slots=True)
class EngineShare:
    """An engine as one of its users sees it. All users make equal workers; user 0 opens them."""

    engine: Engine
    user: int
    n_users: int

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return self.engine.n_workers

    @property
    def n_threads(self) -> int | None:
        """Threads each worker may use; None: numba's setting."""
        return self.engine.n_threads

    def open(self, make: Make) -> None:
        """Create the workers of all users."""
        if self.user == 0:
            self.engine.open(partial(make_group, make=make, n_users=self.n_users))

    def each(self, question: str, *arguments: Any) -> list[Any]:
        """Ask every worker the same question."""
        return self.engine.each(WorkerGroup.ask.__name__, self.user, question, *arguments)

    def spread(self, question: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Ask once per row of arguments, round-robin over workers."""
        rows = [(self.user, question, *row) for row in arguments]
        return self.engine.spread(WorkerGroup.ask.__name__, rows)

    def close(self) -> None:
        """Drop the workers of all users."""
        self.engine.close()


def shares_of(engine: Engine, n_users: int) -> list[EngineShare]:
    """Share an engine among users; the first has to open it before the others do.

    >>> from retrasyn.engines.base import LocalEngine
    >>> [share.user for share in shares_of(LocalEngine(), 3)]
    [0, 1, 2]
    """
    return [EngineShare(engine, user, n_users) for user in range(n_users)]
