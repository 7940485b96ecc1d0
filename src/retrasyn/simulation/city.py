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


def demo_city(*, n_users: int = 20_000, n_timestamps: int = 120, seed: int = 0) -> Trajectories:
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
    columns: list[tuple[npt.NDArray[np.float64], ...]] = []
    for day in range(0, n_timestamps, _DAY):
        morning = day + random.normal(30, 7, n_users)
        evening = day + random.normal(85, 9, n_users)
        columns.append(_trips(random, home, work, morning, n_timestamps))
        columns.append(_trips(random, work, home, evening, n_timestamps))
    user, t, x, y, trip = (
        np.concatenate(parts)
        for parts in zip(
            *((*part, np.full(part[0].size, k)) for k, part in enumerate(columns)), strict=True
        )
    )
    # Trips of one user that touch or overlap are one stream: the later one goes on with it.
    order = np.lexsort((trip, t, user))
    user, t, x, y = user[order], t[order], x[order], y[order]
    first = np.append(True, (user[1:] != user[:-1]) | (t[1:] != t[:-1]))
    user, t, x, y = user[first], t[first], x[first], y[first]
    begins = np.append(True, (user[1:] != user[:-1]) | (t[1:] != t[:-1] + 1))
    return Trajectories.from_columns(traj_id=np.cumsum(begins) - 1, t=t, x=x, y=y, user_id=user)


def _scatter(
    random: np.random.Generator, places: npt.NDArray[np.float64], n: int, spread: float
) -> npt.NDArray[np.float64]:
    """Draw points around places: [n, 2]."""
    points = places[random.integers(0, len(places), n)] + random.normal(0, spread, (n, 2))
    return np.clip(points, 0.05, 9.95)


def _trips(
    random: np.random.Generator,
    origin: npt.NDArray[np.float64],
    destination: npt.NDArray[np.float64],
    departure: npt.NDArray[np.float64],
    n_timestamps: int,
) -> tuple[npt.NDArray[np.float64], ...]:
    """Return user, t, x, y of one trip per user, first along x and then along y."""
    reach = np.abs(destination - origin)  # [n, 2]
    duration = np.ceil(reach.sum(axis=1) / _STEP).astype(int) + 1
    before = random.geometric(np.full(origin.shape[0], 0.25))
    after = random.geometric(np.full(origin.shape[0], 0.2))
    begin = np.round(departure).astype(int) - before
    length = before + duration + after
    user = np.repeat(np.arange(origin.shape[0]), length)
    age = np.arange(user.size) - np.repeat(np.cumsum(length) - length, length)
    way = np.clip(age - before[user], 0, None) * _STEP
    along_x = np.minimum(way, reach[user, 0])
    along_y = np.clip(way - reach[user, 0], 0, reach[user, 1])
    direction = np.sign(destination - origin)[user]
    points = origin[user] + direction * np.stack([along_x, along_y], axis=1)
    points = np.clip(points + random.normal(0, 0.05, points.shape), 0.0, 10.0)
    t = begin[user] + age
    seen = (t >= 0) & (t < n_timestamps)
    return user[seen], t[seen], points[seen, 0], points[seen, 1]
