"""Many days folded into one: every day of a person becomes streams of their own on one day."""

from __future__ import annotations

import dataclasses
import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from retrasyn.data.metadata import Clock
from retrasyn.errors import InputError, SettingError

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories

Fold = Literal["day", "person-day"]
"""Whose budget folded days share: the person's, or every day of a person has one of its own."""
_DAY = 86_400.0


@dataclass(frozen=True, slots=True, eq=False)
class Folding:
    """What is behind streams that were folded. A person has several of them at a time."""

    by: Fold
    days: npt.NDArray[np.int64]  # [n_streams], from the first day of the recording
    keys: npt.NDArray[np.int64]  # [n_streams], of the person, or of the day of a person
    most_days: int  # of one person


def folded(real: Trajectories, by: Fold = "day") -> Trajectories:
    """Fold all days into one; days begin at midnight of the clock, streams are cut there.

    >>> from retrasyn import Trajectories
    >>> clock = Clock("2026-01-01T12:00:00+00:00", 21_600.0)
    >>> real = Trajectories.from_columns(
    ...     traj_id=[1, 1, 1], t=[0, 1, 2], x=[0, 1, 2], y=[0, 0, 0], user_id=[5, 5, 5], clock=clock
    ... )
    >>> day = folded(real)
    >>> day.begins.tolist(), day.lengths.tolist(), day.fold.days.tolist(), day.clock.epoch
    ([2, 0], [2, 1], [0, 1], '2026-01-01T00:00:00+00:00')
    """
    if by not in ("day", "person-day"):
        raise SettingError(f"fold={by!r} is neither day nor person-day")
    if real.clock is None:
        raise InputError(
            "days cannot be folded: it is not known when timestamp 0 was; convert raw positions "
            "with `every`, which keeps the clock"
        )
    if real.user_of_stream is None:
        raise InputError(
            "days cannot be folded without user_id: nobody could tell which of them are of one "
            "person, whose budget they share"
        )
    per_day, before, clock = whole_day(real.clock)
    t = real.t + before  # [n_points], from the midnight before the first timestamp
    begins_here = t % per_day == 0
    begins_here[real.starts[:-1]] = True
    first = np.flatnonzero(begins_here)  # [n_streams], rows
    whole = np.searchsorted(real.starts, first, side="right") - 1
    users, days = real.user_of_stream[whole], t[first] // per_day
    pairs, keys = np.unique(np.stack([users, days], axis=1), axis=0, return_inverse=True)
    return dataclasses.replace(
        real,
        stream_ids=np.arange(first.size),
        begins=t[first] % per_day,
        starts=np.append(first, real.n_points).astype(np.int64),
        user_of_stream=users,
        labels={name: text for name, text in real.labels.items() if name == "user_id"},
        clock=clock,
        fold=Folding(
            by=by,
            days=days,
            keys=users if by == "day" else keys.reshape(-1).astype(np.int64),
            most_days=int(np.unique(pairs[:, 0], return_counts=True)[1].max()),
        ),
    )


def folded_as(real: Trajectories, by: Fold | None) -> Trajectories:
    """Return data as settings say; data folded before must have been folded in that way."""
    if real.fold is None:
        return real if by is None else folded(real, by)
    if real.fold.by != by:
        raise SettingError(
            f"the data was folded by {real.fold.by}, the settings say {by or 'no fold'}; give the "
            "data as it was recorded, and fold beside it"
        )
    return real


def whole_day(clock: Clock) -> tuple[int, int, Clock]:
    """Return the timestamps of a day, those from midnight to timestamp 0, and the day's clock."""
    per_day = round(_DAY / clock.period)
    if per_day < 2 or abs(per_day * clock.period - _DAY) > 1e-6:  # noqa: PLR2004 - one is no day
        raise InputError(
            f"a step of {clock.period:g} s does not divide a day into equal parts; convert with "
            "an `every` that does, such as 10min or 1h"
        )
    begin = dt.datetime.fromisoformat(clock.epoch)
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    before = int((begin - midnight).total_seconds() // clock.period)
    epoch = begin - dt.timedelta(seconds=before * clock.period)
    return per_day, before, Clock(epoch.isoformat(), clock.period)
