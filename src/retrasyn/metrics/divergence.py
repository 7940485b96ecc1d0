"""Jensen-Shannon divergence in nats, at most ln 2."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from retrasyn.metrics import kernels

Counts = npt.NDArray[np.int64]
_TABLE = 1 << 23  # most counts held in memory at once


def jsd(real: npt.ArrayLike, synthetic: npt.ArrayLike) -> float:
    """Return the divergence of two histograms; ln 2 if one is empty, NaN if both are.

    >>> jsd([2, 2], [1, 1])
    0.0
    >>> round(jsd([1, 0], [0, 1]), 4)
    0.6931
    """
    rows = [np.asarray(counts).reshape(1, -1) for counts in (real, synthetic)]
    if rows[0].shape != rows[1].shape or any(row.dtype.kind not in "iu" for row in rows):
        raise ValueError("two lists of counts of the same length are needed, in whole numbers")
    return float(kernels.divergences(*(row.astype(np.int64) for row in rows))[0])


def sparse_jsd(real: Counts, synthetic: Counts) -> float:
    """Return the divergence of two samples of outcomes, given one number per occurrence."""
    outcomes, codes = np.unique(np.concatenate([real, synthetic]), return_inverse=True)
    return jsd(
        np.bincount(codes[: real.size], minlength=outcomes.size),
        np.bincount(codes[real.size :], minlength=outcomes.size),
    )


def by_timestamp(
    count: Callable[[int, int], tuple[Counts, Counts]], first: int, last: int, n_columns: int
) -> npt.NDArray[np.float64]:
    """Return the divergence at timestamps first..last-1, counting in blocks: [last - first]."""
    size = max(1, _TABLE // n_columns)
    slices = [(low, min(low + size, last)) for low in range(first, last, size)]
    return np.concatenate([kernels.divergences(*count(low, high)) for low, high in slices])


def mean_known(values: npt.NDArray[np.float64]) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
