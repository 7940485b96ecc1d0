"""A sink that collects releases in memory and turns them into `Trajectories`."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.data.trajectories import Trajectories
from retrasyn.messages import Release
from retrasyn.sinks import kernels


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The points of one timestamp."""

    t: int
    ids: npt.NDArray[np.int64]
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    n_born: int


@dataclass(slots=True)
class Collected:
    """Snapshots ordered by time."""

    snapshots: list[Snapshot] = field(default_factory=list)
    n_points: int = 0

    def write(self, release: Release) -> None:
        """Store the points of one release."""
        self.n_points += release.n_points
        self.snapshots.append(
            Snapshot(release.t, release.ids, release.x, release.y, release.n_born)
        )

    def go_on_from(self, t: int | None) -> None:
        """Resume after timestamp t, with the earlier snapshots already in place."""
        del t
        self.n_points = sum(snapshot.ids.size for snapshot in self.snapshots)

    def trajectories(self) -> Trajectories:
        """Return all points sorted by (traj_id, t); frees the snapshots as it goes.

        Streams are numbered in order of birth, so row numbers follow from counts alone.
        """
        born = [snapshot.n_born for snapshot in self.snapshots]
        times = [snapshot.t for snapshot in self.snapshots]
        n_streams = sum(born)
        begins = np.repeat(np.asarray(times, np.int64), born)  # [n_streams]
        lengths = np.zeros(n_streams, np.int64)
        for snapshot in self.snapshots:
            lengths[snapshot.ids] += 1
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        n_points = int(starts[-1])
        x, y = np.empty(n_points), np.empty(n_points)
        shift = starts[:-1] - begins
        self.snapshots.reverse()
        while self.snapshots:
            snapshot = self.snapshots.pop()
            kernels.scatter(snapshot.ids, snapshot.t, shift, snapshot.x, snapshot.y, x, y)
        return Trajectories(np.arange(n_streams), begins, starts, x, y)
