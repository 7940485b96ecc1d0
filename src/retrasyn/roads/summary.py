"""What was understood of a road network."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.roads.network import N_CLASSES
from retrasyn.space import Box

if TYPE_CHECKING:
    from retrasyn.roads.network import RoadNetwork


@dataclass(frozen=True, slots=True, kw_only=True)
class RoadSummary:
    """Counts of a road network, and of what was left out or cut."""

    n_nodes: int
    n_edges: int
    length: float  # of all roads, in the unit of the coordinates
    by_class: tuple[float, ...] | None  # shares of the length, fastest first; None: no classes
    n_one_way: int
    n_stubs: int  # nodes at which one road ends
    n_doubled: int  # loops, and roads beside a faster one
    n_left_out: int  # nodes without a way to the others and back
    n_others: int  # lines that are no roads for cars
    n_cut: int  # roads cut at the walls of a box
    box: Box
    crs: str | None  # None: that of the data

    @classmethod
    def of(cls, network: RoadNetwork) -> RoadSummary:
        """Summarise a network."""
        length = float(network.length.sum())
        ends = np.concatenate([network.tail, network.head])
        by_class = np.bincount(network.road_class, network.length, N_CLASSES) / length
        return cls(
            n_nodes=network.n_nodes,
            n_edges=network.n_edges,
            length=length,
            by_class=tuple(by_class.tolist()) if network.classed else None,
            n_one_way=int(np.count_nonzero(network.one_way)),
            n_stubs=int(np.count_nonzero(np.bincount(ends) == 1)),
            n_doubled=network.n_doubled,
            n_left_out=network.n_left_out,
            n_others=network.n_others,
            n_cut=network.n_cut,
            box=Box.around(network.x, network.y),
            crs=network.crs,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all counts by name."""
        return asdict(self)
