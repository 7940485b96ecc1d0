"""Moving objects: speed classes, load on edges, and the simulation step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.data.moving_objects.kernels import count_load, locate, move
from retrasyn.data.moving_objects.routes import Routes
from retrasyn.roads.network import CLASS_RATIO, Arcs, RoadNetwork

if TYPE_CHECKING:
    import numpy.typing as npt

TOP_SPEEDS = (1.0, 1 / CLASS_RATIO, 1 / CLASS_RATIO**2)
"""Top speed of every object class, as a share of the speed on the fastest roads."""
CAPACITIES = (4, 3, 2, 2, 1, 1, 1)
"""Objects that an edge of each road class carries at full speed."""


def loaded_speed(
    network: RoadNetwork, load: npt.NDArray[np.int64], fastest: float
) -> npt.NDArray[np.float64]:
    """Return the speed limit of every edge under its load: [n_edges].

    Full speed up to the capacity, half up to twice the capacity, a quarter beyond.
    """
    free = fastest / CLASS_RATIO ** network.road_class.astype(float)
    capacity = np.array(CAPACITIES)[network.road_class]
    slowing = np.where(load > 2 * capacity, 0.25, np.where(load > capacity, 0.5, 1.0))
    return free * slowing


@dataclass(slots=True, eq=False)
class Traffic:
    """All objects of a run, numbered by birth; `alive` lists those now on the road."""

    network: RoadNetwork
    arcs: Arcs
    routes: Routes
    fastest: float  # distance per step on an empty road of class 0
    top_speed: npt.NDArray[np.float64]  # [n_objects]
    cursor: npt.NDArray[np.int64]  # [n_objects], index into routes.arcs
    gone: npt.NDArray[np.float64]  # [n_objects], distance covered on the current arc
    alive: npt.NDArray[np.int64]  # [n_alive], ascending
    load: npt.NDArray[np.int64]  # [n_edges]

    @classmethod
    def waiting(
        cls,
        network: RoadNetwork,
        arcs: Arcs,
        routes: Routes,
        *,
        fastest: float,
        top_speed: npt.NDArray[np.float64],
    ) -> Traffic:
        """Return traffic in which no object has appeared yet."""
        return cls(
            network,
            arcs,
            routes,
            fastest,
            top_speed,
            routes.begin.copy(),
            np.zeros(top_speed.size),
            np.empty(0, np.int64),
            np.zeros(network.n_edges, np.int64),
        )

    def advance(self, first_born: int, n_born: int) -> npt.NDArray[np.int64]:
        """Move all objects by one step and add new ones; return the objects with a point now.

        Objects that arrive have their last point at this step. Speeds depend on the load at the
        beginning of the step, so the order of objects does not matter.
        """
        arrived = np.empty(self.alive.size, np.bool_)
        speed = loaded_speed(self.network, self.load, self.fastest)
        move(
            self.alive,
            self.cursor,
            self.routes.last,
            self.gone,
            self.top_speed,
            self.routes.arcs,
            self.arcs.edge,
            self.network.length,
            speed,
            arrived,
        )
        born = np.arange(first_born, first_born + n_born)
        seen = np.concatenate([self.alive, born])
        self.alive = np.concatenate([self.alive[~arrived], born])
        self.load[:] = 0
        count_load(self.alive, self.cursor, self.routes.arcs, self.arcs.edge, self.load)
        return seen

    def write_points(
        self,
        seen: npt.NDArray[np.int64],
        row: npt.NDArray[np.int64],
        t: int,
        x: npt.NDArray[np.float64],
        y: npt.NDArray[np.float64],
    ) -> None:
        """Write the positions of the seen objects at step t to row[object] + t."""
        network, arcs = self.network, self.arcs
        ways = self.routes.arcs, arcs.tail, arcs.head, arcs.edge
        nodes = network.x, network.y
        locate(seen, self.cursor, self.gone, *ways, network.length, *nodes, row, t, x, y)

    def present_arcs(self) -> npt.NDArray[np.int32]:
        """Return the current arc of every living object: [n_alive]."""
        return self.routes.arcs[self.cursor[self.alive]]

    def turn(self, detours: Routes) -> None:
        """Switch the living objects to new routes that begin with their current arcs."""
        n_before = self.routes.arcs.size
        last = self.routes.last.copy()
        last[self.alive] = n_before + detours.last
        self.cursor[self.alive] = n_before + detours.begin
        joined = np.concatenate([self.routes.arcs, detours.arcs])
        self.routes = Routes(joined, self.routes.begin, last)
