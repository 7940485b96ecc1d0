"""A small generated city with a rush hour, for the demo, the documentation and tests."""

import dataclasses
import heapq

import numpy as np
import numpy.typing as npt

from retrasyn.data.moving_objects.city_network import city_network
from retrasyn.data.moving_objects.generate import generate
from retrasyn.data.trajectories import Trajectories
from retrasyn.roads.network import RoadNetwork
from retrasyn.space import Box

CITY_BOX = Box(0.0, 0.0, 10.0, 10.0)
DAY = 120
"""Timestamps in a day."""
_CROSSINGS = 400
_SPEED = 0.06
_TRIPS = 2  # per user, on average


def demo_city(
    *,
    n_users: int = 60_000,
    n_timestamps: int = 120,
    reroute: int | None = None,
    seed: int = 0,
) -> Trajectories:
    """Generate drivers who go to work in the morning and home in the evening.

    Every trip is a stream; a user who has arrived may set out again later, so many have several.
    From timestamp `reroute` on everybody heads for one off-centre place instead.

    >>> city = demo_city(n_users=50, n_timestamps=40, seed=3)
    >>> city.first_t >= 0 and city.last_t < 40 and city.n_streams > 50
    True
    """
    n_trips = _TRIPS * n_users
    n_first = n_trips // 10 + 1
    n_new = -(-(n_trips - n_first) // max(n_timestamps - 1, 1))
    return drive_through_city(
        n_first=n_first,
        n_new=n_new,
        n_users=n_users,
        n_timestamps=n_timestamps,
        day=DAY,
        reroute=reroute,
        seed=seed,
    )


def drive_through_city(
    *,
    n_first: int,
    n_new: int,
    n_users: int,
    n_timestamps: int,
    day: int | None,
    reroute: int | None = None,
    seed: int = 0,
) -> Trajectories:
    """Generate trips through the demo city: with a rush hour every `day` timestamps, or none.

    >>> trips = drive_through_city(n_first=5, n_new=1, n_users=9, n_timestamps=11, day=None)
    >>> trips.n_streams
    15
    """
    trips = generate(
        city_network(_CROSSINGS),
        n_objects=n_first,
        n_new=n_new,
        n_steps=n_timestamps,
        speed=_SPEED,
        rhythm=day,
        reroute=reroute,
        seed=seed,
    )
    scale = _scale()
    return Trajectories(
        trips.stream_ids,
        trips.begins,
        trips.starts,
        np.clip(trips.x * scale, CITY_BOX.x0, CITY_BOX.x1),
        np.clip(trips.y * scale, CITY_BOX.y0, CITY_BOX.y1),
        _drivers(trips, n_users, np.random.default_rng(seed)),
    )


def city_roads() -> RoadNetwork:
    """Return the roads of the demo city, in its box.

    >>> roads = city_roads()
    >>> float(max(roads.x.max(), roads.y.max())) == CITY_BOX.x1
    True
    """
    network, scale = city_network(_CROSSINGS), _scale()
    return dataclasses.replace(
        network, x=network.x * scale, y=network.y * scale, length=network.length * scale
    )


def _scale() -> float:
    """Return the length of one metre of the network, in units of the box."""
    network = city_network(_CROSSINGS)
    return float(CITY_BOX.x1 / max(network.x.max(), network.y.max()))


def _drivers(
    trips: Trajectories, n_users: int, random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Assign every trip to a driver who is not on another trip: [n_streams]."""
    drivers = np.empty(trips.n_streams, np.int64)
    resting: list[tuple[int, int]] = []  # (free from, user)
    n_drivers = 0
    again = random.random(trips.n_streams) < 1 - 1 / _TRIPS
    ends = trips.begins + trips.lengths
    order = np.argsort(trips.begins, kind="stable").tolist()
    for trip, begin, end in zip(
        order, trips.begins[order].tolist(), ends[order].tolist(), strict=True
    ):
        free = bool(resting) and resting[0][0] <= begin
        if free and (again[trip] or n_drivers >= n_users):
            _, driver = heapq.heappop(resting)
        else:
            driver, n_drivers = n_drivers, n_drivers + 1
        drivers[trip] = driver
        heapq.heappush(resting, (end, driver))
    return drivers
