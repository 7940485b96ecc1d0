"""Sources of positions: a fixed place, the rows of a file, or the latest fix received.

A fix is read at one instant per round. None means that there is none, which is a null report.
"""

from __future__ import annotations

import csv
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from retrasyn.bounded_json import parse_json
from retrasyn.device import Instant
from retrasyn.device.tracker import Fix
from retrasyn.errors import InputError

AHEAD = 5_000
"""Milliseconds that a fix may seem to come from the future: phones' clocks are not exact."""


class FixSource(Protocol):
    """A source of this device's positions."""

    def at(self, wall: int, *, period: int) -> Fix | None:
        """Return the position at an instant in milliseconds since 1970; a period has seconds."""
        ...  # pragma: no cover - a protocol has no body

    def next_round(self) -> bool:
        """Go on to the next round; False where the owner stops to share."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(frozen=True, slots=True)
class StandingStill:
    """Always the same place."""

    fix: Fix = field(repr=False)

    def at(self, wall: int, *, period: int) -> Fix | None:
        """Return the place."""
        del wall, period
        return self.fix

    def next_round(self) -> bool:
        """Never stop."""
        return True


@dataclass(slots=True)
class RecordedFixes:
    """One row per round; an empty place is a round without a fix."""

    rows: list[Fix | None] = field(repr=False)
    _place: int = -1

    def at(self, wall: int, *, period: int) -> Fix | None:
        """Return the row of this round."""
        del wall, period
        return self.rows[self._place] if 0 <= self._place < len(self.rows) else None

    def next_round(self) -> bool:
        """Go on to the next row."""
        self._place += 1
        return self._place < len(self.rows)


@dataclass(slots=True)
class Latest:
    """The latest fix heard, for a period; older ones and those of the future are not used.

    >>> latest = Latest()
    >>> latest.hear((2.0, 3.0), 10_000)
    >>> latest.at(15_000, period=10), latest.at(21_000, period=10), latest.at(4_000, period=10)
    ((2.0, 3.0), None, None)
    """

    _fix: Fix | None = field(default=None, repr=False)
    _taken: int = 0  # milliseconds since 1970
    _over: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def hear(self, fix: Fix, taken: int) -> None:
        """Note a fix and when it was taken; one that is older than the last is not used."""
        with self._lock:
            if taken >= self._taken or self._fix is None:
                self._fix, self._taken = fix, taken

    def end(self) -> None:
        """Note that no more fixes will come."""
        self._over = True

    def at(self, wall: int, *, period: int) -> Fix | None:
        """Return the latest fix if it is at most a period old."""
        with self._lock:
            fresh = wall - period * 1000 <= self._taken <= wall + AHEAD
            return self._fix if fresh else None

    def next_round(self) -> bool:
        """Go on until the end is noted."""
        return not self._over


def read_place(text: str) -> Fix:
    """Return the place that an option names.

    >>> read_place("2.5,-1")
    (2.5, -1.0)
    """
    parts = text.split(",")
    try:
        x, y = (float(part) for part in parts)
    except ValueError:
        x = y = math.nan
    if not (math.isfinite(x) and math.isfinite(y)):
        raise InputError(f"{text!r:.60} is no place; write two numbers: --at X,Y")
    return x, y


def read_rows(path: Path) -> RecordedFixes:
    """Read the columns x and y of a CSV file, a row per round."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            table = csv.DictReader(file)
            if not {"x", "y"} <= set(table.fieldnames or ()):
                raise InputError(f"{path} needs the columns x and y, named in its first line")
            rows = [_row(path, number, row) for number, row in enumerate(table, 2)]
    except OSError as fault:
        raise InputError(f"{path} cannot be read ({fault.strerror}); check the path") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{path} is no CSV file; write the columns x and y as text") from None
    if not rows:
        raise InputError(f"{path} has no rows; write one per round")
    return RecordedFixes(rows)


def _row(path: Path, number: int, row: dict[str, str | None]) -> Fix | None:
    x, y = row["x"], row["y"]
    if not x and not y:
        return None
    try:
        fix = float(x or ""), float(y or "")
    except ValueError:
        raise InputError(f"{path}, line {number}: x and y must be numbers or both empty") from None
    return fix


def hear_line(lines: IO[bytes], latest: Latest, now: Callable[[], Instant]) -> str:
    """Hear one position if there is a line; return what is wrong with it, or nothing.

    A line is an object with x and y. Whatever is wrong with it is said without repeating it.
    """
    line = lines.readline(4096)
    if not line:
        latest.end()
        return ""
    fix = _parse(line)
    if fix is None:
        return 'a line of the input is no position; write {"x": 1.5, "y": 2.5}'
    latest.hear(fix, now().wall)
    return ""


def _parse(line: bytes) -> Fix | None:
    try:
        given = parse_json(line)
        x, y = given["x"], given["y"]
        numbers = type(x) in (int, float) and type(y) in (int, float)
        return (float(x), float(y)) if numbers else None
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
