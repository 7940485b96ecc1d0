"""What the web page shows: a source of releases by timestamp, and a feed of new ones.

The `Releases` of a campaign are one source, a recorded file is another. Every route of the viewer
works with this interface, so a campaign and a simulation look the same.
"""

from __future__ import annotations

import asyncio
import bisect
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from retrasyn.data.metadata import Metadata
from retrasyn.space import Grid

Summary = dict[str, Any]
"""t, time (ISO 8601), n_points, n_born, n_ended, n_reports, epsilon, cells (points per cell)."""
_AT_ONCE = 8  # releases that a feed reads at once


@dataclass(frozen=True, slots=True, eq=False)
class TimestampPoints:
    """The points of one timestamp, by ascending id of their stream."""

    ids: npt.NDArray[np.int64]  # [n_points], ascending, none twice
    x: npt.NDArray[np.float64]  # [n_points]
    y: npt.NDArray[np.float64]  # [n_points]

    @property
    def n_bytes(self) -> int:
        """Size in memory."""
        return self.ids.nbytes + self.x.nbytes + self.y.nbytes


class ReleaseSource(ABC):
    """Releases by timestamp: points and a summary each. Read from several threads at once."""

    __slots__ = ()
    timestamps: list[int]
    """Of the releases that exist, ascending; there may be gaps, and more may be appended."""

    @property
    @abstractmethod
    def grid(self) -> Grid:
        """The box and its cells."""

    @abstractmethod
    def summary(self, t: int) -> Summary | None:
        """Return the summary of timestamp t, with points per cell; None if it does not exist."""

    @abstractmethod
    def points_at(self, t: int) -> TimestampPoints | None:
        """Return the points of timestamp t; None if it does not exist."""

    @abstractmethod
    def places_at(self, t: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
        """Return x and y of timestamp t in the order of `points_at`; None if it does not exist."""

    def replicas_at(self, t: int) -> Sequence[TimestampPoints]:
        """Return the points of timestamp t in every replica; none where there are no replicas."""
        del t
        return ()

    def n_replicas(self, t: int) -> int:
        """Return how many replicas timestamp t has."""
        return len(self.replicas_at(t))

    def replica_at(self, t: int, number: int) -> TimestampPoints | None:
        """Return the points of timestamp t in one replica, from 1 on; None if there is none."""
        found = self.replicas_at(t)
        return found[number - 1] if 0 < number <= len(found) else None

    @abstractmethod
    def metadata(self) -> Metadata:
        """Return the clock and the coordinate system of the points."""

    @abstractmethod
    def open_receipt(self, t: int | None = None) -> BinaryIO | None:
        """Open the receipt of timestamp t, or of the newest; None if it does not exist."""

    def receipt(self, t: int | None = None) -> str | None:
        """Return the receipt of timestamp t, or of the newest; None if it does not exist."""
        opened = self.open_receipt(t)
        if opened is None:
            return None
        with opened:
            return opened.read().decode()

    def n_points(self, t: int) -> int:
        """Return how many points timestamp t has; 0 if it does not exist."""
        summary = self.summary(t)
        return 0 if summary is None else int(summary["n_points"])

    @property
    def oldest(self) -> int | None:
        """The first timestamp; None if there is none."""
        return self.timestamps[0] if self.timestamps else None

    @property
    def newest(self) -> int | None:
        """The last timestamp; None if there is none."""
        return self.timestamps[-1] if self.timestamps else None

    def has(self, t: int) -> bool:
        """Return whether timestamp t exists."""
        place = bisect.bisect_left(self.timestamps, t)
        return self.timestamps[place : place + 1] == [t]

    def within(self, first: int | None, last: int | None) -> list[int]:
        """Return the timestamps of a range, its ends included."""
        low = 0 if first is None else bisect.bisect_left(self.timestamps, first)
        high = None if last is None else bisect.bisect_right(self.timestamps, last)
        return self.timestamps[low:high]

    def summaries(self, first: int | None, last: int | None, limit: int) -> list[Summary]:
        """Return the summaries of the newest timestamps of a range, ascending, without cells."""
        found = self.within(first, last)[-limit:] if limit > 0 else []
        known = (self.summary(t) for t in found)
        return [
            {name: value for name, value in summary.items() if name != "cells"}
            for summary in known
            if summary is not None
        ]

    def after(self, t: int, limit: int) -> list[tuple[int, Summary]]:
        """Return the summaries of the timestamps after t, ascending, with their cells."""
        place = bisect.bisect_right(self.timestamps, t)
        found = [(then, self.summary(then)) for then in self.timestamps[place : place + limit]]
        return [(then, summary) for then, summary in found if summary is not None]


@dataclass(frozen=True, slots=True)
class ReplicaSource(ReleaseSource):
    """One replica of every release of another source, as if it were the release."""

    of: ReleaseSource
    number: int

    @property
    def timestamps(self) -> list[int]:  # type: ignore[override]  # those of the other
        """Of the releases that exist, ascending."""
        return self.of.timestamps

    @property
    def grid(self) -> Grid:
        """The box and its cells."""
        return self.of.grid

    def summary(self, t: int) -> Summary | None:
        """Return that of the release, as replicas have none."""
        return self.of.summary(t)

    def points_at(self, t: int) -> TimestampPoints | None:
        """Return the points of the replica; None if there are none."""
        return self.of.replica_at(t, self.number)

    def places_at(self, t: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
        """Return x and y of the replica; None if there are none."""
        found = self.points_at(t)
        return None if found is None else (found.x, found.y)

    def n_points(self, t: int) -> int:
        """Return how many points the replica has."""
        found = self.points_at(t)
        return 0 if found is None else found.ids.size

    def metadata(self) -> Metadata:
        """Return the clock and the coordinate system of the points."""
        return self.of.metadata()

    def open_receipt(self, t: int | None = None) -> BinaryIO | None:
        """Open the receipt of the release, which covers its replicas."""
        return self.of.open_receipt(t)


@dataclass(slots=True)
class Feed:
    """Wakes readers when there is a new release; each continues from where it is.

    Nothing is queued for anybody, so a slow reader costs nothing but its own lag.
    """

    read: Callable[[int, int], Sequence[tuple[int, Summary]]]  # after t, at most so many
    newest: int | None = None
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # one at a time reads from the disk
    _closed: bool = False

    def publish(self, t: int) -> None:
        """Tell all readers about release t."""
        self.newest = t
        self._wake()

    def close(self) -> None:
        """End every subscription."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def subscribe(self, after: int | None = None) -> AsyncIterator[tuple[int, Summary]]:
        """Yield releases after t, or after now, until the feed is closed."""
        place = after if after is not None else -1 if self.newest is None else self.newest
        while not self._closed:
            news = self._news
            async with self._turn:
                found = await asyncio.to_thread(self.read, place, _AT_ONCE)
            for t, summary in found:
                yield t, summary
                place = t
            if not found:
                await news.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerContent:
    """Everything the web page shows; a campaign has no `real`, and must not have any."""

    source: ReleaseSource
    kind: Literal["campaign", "recording"] = "campaign"  # recording: there is nobody to report
    unfolds: bool = True  # whether more may come; False: all of it is there
    status: Callable[[], dict[str, Any]]  # what /v1/status says
    feed: Feed
    real: ReleaseSource | None = None  # in a simulation, what the synthetic data stands for
