"""A sink for releases whose points every shard writes itself: it knows where they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from retrasyn.data.parts import count_points, drop_after
from retrasyn.data.trajectories import Trajectories
from retrasyn.messages import Release
from retrasyn.sinks.collected import Snapshot


@dataclass(slots=True)
class Scattered:
    """Parts in a folder; no points are held here."""

    folder: Path
    snapshots: list[Snapshot] = field(default_factory=list)  # always none

    def write(self, release: Release) -> None:
        """Do nothing: the shards have written."""

    @property
    def n_points(self) -> int:
        """How many points the shards have written."""
        return count_points(self.folder)

    def go_on_from(self, t: int | None) -> None:
        """Remove what was written after timestamp t: it is written again."""
        if t is not None:
            drop_after(self.folder, t)

    def trajectories(self) -> Trajectories:
        """Return no points."""
        nobody, nowhere = np.empty(0, np.int64), np.empty(0)
        return Trajectories(nobody, nobody, np.zeros(1, np.int64), nowhere, nowhere)
