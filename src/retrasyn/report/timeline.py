"""Groups timestamps into the frames of a report, with clock labels."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.metadata import Clock

MAX_FRAMES = 1_000
MAX_VALUES = 500_000  # frames times cells; keeps the file below three megabytes


@dataclass(frozen=True, slots=True)
class Timeline:
    """Frames of `width` timestamps each; the last may be shorter.

    >>> timeline = Timeline.over(10, n_cells=4, max_frames=4)
    >>> timeline.width, timeline.n_frames, timeline.sizes.tolist()
    (3, 4, [3, 3, 3, 1])
    """

    n_timestamps: int
    width: int

    @classmethod
    def over(cls, n_timestamps: int, *, n_cells: int, max_frames: int = MAX_FRAMES) -> Timeline:
        """Choose the narrowest frames that stay within the limits."""
        n_frames = max(1, min(max_frames, MAX_VALUES // n_cells))
        return cls(n_timestamps, max(1, -(-n_timestamps // n_frames)))

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return -(-self.n_timestamps // self.width)

    @property
    def begins(self) -> npt.NDArray[np.int64]:
        """First timestamp of every frame: [n_frames]."""
        return np.arange(0, self.n_timestamps, self.width)

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Number of timestamps of every frame: [n_frames]."""
        return np.minimum(self.width, self.n_timestamps - self.begins)

    def means(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Average per-timestamp values over each frame, ignoring NaN: [n_frames]."""
        known = ~np.isnan(values)
        totals = np.add.reduceat(np.where(known, values, 0.0), self.begins)
        n_known = np.add.reduceat(known.astype(np.int64), self.begins)
        return np.where(n_known > 0, totals / np.maximum(n_known, 1), np.nan)


def clock_facts(clock: Clock | None, first_t: int, last_t: int) -> dict[str, Any] | None:
    """Return what a page needs to show clock times; None where the clock is unknown.

    `begin` is timestamp 0 in seconds since 1970, in the clock's own time zone.
    """
    if clock is None:
        return None
    try:
        for t in (first_t, last_t):
            clock.time_of(t)
    except OverflowError:  # no dates beyond the years 1..9999
        return None
    begin = clock.time_of(0)
    local = begin.replace(tzinfo=dt.UTC).timestamp()
    return {"begin": local, "period": clock.period, "zone": begin.strftime("%z")}
