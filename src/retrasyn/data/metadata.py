"""Clock and coordinate system of a data set, and how files store them."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from retrasyn.bounded_json import parse_json
from retrasyn.errors import InputError, OutputError


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


KEY = "retrasyn"
_VERSION = 1
_ZERO = np.datetime64("1970-01-01T00:00:00", "us")


@dataclass(frozen=True, slots=True)
class Metadata:
    """The clock and coordinate system of a data set, if known.

    >>> Metadata(Clock("2008-02-02T00:00:00+00:00", 600.0), "EPSG:4326").to_dict()["period"]
    600.0
    >>> Metadata.parse('{"version": 1, "crs": "EPSG:4326"}')
    Metadata(clock=None, crs='EPSG:4326')
    """

    clock: Clock | None = None
    crs: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the known fields, ready for JSON."""
        known: dict[str, Any] = {"version": _VERSION}
        if self.clock is not None:
            known |= {"epoch": self.clock.epoch, "period": self.clock.period}
        if self.crs is not None:
            known["crs"] = self.crs
        return known

    def to_schema(self) -> dict[bytes, bytes]:
        """Return the Arrow schema entry, empty if nothing is known."""
        if self.clock is None and self.crs is None:
            return {}
        return {KEY.encode(): json.dumps(self.to_dict()).encode()}

    @classmethod
    def of_schema(cls, entries: dict[bytes, bytes] | None) -> Metadata:
        """Read the Arrow schema entry, if there is one."""
        text = (entries or {}).get(KEY.encode())
        return cls() if text is None else cls.parse(text)

    @classmethod
    def parse(cls, text: str | bytes) -> Metadata:
        """Read the JSON form of `to_dict`, ignoring fields added by later versions."""
        try:
            known = parse_json(text)
            epoch, period, crs = (known.get(name) for name in ("epoch", "period", "crs"))
            if not (crs is None or (isinstance(crs, str) and crs)):
                raise TypeError  # noqa: TRY301 - same error as for any other damage
            clock = None if epoch is None and period is None else Clock(epoch, float(period))
        except (ValueError, TypeError, AttributeError, InputError) as error:
            why = f" ({error})" if isinstance(error, InputError) else ""
            raise InputError(
                f"its metadata {KEY!r} is damaged{why}; write the file again, or remove the key"
            ) from None
        return cls(clock, crs)


def clock_of(clock: Clock | None, what: str) -> Clock:
    """Return the clock, or raise an error naming what cannot be written without one."""
    if clock is None:
        raise OutputError(
            f"{what} needs real times, and it is not known when timestamp 0 was; "
            "read a file that keeps epoch and period, or set clock=Clock(epoch, period)"
        )
    return clock


def instants(clock: Clock, t: npt.NDArray[np.int64]) -> npt.NDArray[np.datetime64]:
    """Return the start of each timestamp in UTC, to the microsecond."""
    if t.size == 0:
        return np.empty(0, "datetime64[us]")
    try:
        begin = clock.time_of(0).timestamp()
        for extreme in (t.min(), t.max()):
            clock.time_of(int(extreme)).timestamp()
    except (OverflowError, ValueError):
        raise OutputError(
            f"timestamps {t.min()}..{t.max()} of {clock.period:g} seconds from {clock.epoch} lie "
            "outside the years 1..9999; check epoch and period"
        ) from None
    whole = np.floor(begin)
    passed = t * clock.period
    seconds = np.floor(passed)
    # Whole seconds and fractions are added separately so that late timestamps stay exact.
    rest = np.rint((passed - seconds + (begin - whole)) * 1e6).astype(np.int64)
    micros = (seconds.astype(np.int64) + int(whole)) * 1_000_000 + rest
    moments: npt.NDArray[np.datetime64] = _ZERO + micros.astype("timedelta64[us]")
    return moments


def iso_texts(moments: npt.NDArray[np.datetime64], *, whole_seconds: bool) -> npt.NDArray[np.str_]:
    """Format instants as ISO 8601 in UTC, to the second if `whole_seconds`."""
    whole = whole_seconds and not (moments.astype(np.int64) % 1_000_000).any()
    return np.strings.add(np.datetime_as_string(moments, unit="s" if whole else "us"), "Z")
