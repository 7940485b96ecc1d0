"""Length error: how far streams travel (Sec. IV-B)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from retrasyn.metrics import kernels
from retrasyn.metrics.divergence import jsd
from retrasyn.metrics.pair import Gridded, Pair

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories
    from retrasyn.space.grid import Grid

_BUCKETS = 20


def length_error(real: Trajectories, synthetic: Trajectories, grid: Grid) -> float:
    """Return the divergence between travelled lengths, in twenty buckets."""
    return length_divergence(Pair.of(real, synthetic, grid))


def length_divergence(pair: Pair) -> float:
    """Return the divergence between the travelled lengths of a pair."""
    _, real, synthetic = length_histograms(pair)
    return jsd(real, synthetic)


def length_histograms(
    pair: Pair, n_buckets: int = _BUCKETS
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return bucket edges from 0 to the longest path, and real and synthetic streams per bucket.

    Shapes: [n_buckets + 1], [n_buckets], [n_buckets].
    """
    real, synthetic = travelled(pair.real), travelled(pair.synthetic)
    longest = max(float(real.max()), float(synthetic.max()))
    counts = [_in_buckets(lengths, longest, n_buckets) for lengths in (real, synthetic)]
    return np.linspace(0.0, longest, n_buckets + 1), counts[0], counts[1]


def travelled(data: Gridded) -> npt.NDArray[np.float64]:
    """Return the length of every stream's path, in the unit of the coordinates: [n_streams]."""
    return kernels.travelled(data.x, data.y, data.starts)


def _in_buckets(
    lengths: npt.NDArray[np.float64], longest: float, n_buckets: int
) -> npt.NDArray[np.int64]:
    if longest <= 0.0:
        return np.bincount([0], [lengths.size], n_buckets).astype(np.int64)
    if not np.isfinite(longest):  # a path too long for floating-point numbers; the rest is nothing
        return np.bincount(~np.isfinite(lengths) * (n_buckets - 1), minlength=n_buckets)
    places = np.minimum((lengths / longest * n_buckets).astype(np.int64), n_buckets - 1)
    return np.bincount(places, minlength=n_buckets)
