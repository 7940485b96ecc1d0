"""Two cities that stand for the planner's own: one at rest, one with rush hours.

Nobody knows a city before it has been measured. Most lie between these two: one in which nothing
ever changes, so that filters may remember for long, and one with two tides of commuters a day.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from retrasyn.data.trajectories import Trajectories
from retrasyn.planning.noise import ENROLLED
from retrasyn.randomness.addresses import address
from retrasyn.randomness.kernels import words_at
from retrasyn.simulation.city import DAY, drive_through_city

N_TIMESTAMPS = 4 * DAY
"""How long the planned stream is."""
_N_NEW = 200  # per timestamp: about 5,000 people are on their way at a time
_N_FIRST = 2_000


@dataclass(frozen=True, slots=True)
class City:
    """Trips of people, each of whom stands for `weight` people."""

    name: str
    trips: Trajectories
    weight: float = 1.0

    @property
    def n_active(self) -> float:
        """Simulated people at a time, on average."""
        return self.trips.n_points / (self.trips.last_t - self.trips.first_t + 1)

    @property
    def drivers(self) -> npt.NDArray[np.int64]:
        """The person behind every trip: [n_streams]."""
        assert self.trips.user_of_stream is not None  # noqa: S101 - the cities here name them
        return self.trips.user_of_stream

    def of_size(self, n_users: int) -> City:
        """Return the city with so many people at a time: some of its own, or all, with a weight."""
        if n_users >= self.n_active:
            return dataclasses.replace(self, weight=n_users / self.n_active)
        return dataclasses.replace(self, trips=self._thinned(n_users / self.n_active))

    def _thinned(self, share: float) -> Trajectories:
        """Keep a share of the people, at least one, with all their trips."""
        trips, drivers = self.trips, self.drivers
        n_people = int(drivers.max()) + 1
        words = words_at(np.uint64(address(0, 0, "thin")), np.arange(n_people, dtype=np.uint64))
        kept = np.zeros(n_people, np.bool_)
        kept[np.argsort(words, kind="stable")[: max(1, round(share * n_people))]] = True
        streams = kept[drivers]  # [n_streams]
        rows = np.repeat(streams, trips.lengths)  # [n_points]
        lengths = trips.lengths[streams]
        return Trajectories(
            trips.stream_ids[streams],
            trips.begins[streams],
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            trips.x[rows],
            trips.y[rows],
            drivers[streams],
        )


def built_in_cities(*, n_timestamps: int = N_TIMESTAMPS, seed: int = 0) -> list[City]:
    """Return the city at rest and the city with rush hours.

    >>> [city.name for city in built_in_cities(n_timestamps=5)]
    ['at rest', 'rush hours']
    """
    cities = []
    for name, day in (("at rest", None), ("rush hours", DAY)):
        trips = drive_through_city(
            n_first=_N_FIRST,
            n_new=_N_NEW,
            n_users=ENROLLED * 25 * _N_NEW,  # a trip takes about 25 timestamps
            n_timestamps=n_timestamps,
            day=day,
            seed=seed,
        )
        cities.append(City(name, trips))
    return cities
