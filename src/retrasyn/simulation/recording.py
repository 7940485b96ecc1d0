"""Recorded trajectories on a grid, laid out timestamp by timestamp."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import InputError
from retrasyn.simulation import kernels
from retrasyn.space import Grid
from retrasyn.space.grid import format_box

Outside = Literal["refuse", "drop"]


@dataclass(frozen=True, slots=True)
class Step:
    """Who is where at one timestamp."""

    t: int
    streams: npt.NDArray[np.int32]  # [n_active]
    cells: npt.NDArray[np.uint16]  # [n_active]


@dataclass(frozen=True, slots=True)
class Recording:
    """All steps from the first timestamp to the last, empty ones included."""

    first_t: int
    offsets: npt.NDArray[np.int64]  # [n_timestamps + 1]
    streams: npt.NDArray[np.int32]  # [n_points]
    cells: npt.NDArray[np.uint16]  # [n_points]
    n_dropped: int
    mean_length: float  # raw mean number of points of a stream

    @classmethod
    def of(cls, real: Trajectories, grid: Grid, outside: Outside = "refuse") -> "Recording":
        """Put trajectories on a grid; points outside the box are refused, or dropped on request.

        Dropping a point in the middle of a stream means that its device quits and returns.
        """
        cells, n_outside = grid.locate(real.x, real.y)
        if n_outside and outside == "refuse":
            raise InputError(
                f"{n_outside} of {real.n_points} points lie outside the box "
                f"{format_box(grid.box)}; widen --box, or drop them with --outside drop"
            )
        if n_outside == real.n_points:
            raise InputError(f"no point lies inside the box {format_box(grid.box)}; check --box")
        first_t = real.first_t
        offsets, streams, cells = kernels.group_by_time(
            real.starts, real.begins - first_t, cells, real.last_t - first_t + 1
        )
        return cls(first_t, offsets, streams, cells, n_outside, real.n_points / real.n_streams)

    @property
    def n_timestamps(self) -> int:
        """Number of timestamps."""
        return self.offsets.size - 1

    def step(self, t: int) -> Step:
        """Return who is where at t."""
        low, high = self.offsets[t - self.first_t : t - self.first_t + 2]
        return Step(t, self.streams[low:high], self.cells[low:high])

    def steps(self, *, after: int | None = None, until: int | None = None) -> Iterator[Step]:
        """Iterate over all steps, or over those after or up to a timestamp."""
        begin = self.first_t if after is None else after + 1
        end = self.first_t + self.n_timestamps if until is None else until + 1
        for t in range(begin, end):
            yield self.step(t)
