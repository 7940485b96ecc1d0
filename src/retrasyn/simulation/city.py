"""A small city with a rush hour, made in code: for the demo, the documents and the tests."""

import numpy as np
import numpy.typing as npt

from retrasyn.data.trajectories import Trajectories
from retrasyn.space import Box

CITY_BOX = Box(0.0, 0.0, 10.0, 10.0)
_SUBURBS = np.array([[2.0, 2.0], [8.0, 2.5], [2.0, 8.0], [7.5, 8.0]])
_CENTRES = np.array([[5.0, 5.0], [6.5, 4.0]])
_STEP = 0.7  # how far a car gets in one timestamp
_DAY = 120  # timestamps from one morning to the next
_MORNING, _EVENING, _SPREAD = 30, 85, 8


def demo_city(*, n_users: int = 60_000, n_timestamps: int = 120, seed: int = 0) -> Trajectories:
    """Return commuters who drive to work in the morning and home in the evening.

    Every user has two trips a day: a stream begins some time before the trip and ends some time
    after it, so that entering and quitting have a place and an hour of their own.

    >>> city = demo_city(n_users=50, n_timestamps=40, seed=3)
    >>> city.first_t >= 0 and city.last_t < 40
    True
    """
    random = np.random.default_rng(seed)
    home = _scatter(random, _SUBURBS, n_users, 0.9)
    work = _scatter(random, _CENTRES, n_users, 0.6)
    days = np.arange(0, n_timestamps, _DAY)
    n_trips = 2 * days.size
    leaving = np.stack([days + _MORNING, days + _EVENING], axis=1).ravel()  # [n_trips]
    departure = leaving + random.normal(0, _SPREAD, (n_users, n_trips))
    outward = np.arange(n_trips) % 2 == 0
    origin = np.where(outward[:, None], home[:, None], work[:, None]).reshape(-1, 2)
    destination = np.where(outward[:, None], work[:, None], home[:, None]).reshape(-1, 2)
    reach = np.abs(destination - origin)  # [n_users * n_trips, 2]
    before = random.geometric(np.full(reach.shape[0], 0.25))
    after = random.geometric(np.full(reach.shape[0], 0.2))
    length = before + np.ceil(reach.sum(axis=1) / _STEP).astype(int) + after
    begin = np.round(departure).astype(int) - before.reshape(n_users, n_trips)
    length = length.reshape(n_users, n_trips)
    for k in range(1, n_trips):  # nobody is on two trips at once; they may touch
        begin[:, k] = np.maximum(begin[:, k], begin[:, k - 1] + length[:, k - 1])
    trip = np.repeat(np.arange(reach.shape[0]), length.ravel())
    age = np.arange(trip.size) - np.repeat(np.cumsum(length) - length.ravel(), length.ravel())
    t = begin.ravel()[trip] + age
    seen = (t >= 0) & (t < n_timestamps)
    trip, t, age = trip[seen], t[seen], age[seen]
    way = np.clip(age - before[trip], 0, None) * _STEP  # first along x, then along y
    along = np.stack(
        [np.minimum(way, reach[trip, 0]), np.clip(way - reach[trip, 0], 0, reach[trip, 1])], axis=1
    )
    points = origin[trip] + np.sign(destination - origin)[trip] * along
    points = np.clip(points + random.normal(0, 0.05, points.shape), 0.0, 10.0)
    return Trajectories.from_columns(
        traj_id=trip, t=t, x=points[:, 0], y=points[:, 1], user_id=trip // n_trips
    )


def _scatter(
    random: np.random.Generator, places: npt.NDArray[np.float64], n: int, spread: float
) -> npt.NDArray[np.float64]:
    """Draw points around places: [n, 2]."""
    points = places[random.integers(0, len(places), n)] + random.normal(0, spread, (n, 2))
    return np.clip(points, 0.05, 9.95)
