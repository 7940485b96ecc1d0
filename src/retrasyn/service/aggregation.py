"""Adds reports up, in this process or by the workers of a cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.engines.base import Workers, total
from retrasyn.messages import Aggregate
from retrasyn.oracles.registry import BINARY, find_oracle

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.arrays import Arrays
    from retrasyn.engines.base import Engine
    from retrasyn.oracles.base import Oracle
    from retrasyn.service.settings import ServerSettings

BATCH = 1 << 16
"""Reports that are sent to a worker at once."""


def oracle_named(name: str, epsilon: int, n_answers: int) -> Oracle:
    """Return the oracle that hid the answers to a question, or the binary response."""
    row = BINARY if name == BINARY.name else find_oracle(name)
    return row.at(epsilon, n_answers)


@dataclass(slots=True)
class Sum:
    """The sum of the reports on one question at one timestamp."""

    counts: npt.NDArray[np.int64]
    n: int = 0
    batches: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Sums:
    """A worker that adds reports up. A batch that comes twice counts once."""

    sums: dict[tuple[int, int], Sum] = field(default_factory=dict)  # by t and question code
    whole: bool = True

    @classmethod
    def open(cls, index: int, n_workers: int) -> Sums:
        """Return a worker with no sums."""
        del index, n_workers
        return cls()

    def add(
        self,
        t: int,
        code: int,
        batch: int,
        oracle: tuple[str, int, int],
        packed: npt.NDArray[np.uint8],
    ) -> int:
        """Add the reports of a batch, unless that was done; return how many were added now."""
        name, epsilon, n_answers = oracle
        found = self.sums.setdefault((t, code), Sum(np.zeros(n_answers, np.int64)))
        if batch in found.batches:
            return 0
        added = oracle_named(name, epsilon, n_answers).aggregate(packed, n_answers=n_answers)
        found.counts += added.counts
        found.n += added.n
        found.batches.add(batch)
        return added.n

    def sum_of(self, t: int, code: int, n_answers: int) -> npt.NDArray[np.int64]:
        """Return the counts, then the number of reports."""
        found = self.sums.get((t, code), Sum(np.zeros(n_answers, np.int64)))
        return np.append(found.counts, found.n)

    def forget(self, t: int) -> None:
        """Forget all sums up to a timestamp."""
        self.sums = {key: found for key, found in self.sums.items() if key[0] > t}

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all sums as plain arrays."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        for (t, code), found in self.sums.items():
            arrays[f"{t}/{code}/counts"] = np.append(found.counts, found.n)
            arrays[f"{t}/{code}/batches"] = np.array(sorted(found.batches), np.int64)
        return arrays

    def load_arrays(self, arrays: Arrays) -> None:
        """Load all sums from plain arrays."""
        self.sums = {}
        for name, array in arrays.items():
            t, code, what = name.split("/")
            if what == "counts":
                batches = set(arrays[f"{t}/{code}/batches"].tolist())
                self.sums[int(t), int(code)] = Sum(array[:-1].copy(), int(array[-1]), batches)


def add_up(
    workers: Workers[Sums] | None,
    packed: npt.NDArray[np.uint8],
    *,
    t: int,
    code: int,
    oracle: tuple[str, int, int],
) -> Aggregate:
    """Return the sum of reports: added up here, or by workers."""
    name, epsilon, n_answers = oracle
    if workers is None:
        return oracle_named(name, epsilon, n_answers).aggregate(packed, n_answers=n_answers)
    firsts = range(0, len(packed), BATCH)
    batches = [
        (t, code, batch, oracle, packed[first : first + BATCH])
        for batch, first in enumerate(firsts)
    ]
    workers.spread(Sums.add, batches)
    counts = total(workers.each(Sums.sum_of, t, code, n_answers))
    return Aggregate(counts=counts[:-1], n=int(counts[-1]))


@dataclass(frozen=True, slots=True)
class Engines:
    """The engines of the synthetic streams and of the sums of reports; None: this process."""

    streams: Engine | None = None
    sums: Workers[Sums] | None = None

    @classmethod
    def open(cls, settings: ServerSettings) -> Engines:
        """Connect to the cluster that the settings name, if they name one."""
        if settings.engine == "local":
            return cls()
        from retrasyn.engines.ray import RayEngine  # noqa: PLC0415 - an extra

        folder = settings.folder / "workers"
        streams, sums = (
            RayEngine.start(address=settings.address, n_workers=settings.shards, folder=folder)
            for _ in range(2)
        )
        return cls(streams, Workers.open(sums, Sums.open))

    def close(self) -> None:
        """Close both engines."""
        if self.streams is not None:
            self.streams.close()
        if self.sums is not None:
            self.sums.engine.close()


HERE = Engines()
"""Everything in this process."""
