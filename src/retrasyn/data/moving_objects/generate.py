"""Generates streams of objects moving on a road network, after Brinkhoff (GeoInformatica 2002)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.data.moving_objects.demand import Demand, count_births, uniforms
from retrasyn.data.moving_objects.objects import TOP_SPEEDS, Traffic
from retrasyn.data.moving_objects.routes import Routes, find_routes
from retrasyn.data.trajectories import MAX_SPAN, Trajectories
from retrasyn.errors import SettingError
from retrasyn.roads.network import Arcs, RoadNetwork

if TYPE_CHECKING:
    import numpy.typing as npt

Progress = Callable[[int, int], None]
MAX_STREAMS = 100_000_000
"""Maximum number of objects per run: the routes of more would not fit in memory."""


def generate(
    network: RoadNetwork,
    *,
    n_objects: int = 10_000,
    n_new: int = 500,
    n_steps: int = 501,
    speed: float = 0.02,
    rhythm: int | None = None,
    reroute: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Trajectories:
    """Simulate objects that drive from start to destination on the fastest route.

    n_objects exist at step 0 and n_new appear at every later step. An object's first point is its
    start node; its last one is its destination, unless the simulation ends before.

    Args:
        network: Roads to drive on, from `read_network` or `city_network`.
        n_objects: Objects at step 0.
        n_new: Objects that appear at every later step; with a rhythm, on average over a day.
        n_steps: Number of steps.
        speed: Distance per step on an empty road of the fastest class, as a share of the map's
            width plus height.
        rhythm: Steps per day, with traffic to work in the morning and home in the evening.
        reroute: From this step on all objects, new and running, head elsewhere.
        seed: Same seed, same stream.
        progress: Called with (steps done, total steps); may raise to stop.

    >>> from retrasyn.data.moving_objects.city_network import city_network
    >>> generate(city_network(100), n_objects=5, n_new=2, n_steps=11, seed=1).n_streams
    25
    """
    _check(n_objects, n_new, n_steps, speed, rhythm, reroute, seed)
    report = progress or _stay_silent
    births = count_births(n_objects=n_objects, n_new=n_new, n_steps=n_steps, day=rhythm)
    born = np.repeat(np.arange(n_steps), births)  # [n_streams]
    if born.size == 0:
        raise SettingError("no object appears in this part of the day; raise objects, new or steps")
    plan = _Plan.draw(
        network, born, day=rhythm, reroute=reroute, seed=seed, breathe=lambda: report(0, n_steps)
    )
    # The simulation runs twice: first to learn the length of each stream, then to write its
    # points in place. That takes a little more time and halves the memory.
    lengths = np.zeros(born.size, np.int64)
    for t, _, seen in plan.drive(births, speed * network.extent):
        lengths[seen] += 1
        report((t + 1) // 2, n_steps)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    x, y = np.empty((2, starts[-1]))
    row = starts[:-1] - born
    for t, fleet, seen in plan.drive(births, speed * network.extent):
        fleet.write_points(seen, row, t, x, y)
        report((n_steps + t + 1) // 2, n_steps)
    return Trajectories(
        stream_ids=np.arange(born.size), begins=born.astype(np.int64), starts=starts, x=x, y=y
    )


def _stay_silent(done: int, total: int) -> None:
    """Ignore progress."""


def _check(
    n_objects: int,
    n_new: int,
    n_steps: int,
    speed: float,
    rhythm: int | None,
    reroute: int | None,
    seed: int,
) -> None:
    """Reject invalid parameters."""
    for name, value in (("objects", n_objects), ("new", n_new), ("seed", seed)):
        if value < 0:
            raise SettingError(f"{name}={value} must be a whole number from 0 on")
    if not 1 <= n_steps <= MAX_SPAN:
        raise SettingError(f"steps={n_steps} must be 1 to {MAX_SPAN:,}")
    n_streams = n_objects + n_new * (n_steps - 1)
    if not 1 <= n_streams <= MAX_STREAMS:
        raise SettingError(
            f"objects={n_objects} and new={n_new} over {n_steps} steps make {n_streams:,} streams; "
            f"1 to {MAX_STREAMS:,} can be made"
        )
    if not (math.isfinite(speed) and 0 < speed <= 1):
        raise SettingError(
            f"speed={speed} must be above 0 and at most 1: the share of the map's width plus "
            "height driven in a step on the fastest roads"
        )
    if rhythm is not None and not 2 <= rhythm <= MAX_SPAN:  # noqa: PLR2004 - day and night
        raise SettingError(f"rhythm={rhythm} must be the steps of a day, from 2 on")
    if reroute is not None and not 0 <= reroute < n_steps:
        raise SettingError(f"reroute={reroute} must be a step of the run, 0 to {n_steps - 1}")


@dataclass(slots=True, eq=False)
class _Plan:
    """Routes and speeds fixed before the simulation, and detours once they are known."""

    network: RoadNetwork
    arcs: Arcs
    routes: Routes
    demand: Demand
    top_share: npt.NDArray[np.float64]  # [n_objects]
    reroute: int | None
    breathe: Callable[[], None]
    detours: Routes | None = None

    @classmethod
    def draw(
        cls,
        network: RoadNetwork,
        born: npt.NDArray[np.int64],
        *,
        day: int | None,
        reroute: int | None,
        seed: int,
        breathe: Callable[[], None],
    ) -> _Plan:
        """Draw every object's class, start and destination, and find its route."""
        objects = np.arange(born.size)
        demand = Demand.over(network, seed=seed)
        start, goal = demand.starts_and_goals(objects, born, day)
        if reroute is not None:
            late = born >= reroute
            goal[late] = demand.elsewhere(objects[late], start[late])
        kind = (uniforms(seed, "class", objects) * len(TOP_SPEEDS)).astype(np.int64)
        arcs = Arcs.of(network)
        routes = find_routes(arcs, start, goal, breathe=breathe)
        return cls(network, arcs, routes, demand, np.array(TOP_SPEEDS)[kind], reroute, breathe)

    def drive(
        self, births: npt.NDArray[np.int64], fastest: float
    ) -> Iterator[tuple[int, Traffic, npt.NDArray[np.int64]]]:
        """Yield (t, traffic, objects with a point) for every step."""
        fleet = Traffic.waiting(
            self.network,
            self.arcs,
            self.routes,
            fastest=fastest,
            top_speed=fastest * self.top_share,
        )
        n_born = np.cumsum(births)
        for t in range(births.size):
            if t == self.reroute:
                self._detour(fleet)
            yield t, fleet, fleet.advance(int(n_born[t] - births[t]), int(births[t]))

    def _detour(self, fleet: Traffic) -> None:
        """Reroute all running objects elsewhere, from the next node on their route."""
        if self.detours is None:
            lead = fleet.present_arcs()
            node = self.arcs.head[lead].astype(np.int64)
            goal = self.demand.elsewhere(fleet.alive, node)
            self.detours = find_routes(self.arcs, node, goal, lead=lead, breathe=self.breathe)
        fleet.turn(self.detours)
