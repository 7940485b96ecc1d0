"""What a numbered timestamp means in real time."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from retrasyn.errors import InputError


@dataclass(frozen=True, slots=True)
class Clock:
    """Timestamp t covers the `period` seconds that begin at epoch + t * period.

    >>> Clock("2008-02-02T00:00:00+00:00", 600.0).time_of(3).isoformat()
    '2008-02-02T00:30:00+00:00'
    """

    epoch: str  # ISO 8601 with an offset
    period: float  # seconds

    def __post_init__(self) -> None:
        try:
            begin = dt.datetime.fromisoformat(self.epoch)
        except ValueError:
            raise InputError(f"epoch {self.epoch!r} is not an ISO 8601 time") from None
        if begin.tzinfo is None:
            raise InputError(f"epoch {self.epoch!r} has no offset; write for example +00:00")
        if not 0 < self.period < float("inf"):
            raise InputError(f"period {self.period} must be a positive number of seconds")

    def time_of(self, t: int) -> dt.datetime:
        """Return the instant at which timestamp t begins."""
        begin = dt.datetime.fromisoformat(self.epoch)
        return begin + dt.timedelta(seconds=t * self.period)
