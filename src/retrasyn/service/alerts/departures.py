"""Which zones are unusual: a count against the usual one, and what chance alone may do."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from retrasyn.answers.intervals import Intervals
from retrasyn.answers.zones import Zones
from retrasyn.service.viewing.source import ReleaseSource, TimestampPoints
from retrasyn.service.viewing.view import LruCache

Counts = npt.NDArray[np.int32]
"""Points by zone of a release and, below it, of each of its replicas: [1 + B, n_zones]."""
FEWEST_REPLICAS = 2
"""Replicas without which nothing is known of chance."""
_MOST_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class ZoneCounts:
    """Points by zone at a timestamp, in the release and in its replicas."""

    source: ReleaseSource
    zones: Zones
    _known: LruCache[Counts] = field(
        default_factory=lambda: LruCache(_MOST_BYTES, lambda counts: counts.nbytes)
    )

    def at(self, t: int) -> Counts | None:
        """Return the counts of a timestamp; None where it was not released with replicas."""
        return self._known.get(t, lambda: self._count(t))

    def _count(self, t: int) -> Counts | None:
        points, replicas = self.source.points_at(t), self.source.replicas_at(t)
        if points is None or len(replicas) < FEWEST_REPLICAS:
            return None
        return np.stack([self._by_zone(one) for one in (points, *replicas)])

    def _by_zone(self, points: TimestampPoints) -> Counts:
        found = self.zones.locate(points.x, points.y)
        counted = np.bincount(found, minlength=self.zones.n_codes)
        return counted[: self.zones.n_zones].astype(np.int32)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualTimes:
    """Which timestamps say what is usual: the same time of earlier days, or else the last ones."""

    per_day: float  # timestamps
    days: int
    rounds: int
    settled: int  # timestamps from the first on, in which the synthesis is still learning

    def before(self, source: ReleaseSource, t: int) -> list[int]:
        """Return the timestamps that t is compared with; none if too little is known."""
        if source.oldest is None:
            return []
        first = source.oldest + self.settled
        days = [round(t - day * self.per_day) for day in range(1, self.days + 1)]
        found = [then for then in days if first <= then < t and source.has(then)]
        if found:
            return found
        last = source.within(max(first, t - self.rounds), t - 1)
        return last if len(last) == self.rounds else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A zone whose count left its usual band by more than chance."""

    zone: int
    count: int
    usual: float
    standard_error: float  # of the difference between the two

    @property
    def is_above(self) -> bool:
        """Whether there are more points than usual."""
        return self.count > self.usual


def departures(
    counts: Counts, before: list[Counts], *, band: float, level: float
) -> list[Departure]:
    """Return the zones that are unusual, where chance alone names any with probability `level`.

    A replica sees its own chance now and in the rounds before, so how far its differences are from
    the release's says what chance does to a difference. Student's law allows for how few replicas
    there are, and the level is shared out by all zones and both directions.
    """
    n_rows = min(len(one) for one in (counts, *before))
    usual = np.mean([one[:n_rows] for one in before], axis=0)  # [1 + B, n_zones]
    apart = counts[:n_rows] - usual
    error = Intervals.of(apart[0], apart[1:]).standard_error
    n_replicas, n_zones = n_rows - 1, counts.shape[1]
    allowed = -stdtrit(n_replicas, level / (2 * n_zones)) * error
    beyond = np.abs(apart[0]) - band * usual[0] > allowed
    return [
        Departure(
            zone=zone,
            count=int(counts[0, zone]),
            usual=float(usual[0, zone]),
            standard_error=float(error[zone]),
        )
        for zone in np.flatnonzero(beyond).tolist()
    ]
