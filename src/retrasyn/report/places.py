"""Density, hotspots and main flows for a report."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.metrics.density import density_errors
from retrasyn.metrics.divergence import mean_known
from retrasyn.report import kernels
from retrasyn.report.packing import pack
from retrasyn.space import Grid

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.metrics.pair import Gridded, Pair
    from retrasyn.report.timeline import Timeline


MAX_LISTED = 12


def cell_counts(gridded: Gridded, timeline: Timeline, n_cells: int) -> npt.NDArray[np.int64]:
    """Count points per frame and cell: [n_frames, n_cells]."""
    counts = np.zeros((timeline.n_frames, n_cells), np.int64)
    kernels.count_cells(gridded.cells, gridded.starts, gridded.begins, timeline.width, counts)
    return counts


FINE_SIDES = (24, 48)
"""Finer grids on which density is compared; the last one is drawn."""


def fine_density(pair: Pair) -> dict[str, Any]:
    """Return points per square of the finest grid over all timestamps, and errors on fine grids.

    A synthetic point is drawn within its cell, so this is what the grid of the run does not see.
    """
    errors = {}
    for side in FINE_SIDES:
        grid = Grid(pair.grid.box, side)
        fine = dataclasses.replace(
            pair, grid=grid, real=_on(grid, pair.real), synthetic=_on(grid, pair.synthetic)
        )
        errors[str(side)] = mean_known(density_errors(fine))
    return {
        "side": grid.side,
        "errors": errors,
        "real": pack(np.bincount(fine.real.cells, minlength=grid.n_cells)),
        "synthetic": pack(np.bincount(fine.synthetic.cells, minlength=grid.n_cells)),
    }


def _on(grid: Grid, data: Gridded) -> Gridded:
    """Return the same streams with the cells of another grid."""
    return dataclasses.replace(data, cells=grid.cells_of(data.x, data.y))


def hotspots(
    real: npt.NDArray[np.int64], synthetic: npt.NDArray[np.int64], *, top_cells: int
) -> dict[str, Any]:
    """Rank the cells of each side by number of points; ties go to the smaller cell number.

    Both arguments are points per cell over all timestamps: [n_cells]. Every cell listed on one
    side is given with its rank on the other, however low.
    """
    content: dict[str, Any] = {"n": top_cells}
    tops = []
    for kind, counts in (("real", real), ("synthetic", synthetic)):
        order = np.argsort(-counts, kind="stable")
        order = order[counts[order] > 0]
        ranks = np.zeros(counts.size, np.int64)  # 0: the cell was never visited
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


N_FLOWS = 20
MAX_ACROSS = 16  # more arrows could not be told apart


def move_counts(
    gridded: Gridded, timeline: Timeline, side: int, block: int
) -> npt.NDArray[np.int64]:
    """Count moves between blocks of cells, per frame: [n_frames, n_blocks * 9]."""
    n_across = -(-side // block)
    counts = np.zeros((timeline.n_frames, n_across * n_across * 9), np.int64)
    kernels.count_moves(
        gridded.cells, gridded.starts, gridded.begins, timeline.width, side, block, counts
    )
    return counts


def top_moves(
    counts: npt.NDArray[np.int64], n: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the n most frequent codes and their counts; ties go to the smaller code.

    >>> codes, counts = top_moves(np.array([0, 5, 2, 5]), 3)
    >>> codes.tolist(), counts.tolist()
    ([1, 3, 2], [5, 5, 2])
    """
    codes = np.argsort(-counts, kind="stable")[:n]
    return codes, counts[codes]


def flows(pair: Pair, timeline: Timeline, *, span: int) -> dict[str, Any]:
    """Return the main flows over all timestamps, and over the span ending at every frame.

    On a fine grid, cells are grouped into square blocks.
    """
    side = pair.grid.side
    block = -(-side // MAX_ACROSS)
    n_across = -(-side // block)
    n_back = max(1, round(span / timeline.width))
    content: dict[str, Any] = {
        "block": block,
        "across": n_across,
        "n": min(N_FLOWS, 9 * n_across**2),
        "timestamps": min(n_back * timeline.width, pair.n_timestamps),
    }
    real, synthetic = (
        move_counts(gridded, timeline, side, block) for gridded in (pair.real, pair.synthetic)
    )
    content["real"] = _tops(real, synthetic, n_back)
    content["synthetic"] = _tops(synthetic, real, n_back)
    return content


def _tops(
    counts: npt.NDArray[np.int64], others: npt.NDArray[np.int64], n_back: int
) -> dict[str, Any]:
    """Return the main flows of one side, each with its count on the other side."""
    codes, totals = top_moves(counts.sum(axis=0), N_FLOWS)
    codes, totals = codes[totals > 0], totals[totals > 0]
    elsewhere = others.sum(axis=0)[codes]
    return {
        "whole": {"codes": codes, "counts": totals, "elsewhere": elsewhere},
        "frames": _rolling_tops(counts, others, n_back),
    }


def _rolling_tops(
    counts: npt.NDArray[np.int64], others: npt.NDArray[np.int64], n_back: int
) -> dict[str, Any]:
    """Pack the top moves over the n_back frames up to each frame: [n_frames, N_FLOWS] each."""
    n_frames, n_codes = counts.shape
    tops = np.zeros((3, n_frames, min(N_FLOWS, n_codes)), np.int64)
    window, other_window = np.zeros((2, n_codes), np.int64)
    for frame in range(n_frames):
        window += counts[frame]
        other_window += others[frame]
        if frame >= n_back:
            window -= counts[frame - n_back]
            other_window -= others[frame - n_back]
        codes, totals = top_moves(window, N_FLOWS)
        tops[:, frame] = codes, totals, other_window[codes]
    names = ("codes", "counts", "elsewhere")
    return {name: pack(top) for name, top in zip(names, tops, strict=True)}
