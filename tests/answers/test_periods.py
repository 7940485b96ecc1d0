"""Periods begin at midnight of the clock, spans say what they lack."""

import numpy as np
import pytest

from retrasyn.answers.periods import Periods, span_of
from retrasyn.data.metadata import Clock
from retrasyn.errors import InputError, SettingError

CLOCK = Clock("2026-05-04T22:00:00+02:00", 3600.0)
QUARTERS = Clock("2026-05-04T08:05:00+00:00", 600.0)


def test_without_a_length_there_is_one_period():
    found = Periods.along(range(3, 9), None, CLOCK)

    assert (found.n_periods, found.sizes.tolist(), found.labels) == (1, [6], {})


def test_lengths_of_time_begin_at_midnight_where_the_clock_is():
    found = Periods.along(range(50), "day", CLOCK)

    assert found.sizes.tolist() == [2, 24, 24]
    assert found.labels["t"].tolist() == [0, 2, 26]
    assert found.labels["time"][1] == np.datetime64("2026-05-04T22:00:00")  # midnight in +02:00


def test_a_timestamp_belongs_to_the_period_in_which_it_begins():
    found = Periods.along(range(6), "15min", QUARTERS)  # 08:05, 08:15, 08:25, 08:35, 08:45, 08:55

    assert found.of_timestamp.tolist() == [0, 1, 1, 2, 3, 3]


def test_numbers_count_timestamps_from_timestamp_0():
    assert Periods.along(range(4, 15), "6", CLOCK).sizes.tolist() == [2, 6, 3]


def test_what_is_beyond_the_span_is_in_no_period():
    found = Periods.along(range(4, 9), 2, None)

    assert found.locate(np.array([3, 4, 5, 6, 8, 9])).tolist() == [-1, 0, 0, 1, 2, -1]


def test_the_time_of_day_has_no_day():
    found = Periods.of_day(range(50), "12h", CLOCK)

    assert found.labels["time_of_day"].tolist() == ["00:00", "12:00"]
    assert found.of_timestamp[:4].tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (None, None, (0, 49)),
        (3, 7, (3, 7)),
        ("3", "7", (3, 7)),
        (-5, 700, (0, 49)),
        ("2026-05-05T00:00", "2026-05-05T06:00", (2, 7)),
        ("2026-05-04T22:00Z", None, (2, 49)),
        ("2026-05-04T22:30", "2026-05-04T23:01", (1, 1)),
    ],
)
def test_a_span_is_of_timestamps_or_of_times(start, end, expected):
    found = span_of(0, 49, start, end, CLOCK)

    assert (found.start, found.stop - 1) == expected


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        (50, None, r"no timestamps from 50: .* from 0 \(2026-05-04T22:00:00\+02:00\) to 49 "),
        (5, 4, "no timestamps from 5 to 4"),
        (None, "2026-05-04", "no timestamps to 2026-05-04"),
    ],
)
def test_an_empty_span_says_what_there_is(start, end, message):
    with pytest.raises(InputError, match=message):
        span_of(0, 49, start, end, CLOCK)


@pytest.mark.parametrize(
    ("clock", "start", "message"),
    [
        (CLOCK, "soon", "'soon' is neither a timestamp nor a time"),
        (None, "2026-05-04", "it is not known when timestamp 0 was; give timestamps"),
    ],
)
def test_a_wrong_start_is_refused(clock, start, message):
    with pytest.raises(SettingError, match=message):
        span_of(0, 49, start, None, clock)


@pytest.mark.parametrize(
    ("by", "clock", "message"),
    [
        ("1h", None, "needs a clock"),
        ("30min", CLOCK, "`by=30min` is shorter than a timestamp, which is 3600 s"),
        ("often", CLOCK, "'often' is not a length of time"),
        (0, CLOCK, "`by=0` is not a number of timestamps"),
    ],
)
def test_a_wrong_length_is_refused(by, clock, message):
    with pytest.raises(SettingError, match=message):
        Periods.along(range(9), by, clock)


@pytest.mark.parametrize(("by", "clock"), [("6", CLOCK), (6, CLOCK), (None, None)])
def test_a_profile_needs_times(by, clock):
    with pytest.raises(SettingError, match=r"is no part of a day|needs a clock"):
        Periods.of_day(range(9), by, clock)
