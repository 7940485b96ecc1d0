"""Discretises time: raw fixes become one point per user and step (Sec. III-B)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from retrasyn.data.conversion_summary import ConversionSummary, doubts
from retrasyn.data.formats.base import Fixes
from retrasyn.data.formats.understanding import Understanding
from retrasyn.data.frames import UNIX_TIMES
from retrasyn.data.metadata import Clock
from retrasyn.data.placing import Placing
from retrasyn.data.trajectories import MAX_SPAN, MAX_TIME, Trajectories
from retrasyn.errors import InputError, SettingError
from retrasyn.space import Box, Grid

if TYPE_CHECKING:
    import numpy.typing as npt

_MICRO = 1_000_000
_UNITS = {"ms": 1e-3, "s": 1, "sec": 1, "min": 60, "h": 3600, "d": 86400}
_COMPACT = 1 << 22  # rows buffered before the next compaction
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,17})")


def discretise(
    chunks: Iterable[Fixes],
    *,
    every: float | str | None = None,
    box: Box | None = None,
    from_crs: str | None = None,
    to_crs: str | None = None,
    dense: bool = False,
    progress: Callable[[int], None] | None = None,
) -> tuple[Trajectories, ConversionSummary]:
    """Keep each user's last fix in every step and split a user's steps into streams at gaps.

    Steps are `every` seconds long (or as text: 10min) and numbered from the one that holds the
    first fix; None means that times are already steps. The box is in the coordinates of the
    result; fixes outside it are dropped before the last fix is chosen. `dense` removes steps
    without any fix from the numbering; the result then has no clock. `progress` is called with
    the number of fixes read so far. What the columns were taken for stands in the notes.
    """
    period = None if every is None else read_period(every)
    if box is not None:
        Grid(box, 1)  # rejects a box without area
    kept = _Kept(period or 1)
    place = Placing(box, from_crs, to_crs)
    alike = _Alike()
    understood: dict[Understanding, None] = {}
    n_read = 0
    for chunk in chunks:
        alike.check(chunk, period)
        n_read += chunk.n_fixes + chunk.n_skipped
        kept.n_skipped += chunk.n_skipped
        if chunk.n_fixes:
            kept.add(place(chunk))
            understood |= {} if chunk.understood is None else {chunk.understood: None}
        if progress is not None:
            progress(n_read)
    real, n_users = _streams(kept.finish(place), period, dense=dense, crs=to_crs or place.crs)
    real = replace(real, notes=tuple(map(str, understood)))
    summary = ConversionSummary(
        n_fixes=n_read,
        n_points=real.n_points,
        n_users=n_users,
        n_streams=real.n_streams,
        mean_length=real.n_points / real.n_streams,
        n_timestamps=real.last_t - real.first_t + 1,
        n_outside=place.n_outside,
        n_duplicates=n_read - kept.n_skipped - place.n_outside - place.n_lost - real.n_points,
        n_skipped=kept.n_skipped,
        n_unprojectable=place.n_lost,
        understood=tuple(understood),
    )
    return real, replace(summary, warnings=tuple(doubts(real, summary)))


def read_period(every: float | str) -> int:
    """Return the length of a step in microseconds.

    >>> read_period("10min"), read_period(1.5)
    (600000000, 1500000)
    """
    text = every.strip() if isinstance(every, str) else f"{every:f}"
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|sec|min|h|d)?", text)
    period = round(float(match[1]) * _UNITS[match[2] or "s"] * _MICRO) if match else 0
    if not _MICRO // 1000 <= period <= 366 * 86400 * _MICRO:
        raise SettingError(
            f"a step of {text!r} is not a length of time from 1 ms to a year; write 30s, 10min, 1h"
        )
    return period


@dataclass(slots=True)
class _Alike:
    """Rejects chunks that are incompatible with each other."""

    first: Fixes | None = None
    zoned: Fixes | None = None  # first chunk known to have, or to lack, UTC offsets

    def check(self, chunk: Fixes, period: int | None) -> None:
        """Reject a chunk whose columns mean something else than those of the first chunk."""
        if not chunk.n_fixes:
            return
        if chunk.kind == "instants" and period is None:
            raise SettingError(
                f'{chunk.path} has clock times; say how long a step is, for example `every="10min"`'
            )
        if chunk.kind == "steps" and period is not None:
            raise SettingError(f"{chunk.path} counts time in steps already; leave `every` away")
        first = self.first = self.first or chunk
        if chunk.crs != first.crs:
            raise InputError(
                f"{chunk.path} is in {chunk.crs}, {first.path} in {first.crs}; "
                "convert them one by one, or say `from_crs` if both are the same"
            )
        if chunk.zoned is None:
            return
        self.zoned = self.zoned or chunk
        if chunk.zoned != self.zoned.zoned:
            has, had = ("an", "none") if chunk.zoned else ("no", "one")
            raise InputError(
                f"{chunk.path} has times with {has} offset, earlier ones in {self.zoned.path} "
                f"have {had}; write all alike"
            )


@dataclass(slots=True)
class _Kept:
    """The last fix of every user and step so far; memory grows with these, not with the fixes."""

    period: int
    n_skipped: int = 0
    _tables: list[pa.Table] = field(default_factory=list)
    _n_rows: int = 0
    _n_compact: int = 0  # rows left after the last compaction

    def add(self, table: pa.Table) -> None:
        """Add a chunk, reduced to the last fix of each user and step."""
        if not table.num_rows:
            return
        reduced = _last_of_steps(table.combine_chunks(), self.period)
        self._tables.append(reduced)
        self._n_rows += reduced.num_rows
        # doubling: each row is compacted a bounded number of times on average
        if self._n_rows > 2 * self._n_compact + _COMPACT:
            self._compact()

    def finish(self, place: Placing) -> pa.Table:
        """Return all rows, sorted by user and time."""
        if not self._n_rows:
            raise InputError(
                f"no fixes are left ({self.n_skipped:,} lines skipped, {place.n_outside:,} fixes "
                f"outside the box, {place.n_lost:,} without a place in the projection)"
            )
        self._compact()
        return self._tables.pop()

    def _compact(self) -> None:
        # One copy at a time: each line frees the result of the one before it.
        joined = pa.concat_tables(self._tables).unify_dictionaries()
        self._tables.clear()
        joined = joined.combine_chunks()
        joined = _last_of_steps(joined, self.period)
        self._tables.append(joined)
        pa.default_memory_pool().release_unused()
        self._n_rows = self._n_compact = self._tables[0].num_rows


def _last_of_steps(table: pa.Table, period: int) -> pa.Table:
    """Return the last row of every (user, step), sorted by user and time.

    Ties in time go to the row that comes later in the file.
    """
    user, time = _codes(table, "user"), _numbers(table, "time")
    order = None
    ascending = (user[1:] > user[:-1]) | ((user[1:] == user[:-1]) & (time[1:] >= time[:-1]))
    if not ascending.all():
        order = np.lexsort((time, user))  # stable
        user, time = user[order], time[order]
    step = time if period == 1 else time // period
    last = np.append((user[1:] != user[:-1]) | (step[1:] != step[:-1]), np.True_)
    if order is None and last.all():
        return table
    rows = np.flatnonzero(last) if order is None else order[last]
    return table.take(pa.array(rows))


def _streams(
    table: pa.Table, period: int | None, *, dense: bool, crs: str | None
) -> tuple[Trajectories, int]:
    """Number the steps, split streams at gaps and trip ends, and assign user identifiers."""
    x, y = (np.array(table[name].to_numpy()) for name in ("x", "y"))  # writable copies
    table = table.drop_columns(["x", "y"])
    user, trip = _codes(table, "user"), _codes(table, "trip")
    texts = table["user"].chunk(0).dictionary.to_numpy(zero_copy_only=False).astype(str)
    step, clock = _numbered(_numbers(table, "time"), period)
    del table  # frees the times
    if dense:
        used, numbered = np.unique(step, return_inverse=True)
        if used.size != used[-1] - used[0] + 1:
            clock = None  # step numbers no longer follow the clock
            step = numbered + (0 if period else int(used[0]))
    _refuse_span(step)
    same = (user[1:] == user[:-1]) & (trip[1:] == trip[:-1]) & (np.diff(step) == 1)
    starts = np.concatenate([[0], np.flatnonzero(~same) + 1, [user.size]]).astype(np.int64)
    del trip, same
    users, labels, n_users = _named(user[starts[:-1]], texts)
    begins = step[starts[:-1]]
    del user, step
    real = Trajectories(
        stream_ids=np.arange(starts.size - 1),
        begins=begins,
        starts=starts,
        x=x,
        y=y,
        user_of_stream=users,
        labels=labels,
        clock=clock,
        crs=crs,
    )
    return real, n_users


def _numbered(
    time: npt.NDArray[np.int64], period: int | None
) -> tuple[npt.NDArray[np.int64], Clock | None]:
    """Return the step of every time, and the clock of the steps."""
    if period is None:
        if int(time.min()) >= UNIX_TIMES:
            raise SettingError(
                f"times begin at {int(time.min())}, which looks like a Unix time; say how long a "
                'step is, for example `every="10min"`'
            )
        return time.astype(np.int64), None
    step = time // period
    first = int(step.min())
    try:
        epoch = _EPOCH + dt.timedelta(microseconds=first * period)
    except OverflowError:
        raise InputError(
            f"the first time is {first * period / _MICRO:.3g} seconds from 1970, beyond the "
            "calendar; are the numbers in the time column Unix times?"
        ) from None
    return step - first, Clock(epoch.isoformat(), period / _MICRO)


def _refuse_span(step: npt.NDArray[np.int64]) -> None:
    first, last = int(step.min()), int(step.max())
    if last - first >= MAX_SPAN or max(abs(first), abs(last)) > MAX_TIME:
        raise InputError(
            f"times span steps {first:,} to {last:,}, more than {MAX_SPAN:,}; choose a longer "
            "`every`, or look for a stray date"
        )


def _named(
    codes: npt.NDArray[np.int32], texts: npt.NDArray[np.str_]
) -> tuple[npt.NDArray[np.int64], dict[str, npt.NDArray[Any]], int]:
    """Return users as integers if all are written as such, otherwise coded in sorted order."""
    used, rows = np.unique(codes, return_inverse=True)
    texts = texts[used]
    if all(_WHOLE.fullmatch(text) for text in texts.tolist()):
        return texts.astype(np.int64)[rows], {}, used.size
    names, rank = np.unique(texts, return_inverse=True)
    return rank[rows].astype(np.int64), {"user_id": names}, used.size


def _codes(table: pa.Table, name: str) -> npt.NDArray[np.int32]:
    return table[name].chunk(0).indices.to_numpy()  # type: ignore[no-any-return]


def _numbers(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    return table[name].to_numpy()  # type: ignore[no-any-return]
