"""Two data sets made comparable: one grid, one timeline, streams cut at jumps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.errors import InputError
from retrasyn.metrics import kernels
from retrasyn.space.grid import format_box

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories
    from retrasyn.space.grid import Grid

_MOST_OUTSIDE = 0.01  # share of points outside the box above which the box must be wrong


@dataclass(frozen=True, slots=True, eq=False)
class Gridded:
    """Streams on a grid, cut at jumps; timestamp 0 is the first real one."""

    cells: npt.NDArray[np.uint16]  # [n_points]
    starts: npt.NDArray[np.int64]  # [n_streams + 1]
    begins: npt.NDArray[np.int64]  # [n_streams]
    x: npt.NDArray[np.float64]  # [n_points]
    y: npt.NDArray[np.float64]  # [n_points]

    @property
    def n_points(self) -> int:
        """Number of points."""
        return self.cells.size

    @property
    def n_streams(self) -> int:
        """Number of streams after cutting."""
        return self.begins.size

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of points of every stream: [n_streams]."""
        return np.diff(self.starts)


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Real and synthetic streams, ready to be compared; `notes` lists what had to be repaired.

    >>> from retrasyn.data.trajectories import Trajectories
    >>> from retrasyn.space.grid import Box, Grid
    >>> walk = Trajectories.from_columns(traj_id=[1, 1], t=[5, 6], x=[0.5, 3.5], y=[0.5, 0.5])
    >>> pair = Pair.of(walk, walk, Grid(Box(0, 0, 4, 4), side=4))
    >>> pair.n_timestamps, pair.n_streams_real, pair.real.n_streams
    (2, 1, 2)
    >>> pair.notes[0]
    'real: streams split at 1 jump beyond a neighbour'
    """

    real: Gridded
    synthetic: Gridded
    grid: Grid
    first_t: int
    n_timestamps: int
    n_streams_real: int  # before cutting
    n_streams_synthetic: int  # before cutting
    notes: tuple[str, ...]

    @classmethod
    def of(cls, real: Trajectories, synthetic: Trajectories, grid: Grid) -> Pair:
        """Put both data sets on the grid and on the timeline of the real data."""
        for name, data in (("real", real), ("synthetic", synthetic)):
            if not data.n_points:
                raise InputError(
                    f"the {name} data has no points; those of a release in parts are in its folder"
                )
        first, n_timestamps = real.first_t, real.last_t - real.first_t + 1
        notes: list[str] = []
        shown = _on_timeline(synthetic, first, n_timestamps, notes)
        n_real, n_synthetic = real.n_streams, shown.begins.size
        whole = UncutStreams(real.begins - first, real.starts, real.x, real.y)
        return cls(
            real=_on_grid("real", whole, grid, notes),
            synthetic=_on_grid("synthetic", shown, grid, notes),
            grid=grid,
            first_t=first,
            n_timestamps=n_timestamps,
            n_streams_real=n_real,
            n_streams_synthetic=n_synthetic,
            notes=tuple(notes),
        )


@dataclass(frozen=True, slots=True)
class UncutStreams:
    """Streams that have not been put on the grid yet."""

    begins: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]


def _on_timeline(
    data: Trajectories, first: int, n_timestamps: int, notes: list[str]
) -> UncutStreams:
    """Drop points before the first or after the last real timestamp."""
    begins = data.begins - first
    ends = begins + data.lengths
    if begins.min() >= 0 and ends.max() <= n_timestamps:
        return UncutStreams(begins, data.starts, data.x, data.y)
    kept = np.clip(np.minimum(ends, n_timestamps) - np.maximum(begins, 0), 0, None)
    if not kept.any():
        raise InputError(
            f"the synthetic data (t {data.first_t}..{data.last_t}) shares no timestamp with the "
            f"real (t {first}..{first + n_timestamps - 1}); number both alike"
        )
    inside = (data.t >= first) & (data.t < first + n_timestamps)  # [n_points]
    seen = kept > 0
    n_lost = data.n_points - int(kept.sum())
    notes.append(f"synthetic: {_count(n_lost, 'point')} beyond the real timestamps ignored")
    starts = np.concatenate([[0], np.cumsum(kept[seen])])
    return UncutStreams(np.maximum(begins[seen], 0), starts, data.x[inside], data.y[inside])


def check_inside(
    name: str,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    grid: Grid,
    notes: list[str],
) -> None:
    """Refuse a box that must be wrong; otherwise note how many points lie outside it."""
    box, n_points = grid.box, x.size
    n_outside = int(np.count_nonzero((x < box.x0) | (x > box.x1) | (y < box.y0) | (y > box.y1)))
    if n_outside > _MOST_OUTSIDE * n_points:
        raise InputError(
            f"{n_outside:,} of {n_points:,} {name} points lie outside the box {format_box(box)}, "
            f"more than {_MOST_OUTSIDE:.0%}; give a box that holds both, in their coordinates"
        )
    if n_outside:
        notes.append(f"{name}: {_count(n_outside, 'point')} outside the box in the nearest cell")


def _on_grid(name: str, data: UncutStreams, grid: Grid, notes: list[str]) -> Gridded:
    """Assign cells and cut streams at jumps, noting points outside the box and cuts."""
    check_inside(name, data.x, data.y, grid, notes)
    gridded = cut_at_jumps(data, grid)
    n_jumps = gridded.n_streams - data.begins.size
    if n_jumps:
        notes.append(f"{name}: streams split at {_count(n_jumps, 'jump')} beyond a neighbour")
    return gridded


def cut_at_jumps(data: UncutStreams, grid: Grid) -> Gridded:
    """Assign every point to a cell (the nearest, if outside the box) and cut streams at jumps."""
    cells = grid.cells_of(data.x, data.y)
    jumps = np.flatnonzero(kernels.find_jumps(cells, data.starts, grid.side))
    if not jumps.size:
        return Gridded(cells, data.starts, data.begins, data.x, data.y)
    starts = np.sort(np.concatenate([data.starts, jumps]), kind="stable")
    whole = np.searchsorted(data.starts, starts[:-1], side="right") - 1
    begins = data.begins[whole] + starts[:-1] - data.starts[whole]
    return Gridded(cells, starts, begins, data.x, data.y)


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
