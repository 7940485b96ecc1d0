"""Which zones are unusual: a count against the usual one, and what chance alone may do."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

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
    gap: int  # timestamps in which everybody reports once, and a change shows in part

    def before(self, source: ReleaseSource, t: int) -> list[int]:
        """Return the timestamps that t is compared with; none if too little is known.

        The first two gaps, in which the synthesis begins to learn, are not usual. Neither is the
        last one before t, else a crowd that gathers slowly would be usual before it is seen.
        """
        if source.oldest is None:
            return []
        first, last = source.oldest + 2 * self.gap, t - self.gap - 1
        days = [round(t - day * self.per_day) for day in range(1, self.days + 1)]
        found = [then for then in days if first <= then <= last and source.has(then)]
        if found:
            return found
        latest = source.within(max(first, last - self.rounds + 1), last)
        return latest if len(latest) == self.rounds else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A zone whose count left its usual band by more than chance."""

    zone: int
    count: int
    usual: float
    low: float  # what the band and chance allow
    high: float

    @property
    def is_above(self) -> bool:
        """Whether there are more points than usual."""
        return self.count > self.usual


def departures(
    counts: Counts, before: list[Counts], *, band: float, level: float
) -> list[Departure]:
    """Return the zones that are unusual, where chance alone names any with probability `level`.

    How far the replicas are from the release at usual times says what chance does to a count, and
    so to how a count differs from the mean of others. As counts are off by a factor, the usual
    band is widened by one on both sides. The level is shared out by all zones and both directions.
    """
    usual = np.mean([one[0] for one in before], axis=0)  # [n_zones]
    errors = [Intervals.of(one[0], one[1:]).standard_error for one in before]
    error = np.sqrt(np.mean(np.square(errors), axis=0) * (1 + 1 / len(before)))
    error = np.maximum(error, 1.0)  # where nobody ever is, one more is no crowd
    width = -ndtri(level / (2 * usual.size))
    relative = np.divide(error, usual, out=np.zeros_like(error), where=usual > 0)
    factor = np.exp(width * np.sqrt(np.log1p(relative**2)))
    low = np.maximum(max(1 - band, 0) * usual / factor - 1.0, 0.0)  # and one fewer no void
    high = (1 + band) * np.maximum(usual * factor, usual + width * error)
    count = counts[0]
    return [
        Departure(
            zone=zone,
            count=int(count[zone]),
            usual=float(usual[zone]),
            low=float(low[zone]),
            high=float(high[zone]),
        )
        for zone in np.flatnonzero((count < low) | (count > high)).tolist()
    ]
