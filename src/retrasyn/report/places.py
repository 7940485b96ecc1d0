"""Where people are: density per frame, and the hotspots of the whole time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.report import kernels

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.metrics.pair import Gridded
    from retrasyn.report.timeline import Timeline

MAX_LISTED = 12


def cell_counts(gridded: Gridded, timeline: Timeline, n_cells: int) -> npt.NDArray[np.int64]:
    """Count points per frame and cell: [n_frames, n_cells]."""
    counts = np.zeros((timeline.n_frames, n_cells), np.int64)
    kernels.count_cells(gridded.cells, gridded.starts, gridded.begins, timeline.width, counts)
    return counts


def hotspots(
    real: npt.NDArray[np.int64], synthetic: npt.NDArray[np.int64], *, top_cells: int
) -> dict[str, Any]:
    """Rank the cells of either side by their points; the smaller number first among equals.

    Both arguments are points per cell over the whole time: [n_cells]. Every cell listed on one
    side is given with its rank on the other, however low.
    """
    content: dict[str, Any] = {"n": top_cells}
    tops = []
    for kind, counts in (("real", real), ("synthetic", synthetic)):
        order = np.argsort(-counts, kind="stable")
        order = order[counts[order] > 0]
        ranks = np.zeros(counts.size, np.int64)  # 0: nobody was ever there
        ranks[order] = np.arange(1, order.size + 1)
        listed = order[: min(top_cells, MAX_LISTED)]
        tops.append(set(order[:top_cells].tolist()))
        content[kind] = {"cells": listed, "ranks": ranks, "total": counts.sum()}
    for kind, other in (("real", "synthetic"), ("synthetic", "real")):
        listed = content[kind]["cells"]
        counts = real if kind == "real" else synthetic
        content[kind]["counts"] = counts[listed]
        content[kind]["elsewhere"] = content[other]["ranks"][listed]
    for kind in ("real", "synthetic"):
        del content[kind]["ranks"]
    content["shared"] = len(tops[0] & tops[1])
    content["listed"] = max(map(len, tops))
    return content
