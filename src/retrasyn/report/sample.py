"""A few synthetic streams to look at; real ones are never drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.report.packing import pack

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.metrics.pair import Gridded
    from retrasyn.report.timeline import Timeline
    from retrasyn.space import Box, Grid

N_STILL = 60
N_MOVING = 40  # about as many are present at any time
MAX_STREAMS = 5_000
_LEVELS = 0xFFFF


def sample(synthetic: Gridded, grid: Grid, timeline: Timeline, *, seed: int) -> dict[str, Any]:
    """Choose streams by the seed, if possible of two points or more; keep one point per frame.

    The first `N_STILL` are drawn at once. Those behind them make the moving picture lively.
    """
    chosen = _choose(synthetic.lengths, timeline.n_timestamps, seed)
    rows, streams, frames = _points(synthetic, chosen, timeline)
    n_points = np.bincount(streams, minlength=chosen.size)
    first = np.cumsum(n_points) - n_points
    return {
        "n_still": min(N_STILL, chosen.size),
        "n_streams": chosen.size,
        "n_points": pack(n_points),
        "begins": pack(frames[first]),
        "x": pack(_levels(synthetic.x[rows], grid.box, 0)),
        "y": pack(_levels(synthetic.y[rows], grid.box, 1)),
    }


def _choose(lengths: npt.NDArray[np.int64], n_timestamps: int, seed: int) -> npt.NDArray[np.int64]:
    """Draw streams until about `N_MOVING` are present at any time."""
    candidates = np.flatnonzero(lengths > 1)
    if not candidates.size:
        candidates = np.arange(lengths.size)
    generator = np.random.default_rng(seed)
    n = min(candidates.size, MAX_STREAMS)
    drawn = candidates[generator.choice(candidates.size, n, replace=False)]
    n_points = np.cumsum(lengths[drawn])
    enough = int(np.searchsorted(n_points, N_MOVING * n_timestamps)) + 1
    return drawn[: max(enough, N_STILL)]


def _points(
    data: Gridded, chosen: npt.NDArray[np.int64], timeline: Timeline
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the kept rows, the place of their stream in the sample, and their frame."""
    lengths = data.lengths[chosen]
    first = np.cumsum(lengths) - lengths  # [n_chosen]
    streams = np.repeat(np.arange(chosen.size), lengths)
    steps = np.arange(streams.size) - first[streams]
    frames = (data.begins[chosen][streams] + steps) // timeline.width
    fresh = (steps == 0) | (np.diff(frames, prepend=-1) != 0)
    rows = data.starts[chosen][streams] + steps
    return rows[fresh], streams[fresh], frames[fresh]


def _levels(values: npt.NDArray[np.float64], box: Box, axis: int) -> npt.NDArray[np.int64]:
    """Round coordinates to 65,536 levels across the box."""
    low, high = box[axis], box[axis + 2]
    share = np.clip((values - low) / (high - low), 0.0, 1.0)
    return np.rint(share * _LEVELS).astype(np.int64)
