"""A trip per stream that moves."""

import numpy as np
import pytest

from retrasyn.data.metadata import Clock
from retrasyn.errors import OutputError
from retrasyn.exports.trip_ends import TripEnds
from support.exported import CLOCK, city, plain


def test_every_stream_that_moves_is_a_trip_from_its_first_point_to_its_last():
    real = city()

    trips = TripEnds.of(real, "a test")

    moving = [s for s in range(real.n_streams) if real.lengths[s] > 1]
    assert trips.streams.tolist() == moving
    assert trips.n_still == real.n_streams - len(moving) > 0
    for place, stream in enumerate(moving):
        rows = np.flatnonzero(real.traj_id == real.stream_ids[stream])
        assert (trips.first[place], trips.last[place]) == (rows[0], rows[-1])


def test_departures_are_spread_over_their_timestamp_where_the_clock_is():
    real = city()

    trips = TripEnds.of(real, "a test")

    midnight = CLOCK.time_of(0).replace(hour=0, minute=0)
    for t in np.unique(real.begins[trips.streams]):
        seconds = trips.departures[real.begins[trips.streams] == t]
        begin = (CLOCK.time_of(int(t)) - midnight).total_seconds()
        assert begin < seconds.min()
        assert seconds.max() < begin + CLOCK.period
        assert np.allclose(np.diff(np.sort(seconds)), CLOCK.period / seconds.size)


def test_days_are_counted_from_the_first_departure():
    real = plain(t=[1000, 1001, 1001], clock=Clock("2026-05-04T00:00:00+00:00", 3600.0))
    assert TripEnds.of(real, "a test").departures.tolist() == [(1000 % 24 + 0.5) * 3600]


def test_where_nothing_moves_or_no_time_is_known_there_are_no_trips():
    with pytest.raises(OutputError, match="a test needs real times"):
        TripEnds.of(plain(), "a test")
    with pytest.raises(OutputError, match="a test needs trips"):
        TripEnds.of(plain(traj_id=[7, 8, 9], clock=CLOCK), "a test")
