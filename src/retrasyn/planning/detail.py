"""What a grid cannot show: detail within its cells.

A release says how many people a cell holds and nothing about where in it they are. Seen on a finer
grid, its map is therefore wrong even without noise. Divergences obey a chain rule: the divergence
on the fine grid is that between the coarse maps plus the mean divergence within the cells. As long
as the first is small, the second is what is computed here, so the two may be added.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from retrasyn.data.trajectories import Trajectories
from retrasyn.simulation.city import CITY_BOX
from retrasyn.space import Grid

FINEST = 24
"""Side of the grid on which detail is looked at."""

Map = npt.NDArray[np.float64]


def fine_map(trips: Trajectories) -> Map:
    """Return the share of points in every cell of the finest grid: [FINEST, FINEST]."""
    cells, _ = Grid(CITY_BOX, FINEST).locate(trips.x, trips.y)
    counts = np.bincount(cells, minlength=FINEST**2).reshape(FINEST, FINEST)
    shares: Map = counts / counts.sum()
    return shares


def lost_detail(fine: Map, side: int) -> float:
    """Return the divergence between a map and what a coarser grid shows of it.

    >>> flat = np.full((FINEST, FINEST), FINEST**-2)
    >>> round(lost_detail(flat, 4), 9)
    0.0
    """
    overlap = _overlap(side)  # [side, FINEST]
    spread = overlap / overlap.sum(axis=1, keepdims=True)
    shown = spread.T @ (overlap @ fine @ overlap.T) @ spread
    middle = (fine + shown) / 2
    return float(max((_excess(fine, middle) + _excess(shown, middle)) / 2, 0.0))


def _overlap(side: int) -> Map:
    """Return which share of each fine column lies in each coarse one: [side, FINEST]."""
    coarse, fine = np.linspace(0, FINEST, side + 1), np.arange(FINEST + 1.0)
    ends = np.minimum(coarse[1:, None], fine[None, 1:])
    begins = np.maximum(coarse[:-1, None], fine[None, :-1])
    shares: Map = np.maximum(ends - begins, 0.0)
    return shares


def _excess(shares: Map, middle: Map) -> float:
    """Return the relative entropy of one map to another."""
    some = shares > 0
    return float(np.sum(shares[some] * np.log(shares[some] / middle[some])))
