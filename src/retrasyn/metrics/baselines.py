"""What the real data alone can be compared with: a crowd that knows nothing, and its other half."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.metrics.pair import Gridded

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from retrasyn.metrics.pair import Pair
    from retrasyn.metrics.suite import Scores
    from retrasyn.space.grid import Grid


def plain_baselines(
    pair: Pair, measure: Callable[[Pair], Scores], *, seed: int = 0
) -> dict[str, Scores]:
    """Return the scores of a uniform crowd, and of one half of the real streams by the other.

    `measure` is how the release was scored. A single stream has no other half.
    """
    generator = np.random.default_rng(seed)
    nobody_knows = uniform_crowd(pair, generator)
    shown = dataclasses.replace(
        pair, synthetic=nobody_knows, n_streams_synthetic=nobody_knows.n_streams
    )
    found = {"uniform": measure(shown)}
    if pair.real.n_streams > 1:
        found["half"] = measure(halves(pair, generator))
    return found


def uniform_crowd(pair: Pair, generator: np.random.Generator) -> Gridded:
    """Return as many points at every timestamp as the real data has, each of which stays anywhere.

    Whoever came first goes first. Only the number of people present is used, which is public.
    """
    real = pair.real
    comes, goes = (
        np.bincount(times, minlength=pair.n_timestamps + 1)
        for times in (real.begins, real.begins + real.lengths)
    )
    change = comes - goes  # [n_timestamps + 1], the last one empties the map
    times = np.arange(change.size)
    begins = np.repeat(times, np.maximum(change, 0))
    lengths = np.repeat(times, np.maximum(-change, 0)) - begins
    box = pair.grid.box
    x = generator.uniform(box.x0, box.x1, begins.size)
    y = generator.uniform(box.y0, box.y1, begins.size)
    return _staying(begins, lengths, x, y, pair.grid)


def _staying(
    begins: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    grid: Grid,
) -> Gridded:
    """Return streams that stay where they begin."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    cells = np.repeat(grid.cells_of(x, y), lengths)
    return Gridded(cells, starts, begins, np.repeat(x, lengths), np.repeat(y, lengths))


def halves(pair: Pair, generator: np.random.Generator) -> Pair:
    """Return one half of the real streams, drawn at random, against the other."""
    n = pair.real.n_streams
    chosen = generator.permutation(n) < n // 2
    one, other = _some(pair.real, chosen), _some(pair.real, ~chosen)
    return dataclasses.replace(
        pair,
        real=one,
        synthetic=other,
        n_streams_real=one.n_streams,
        n_streams_synthetic=other.n_streams,
    )


def _some(data: Gridded, chosen: npt.NDArray[np.bool_]) -> Gridded:
    """Return the chosen streams."""
    rows = np.repeat(chosen, data.lengths)
    starts = np.concatenate([[0], np.cumsum(data.lengths[chosen])])
    return Gridded(data.cells[rows], starts, data.begins[chosen], data.x[rows], data.y[rows])
