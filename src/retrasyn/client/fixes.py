"""Position sources: a fixed position, the rows of a file, or the latest fix received.

A source is read once per round. None means that there is no fix, which makes a null report.
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
"""Milliseconds by which a fix may lie in the future, to allow for inexact phone clocks."""


class FixSource(Protocol):
    """A source of this device's positions."""

    def at(self, wall: int, *, period: int) -> Fix | None:
        """Return the position at `wall` (milliseconds since 1970); `period` is in seconds."""
        ...  # pragma: no cover - a protocol has no body

    def next_round(self) -> bool:
        """Advance to the next round; False if the owner stops sharing."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(frozen=True, slots=True)
class StandingStill:
    """A source that always returns the same position."""

    fix: Fix = field(repr=False)

    def at(self, wall: int, *, period: int) -> Fix | None:
        """Return the fixed position."""
        del wall, period
        return self.fix

    def next_round(self) -> bool:
        """Return True: sharing never stops."""
        return True


@dataclass(slots=True)
class RecordedFixes:
    """A source with one row per round; None is a round without a fix."""

    rows: list[Fix | None] = field(repr=False)
    _place: int = -1

    def at(self, wall: int, *, period: int) -> Fix | None:
        """Return the current round's row."""
        del wall, period
        return self.rows[self._place] if 0 <= self._place < len(self.rows) else None

    def next_round(self) -> bool:
        """Advance to the next row; False after the last."""
        self._place += 1
        return self._place < len(self.rows)


@dataclass(slots=True)
class Latest:
    """The latest fix received, valid for one period; older and future fixes are not used.

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
        """Store a fix and its time, unless it is older than the current one."""
        with self._lock:
            if taken >= self._taken or self._fix is None:
                self._fix, self._taken = fix, taken

    def end(self) -> None:
        """Signal that no more fixes will come."""
        self._over = True

    def at(self, wall: int, *, period: int) -> Fix | None:
        """Return the latest fix if it is at most one period old."""
        with self._lock:
            fresh = wall - period * 1000 <= self._taken <= wall + AHEAD
            return self._fix if fresh else None

    def next_round(self) -> bool:
        """Return whether more fixes may come."""
        return not self._over


def read_place(text: str) -> Fix:
    """Parse a position given as ``x,y``.

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
    """Read columns x and y of a CSV file, one row per round."""
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
    """Read one line into `latest`; return an error message, or an empty string.

    A line is a JSON object with x and y. Error messages never repeat its content.
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
