"""A trip per stream: where and when it begins, and where it ends."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.data.metadata import clock_of
from retrasyn.errors import OutputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories


@dataclass(frozen=True, slots=True, eq=False)
class TripEnds:
    """The streams that go anywhere; one of a single point makes no trip."""

    streams: npt.NDArray[np.int64]  # [n_trips], place of each among all streams
    departures: npt.NDArray[np.float64]  # [n_trips], seconds since midnight of the first day
    first: npt.NDArray[np.int64]  # [n_trips], row of the first point
    last: npt.NDArray[np.int64]  # [n_trips], row of the last point
    n_still: int  # streams of a single point

    @classmethod
    def of(cls, data: Trajectories, what: str) -> TripEnds:
        """Find trips; those that begin at one timestamp depart evenly over its time.

        A simulator would otherwise set all of them off at once.
        """
        clock = clock_of(data.clock, what)
        streams = np.flatnonzero(data.lengths > 1)
        if not streams.size:
            raise OutputError(f"{what} needs trips, and every stream has a single point")
        begins = data.begins[streams]
        steps = begins - begins.min() + _shares(begins)
        passed = _since_midnight(clock.time_of(int(begins.min())))
        return cls(
            streams=streams,
            departures=passed + steps * clock.period,
            first=data.starts[streams],
            last=data.starts[streams + 1] - 1,
            n_still=data.n_streams - streams.size,
        )

    def where(self, chosen: npt.NDArray[np.bool_]) -> TripEnds:
        """Return some of the trips."""
        return TripEnds(
            self.streams[chosen],
            self.departures[chosen],
            self.first[chosen],
            self.last[chosen],
            self.n_still,
        )

    @property
    def n_trips(self) -> int:
        """Number of trips."""
        return self.streams.size


def _shares(begins: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return how much of its timestamp has passed at each departure.

    >>> _shares(np.array([3, 4, 3])).tolist()
    [0.25, 0.5, 0.75]
    """
    order = np.argsort(begins, kind="stable")
    _, which, counts = np.unique(begins, return_inverse=True, return_counts=True)
    rank = np.empty(begins.size)
    rank[order] = np.arange(begins.size) - (np.cumsum(counts) - counts)[which[order]]
    shares: npt.NDArray[np.float64] = (rank + 0.5) / counts[which]
    return shares


def _since_midnight(moment: dt.datetime) -> float:
    """Return the seconds of the day that have passed, where the clock is."""
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return (moment - midnight).total_seconds()
