"""Where the pictures come from: one synthetic timestamp after the other, read when asked for.

A campaign's `Releases` are one source, a recorded file another. Every route that shows something
works with this interface and knows no other, so a campaign and a simulation look the same.
"""

from __future__ import annotations

import bisect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from retrasyn.data.trajectories import Trajectories
from retrasyn.space import Grid

Summary = dict[str, Any]
"""t, time (ISO 8601), n_points, n_born, n_ended, n_reports, epsilon, cells (points per cell)."""


@dataclass(frozen=True, slots=True, eq=False)
class TimestampPoints:
    """The points of one timestamp, by ascending id of their stream."""

    ids: npt.NDArray[np.int64]  # [n_points], ascending, none twice
    x: npt.NDArray[np.float64]  # [n_points]
    y: npt.NDArray[np.float64]  # [n_points]

    @property
    def n_bytes(self) -> int:
        """How much room they take."""
        return self.ids.nbytes + self.x.nbytes + self.y.nbytes


class ReleaseSource(ABC):
    """Timestamps, each with its points and a summary. Asked from several threads at once."""

    __slots__ = ()
    timestamps: list[int]
    """Of what is there, ascending; there may be holes, and more may come at the end."""

    @property
    @abstractmethod
    def grid(self) -> Grid:
        """The box and its cells."""

    @abstractmethod
    def summary(self, t: int) -> Summary | None:
        """Return what timestamp t holds, with points per cell; None if it is not there."""

    @abstractmethod
    def points_at(self, t: int) -> TimestampPoints | None:
        """Return the points of timestamp t; None if it is not there."""

    @abstractmethod
    def places_at(self, t: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
        """Return x and y of timestamp t in the order of `points_at`; None if it is not there."""

    @abstractmethod
    def points(self, first: int | None, last: int | None) -> Trajectories:
        """Return all points of a range of time as streams; there may be none."""

    @abstractmethod
    def receipt(self, t: int | None = None) -> str | None:
        """Return the receipt of timestamp t, or of the newest; None if it is not there."""

    @property
    def oldest(self) -> int | None:
        """The first timestamp that is there."""
        return self.timestamps[0] if self.timestamps else None

    @property
    def newest(self) -> int | None:
        """The last timestamp that is there."""
        return self.timestamps[-1] if self.timestamps else None

    def has(self, t: int) -> bool:
        """Return whether timestamp t is there."""
        place = bisect.bisect_left(self.timestamps, t)
        return self.timestamps[place : place + 1] == [t]

    def within(self, first: int | None, last: int | None) -> list[int]:
        """Return the timestamps of a range, its ends included."""
        low = 0 if first is None else bisect.bisect_left(self.timestamps, first)
        high = None if last is None else bisect.bisect_right(self.timestamps, last)
        return self.timestamps[low:high]

    def summaries(self, first: int | None, last: int | None, limit: int) -> list[Summary]:
        """Return what the newest timestamps of a range hold, ascending, without their cells."""
        found = self.within(first, last)[-limit:] if limit > 0 else []
        known = (self.summary(t) for t in found)
        return [
            {name: value for name, value in summary.items() if name != "cells"}
            for summary in known
            if summary is not None
        ]

    def after(self, t: int, limit: int) -> list[tuple[int, Summary]]:
        """Return the timestamps that follow t, ascending, with their cells."""
        place = bisect.bisect_right(self.timestamps, t)
        found = [(then, self.summary(then)) for then in self.timestamps[place : place + limit]]
        return [(then, summary) for then, summary in found if summary is not None]
