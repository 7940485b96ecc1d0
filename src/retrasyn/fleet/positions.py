"""Recorded trajectories as what each device sees, timestamp by timestamp."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.data.trajectories import Trajectories
from retrasyn.device.tracker import Fix


@dataclass(frozen=True, slots=True)
class Positions:
    """Points sorted by timestamp; devices are numbered from 0, one per user or stream."""

    n_devices: int
    n_timestamps: int
    edges: npt.NDArray[np.int64] = field(repr=False)  # [n_timestamps + 1], rows of each timestamp
    device: npt.NDArray[np.int64] = field(repr=False)  # [n_points]
    x: npt.NDArray[np.float64] = field(repr=False)  # [n_points]
    y: npt.NDArray[np.float64] = field(repr=False)  # [n_points]

    @classmethod
    def of(cls, real: Trajectories, n_devices: int | None = None) -> Positions:
        """Number the users of a file, or its streams where it names none, and keep the first."""
        owner = real.traj_id if real.user_id is None else real.user_id  # [n_points]
        known, device = np.unique(owner, return_inverse=True)
        n = known.size if n_devices is None else min(n_devices, known.size)
        t = real.t - real.first_t
        rows = np.flatnonzero(device < n)
        rows = rows[np.argsort(t[rows], kind="stable")]
        n_timestamps = real.last_t - real.first_t + 1
        edges = np.searchsorted(t[rows], np.arange(n_timestamps + 1))
        return cls(n, n_timestamps, edges, device[rows], real.x[rows], real.y[rows])

    def at(self, step: int) -> dict[int, Fix]:
        """Return who is where; after the last timestamp everything begins again."""
        step %= self.n_timestamps
        rows = slice(int(self.edges[step]), int(self.edges[step + 1]))
        places = zip(self.x[rows].tolist(), self.y[rows].tolist(), strict=True)
        return dict(zip(self.device[rows].tolist(), places, strict=True))
