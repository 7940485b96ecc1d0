"""Periods: the spans of time that answers are about, and which of them a timestamp lies in."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.data.discretise import read_period
from retrasyn.data.metadata import Clock, instants
from retrasyn.errors import InputError, SettingError

if TYPE_CHECKING:
    import numpy.typing as npt

_DAY = 86_400_000_000  # microseconds
_WORDS = {"day": "1d", "hour": "1h"}


@dataclass(frozen=True, slots=True, eq=False)
class Periods:
    """Spans of timestamps, or of the time of day, in the order of time."""

    first_t: int
    of_timestamp: npt.NDArray[np.int32]  # [n_timestamps], the period of first_t + i
    labels: dict[str, npt.NDArray[Any]]  # what tells a period, [n_periods] each; none if it is one

    @classmethod
    def along(cls, span: range, by: str | int | None, clock: Clock | None) -> Periods:
        """Divide timestamps by a length of time, such as ``1h``, or by their number.

        Lengths of time begin at midnight where the clock is, numbers at timestamp 0.

        >>> Periods.along(range(4, 9), 3, None).labels["t"]
        array([4, 6])
        """
        t = np.arange(span.start, span.stop)
        if by is None:
            return cls(span.start, np.zeros(t.size, np.int32), {})
        if (number := _number(by)) is not None:
            spans = t // number
        else:
            spans = _since_midnight(t, clock, f"`by={by}`") // _length(by, clock)
        _, first, codes = np.unique(spans, return_index=True, return_inverse=True)
        labels: dict[str, npt.NDArray[Any]] = {"t": t[first]}
        if clock is not None:
            labels["time"] = instants(clock, t[first])
        return cls(span.start, codes.astype(np.int32), labels)

    @classmethod
    def of_day(cls, span: range, by: str | int | None, clock: Clock | None) -> Periods:
        """Divide timestamps by the time of day, whatever the day."""
        if _number(by or "1h") is not None:
            raise SettingError(f"`by={by}` is no part of a day; write for example 15min or 1h")
        t = np.arange(span.start, span.stop)
        length = _length(by or "1h", clock)
        begins = _since_midnight(t, clock, "a profile over the day") % _DAY // length * length
        times, codes = np.unique(begins, return_inverse=True)
        texts = [f"{at // 3_600_000_000:02}:{at // 60_000_000 % 60:02}" for at in times.tolist()]
        return cls(span.start, codes.astype(np.int32), {"time_of_day": np.array(texts)})

    @property
    def n_periods(self) -> int:
        """Number of periods."""
        return int(self.of_timestamp.max()) + 1

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Number of timestamps in each period: [n_periods]."""
        return np.bincount(self.of_timestamp)

    @property
    def last_t(self) -> int:
        """The last timestamp."""
        return self.first_t + self.of_timestamp.size - 1

    def locate(self, t: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return the period of timestamps, -1 where it is none: [n]."""
        within = (t >= self.first_t) & (t <= self.last_t)
        place = np.clip(t - self.first_t, 0, self.of_timestamp.size - 1)
        return np.where(within, self.of_timestamp[place], np.int32(-1))


def span_of(
    first_t: int, last_t: int, start: str | int | None, end: str | int | None, clock: Clock | None
) -> range:
    """Return the timestamps from start to end, of those there are.

    A number is a timestamp, the last one included; a time is an instant, the last one not.
    """
    first = first_t if start is None else max(first_t, _timestamp(start, clock))
    last = last_t
    if end is not None:
        is_time = isinstance(end, str) and not _is_number(end)
        last = min(last_t, _timestamp(end, clock) - is_time)
    if first > last:
        asked = " ".join(
            f"{word} {value}" for word, value in (("from", start), ("to", end)) if value is not None
        )
        raise InputError(
            f"there are no timestamps {asked}: those there are go from {_shown(first_t, clock)} to "
            f"{_shown(last_t, clock)}"
        )
    return range(first, last + 1)


def _timestamp(asked: str | int, clock: Clock | None) -> int:
    """Return a timestamp, or the first that begins at an instant or after it."""
    if isinstance(asked, int) or _is_number(asked):
        return int(asked)
    try:
        instant = dt.datetime.fromisoformat(asked)
    except ValueError:
        raise SettingError(
            f"{asked[:40]!r} is neither a timestamp nor a time; write 96 or 2026-05-04T08:00"
        ) from None
    if clock is None:
        raise SettingError(
            f"{asked} is a time, and it is not known when timestamp 0 was; give timestamps"
        )
    epoch = clock.time_of(0)
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=epoch.tzinfo)
    return math.ceil((instant - epoch).total_seconds() / clock.period - 1e-9)


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 12  # noqa: PLR2004 - of a number


def _shown(t: int, clock: Clock | None) -> str:
    return str(t) if clock is None else f"{t} ({clock.time_of(t).isoformat()})"


def _number(by: str | int) -> int | None:
    """Return how many timestamps a period has, if it is told by their number."""
    if isinstance(by, str) and not _is_number(by):
        return None
    if int(by) < 1:
        raise SettingError(f"`by={by}` is not a number of timestamps; at least 1 is needed")
    return int(by)


def _length(by: str | int, clock: Clock | None) -> int:
    """Return how long a period is, in microseconds."""
    length = read_period(_WORDS.get(str(by), str(by)))
    if clock is not None and length < clock.period * 1e6:
        raise SettingError(
            f"`by={by}` is shorter than a timestamp, which is {clock.period:g} s; choose more"
        )
    return length


def _since_midnight(
    t: npt.NDArray[np.int64], clock: Clock | None, what: str
) -> npt.NDArray[np.int64]:
    """Return microseconds from the midnight before timestamp 0, where the clock is."""
    if clock is None:
        raise SettingError(
            f"{what} needs a clock, and it is not known when timestamp 0 was; convert raw "
            "positions with `every`, which keeps the clock, or give a number of timestamps: `by=6`"
        )
    epoch = clock.time_of(0)
    midnight = epoch.replace(hour=0, minute=0, second=0, microsecond=0)
    passed = np.rint(t * (clock.period * 1e6)).astype(np.int64)
    moments: npt.NDArray[np.int64] = passed + round((epoch - midnight).total_seconds() * 1e6)
    return moments
