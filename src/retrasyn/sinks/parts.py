"""Sinks for sharded runs, in which every shard writes its own Parquet files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.data.metadata import Metadata
from retrasyn.data.parts import count_points, drop_after, write_part
from retrasyn.data.trajectories import Trajectories
from retrasyn.messages import Release
from retrasyn.sinks.collected import Snapshot

if TYPE_CHECKING:
    import numpy.typing as npt


ROWS = 1 << 22
"""Points buffered before a part is written."""
TIMESTAMPS = 20
"""Timestamps buffered before a part is written, if it has fewer points."""


@dataclass(slots=True)
class PartSink:
    """Buffers a shard's points and writes them as parts.

    When a part is written depends on the points alone, and a shard is saved only when this buffer
    is empty. So a shard that restarts from a save writes the same files.
    """

    folder: Path
    shard: int
    known: Metadata
    _times: list[int] = field(default_factory=list)
    _columns: list[tuple[Any, Any, Any]] = field(default_factory=list)
    _n_rows: int = 0

    @classmethod
    def open(cls, shard: int, n_shards: int, *, folder: str, known: Metadata) -> PartSink:
        """Open the sink of a shard."""
        del n_shards
        return cls(Path(folder), shard, known)

    def write(self, t: int, points: dict[str, npt.NDArray[Any]]) -> None:
        """Add the points of one timestamp."""
        if points["ids"].size:
            self._times.append(t)
            self._columns.append((points["ids"].copy(), points["x"].copy(), points["y"].copy()))
            self._n_rows += points["ids"].size
        if self._n_rows >= ROWS or (t + 1) % TIMESTAMPS == 0:
            self.flush()

    @property
    def empty(self) -> bool:
        """Whether the buffer is empty."""
        return not self._times

    def flush(self) -> None:
        """Write the buffered points."""
        if self._times:
            write_part(self.folder, self.shard, self._times, self._columns, self.known)
        self._times, self._columns, self._n_rows = [], [], 0


@dataclass(slots=True)
class Scattered:
    """Sink of the coordinating process: the shards write the points as parts in a folder."""

    folder: Path
    snapshots: list[Snapshot] = field(default_factory=list)  # always empty

    def write(self, release: Release) -> None:
        """Do nothing: the shards write the points."""

    @property
    def n_points(self) -> int:
        """Number of points the shards have written."""
        return count_points(self.folder)

    def go_on_from(self, t: int | None) -> None:
        """Remove the parts after timestamp t, which will be written again."""
        if t is not None:
            drop_after(self.folder, t)

    def trajectories(self) -> Trajectories:
        """Return empty trajectories."""
        nobody, nowhere = np.empty(0, np.int64), np.empty(0)
        return Trajectories(nobody, nobody, np.zeros(1, np.int64), nowhere, nowhere)
