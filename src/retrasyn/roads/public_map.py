"""A public map: where people are likely to be, and the roads they move on, if it has any."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.roads.network import RoadNetwork
    from retrasyn.space import Box, Grid

SIDE = 48
"""Squares along each side of a map's raster."""
_EVEN = 0.002  # share of a raster that is spread evenly, so that no place is ruled out


@dataclass(frozen=True, slots=True)
class PublicMap:
    """What is public about a place before anybody reports; it costs no privacy.

    Two maps with the same digest, weighting and box are the same map.
    """

    box: Box
    raster: npt.NDArray[np.float64] = field(compare=False)  # [SIDE, SIDE], from the lower left
    weighting: str  # how the raster was made: "between", "class", "centre:...", a file
    source: str = field(compare=False)  # where the map came from, in words
    sha256: str  # digest of the files it was read from
    roads: RoadNetwork | None = field(default=None, compare=False)  # in the coordinates of the box

    @classmethod
    def of(
        cls,
        box: Box,
        weights: npt.NDArray[np.float64],
        *,
        weighting: str,
        source: str,
        sha256: str,
        roads: RoadNetwork | None = None,
    ) -> PublicMap:
        """Return a map with these weights [SIDE, SIDE], of any sum."""
        shares = (1.0 - _EVEN) * weights / weights.sum() + _EVEN / weights.size
        return cls(box, shares, weighting, source, sha256, roads)

    def to_dict(self) -> dict[str, Any]:
        """Return what identifies the map, ready for JSON."""
        return {
            "public": True,
            "source": self.source,
            "sha256": self.sha256,
            "weighting": self.weighting,
            "box": list(self.box),
            "roads": self.roads is not None,
        }

    def shares(self, grid: Grid) -> npt.NDArray[np.float64]:
        """Return the share of every cell of a grid over the same box: [n_cells], sums to 1."""
        edges = np.linspace(0.0, SIDE, grid.side + 1)
        squares = np.arange(SIDE)
        overlap = np.minimum(edges[1:, None], squares + 1) - np.maximum(edges[:-1, None], squares)
        overlap = np.maximum(overlap, 0.0)  # [side, SIDE], of each square in each row of cells
        whole: npt.NDArray[np.float64] = (overlap @ self.raster @ overlap.T).ravel()
        return whole
