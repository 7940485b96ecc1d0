"""`ConversionSummary`: what a conversion read, wrote and dropped, and what may not be as meant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from retrasyn.data.formats.base import is_degrees
from retrasyn.data.formats.understanding import SINCE_1970, Understanding
from retrasyn.data.metadata import Clock
from retrasyn.data.trajectories import Trajectories

_MONTH = 31 * 86400  # seconds
_HALF_TURN = 180
_MANY = 10  # as many users of one fix each are no coincidence


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionSummary:
    """Counts of a conversion: fixes read, points written, and rows dropped by reason."""

    n_fixes: int  # fixes read, including skipped ones
    n_points: int
    n_users: int
    n_streams: int
    mean_length: float
    n_timestamps: int  # from the first timestamp to the last
    n_outside: int  # fixes outside the box
    n_duplicates: int  # fixes with a later one of the same user in the same step
    n_skipped: int  # unusable lines
    n_unprojectable: int  # fixes that cannot be projected to the target coordinate system
    understood: tuple[Understanding, ...] = ()  # what columns were taken for; usually one
    warnings: tuple[str, ...] = ()  # what may not be as it was meant, above all who a person is

    def to_dict(self) -> dict[str, Any]:
        """Return all counts by name, and what the columns were taken for."""
        known = {name.name: getattr(self, name.name) for name in fields(self)}
        understood = [each.to_dict() for each in self.understood]
        return known | {"understood": understood, "warnings": list(self.warnings)}


def doubts(real: Trajectories, summary: ConversionSummary) -> Iterator[str]:
    """Yield what may not be as it was meant."""
    said = (each.warning(summary.n_users) for each in summary.understood)
    yield from dict.fromkeys(filter(None, said))
    n_placed = summary.n_points + summary.n_duplicates
    if summary.n_users == n_placed >= _MANY:
        yield (
            f"all {n_placed:,} fixes have a user of their own: does the column number the rows? "
            'Name the persons with `user="COLUMN"`'
        )
    numbers = any(each.zone == SINCE_1970 for each in summary.understood)
    seconds = 0 if real.clock is None else (real.last_t + 1) * real.clock.period
    if numbers and real.clock is not None and _since_1970(real.clock) + seconds < _MONTH:
        yield (
            "all times lie in January 1970: numbers were taken for seconds since then. That fits a "
            "simulation; days of a spreadsheet have to be written as dates, and steps go without "
            "`every`"
        )
    n_around = _n_around(real)
    if n_around:
        yield (
            f"{n_around:,} {'step crosses' if n_around == 1 else 'steps cross'} 180 degrees, where "
            "a grid is torn apart; a `box` beyond it, such as 170,-20,190,0, shifts longitudes"
        )


def _since_1970(clock: Clock) -> float:
    return abs(clock.time_of(0).timestamp())


def _n_around(real: Trajectories) -> int:
    """Count the steps within streams that lead around the world: from 179 to -179 degrees."""
    if not is_degrees(real.crs):
        return 0
    far = np.abs(np.diff(real.x)) > _HALF_TURN
    far[real.starts[1:-1] - 1] = False
    return int(far.sum())
