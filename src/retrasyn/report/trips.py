"""From where to where, how far and how long: trips and the distributions of streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.metrics.duration import duration_counts
from retrasyn.metrics.length import length_histograms
from retrasyn.metrics.trip import trip_counts

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.metrics.pair import Pair

N_LISTED = 10
N_SCATTERED = 400
_FINE = 2_000  # buckets of length, gathered into bars
_MOST_BARS = 25
_TAIL = 0.99  # share of streams, of either side, that get bars of their own


def trips(pair: Pair) -> dict[str, Any]:
    """Return the most frequent trips, each as first cell, last cell, real and synthetic count."""
    n_cells = pair.grid.n_cells
    sides = [trip_counts(data, n_cells) for data in (pair.real, pair.synthetic)]
    codes = np.union1d(sides[0][0], sides[1][0])
    counts = np.zeros((2, codes.size), np.int64)
    for row, (own, n) in zip(counts, sides, strict=True):
        row[np.searchsorted(codes, own)] = n
    totals = counts.sum(axis=1)  # [2]
    shares = counts / np.maximum(totals, 1)[:, None]  # [2, n_trips]
    order = np.argsort(-shares.max(axis=0), kind="stable")[:N_SCATTERED]
    table = np.stack([*np.divmod(codes, n_cells), *counts], axis=1)  # [n_trips, 4]
    by_real = np.lexsort((codes, -counts[0]))[:N_LISTED]
    return {
        "totals": totals,
        "n_trips": codes.size,
        "first": table[by_real[counts[0, by_real] > 0]],
        "scattered": table[order],
    }


def lengths(pair: Pair) -> dict[str, Any]:
    """Return how many streams travel how far, in the unit of the coordinates."""
    fine, real, synthetic = length_histograms(pair, _FINE)
    bars = gather_bars(real, synthetic)
    return bars | {"edges": bars["edges"] * fine[1]}


def durations(pair: Pair) -> dict[str, Any]:
    """Return how many streams last how many timestamps."""
    real, synthetic = duration_counts(pair)
    bars = gather_bars(real[1:], synthetic[1:])  # no stream lasts 0 timestamps
    return bars | {"edges": bars["edges"] + 1}


def gather_bars(real: npt.NDArray[np.int64], synthetic: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Gather buckets into equal bars; where few streams reach far, the last bar holds the rest.

    `edges` are numbers of buckets, one more than bars.
    """
    reached = np.minimum(*(np.cumsum(side) / max(side.sum(), 1) for side in (real, synthetic)))
    usual = int(np.argmax(reached >= _TAIL)) + 1
    width = -(-usual // _MOST_BARS)
    edges = np.arange(0, usual + width, width)
    n_left = real.size - int(edges[-1])
    is_open = n_left > width and bool(real[edges[-1] :].any() or synthetic[edges[-1] :].any())
    if is_open:
        edges = np.append(edges, real.size)
    elif 0 < n_left <= width:
        edges = np.append(edges, edges[-1] + width)
    counts = [np.add.reduceat(side, edges[:-1]) for side in (real, synthetic)]
    return {"edges": edges, "real": counts[0], "synthetic": counts[1], "open": is_open}
