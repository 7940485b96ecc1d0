"""Days folded into one: every point keeps its place, its person and its time of day."""

from collections import Counter

import pytest

from retrasyn import demo_city
from retrasyn.data.folding import folded_as
from retrasyn.data.metadata import Clock
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import InputError, SettingError
from support.folding import PER_DAY, with_clock

SHIFT = 3  # the first timestamp is at six


@pytest.fixture(scope="module")
def real():
    return with_clock(demo_city(n_users=30, n_timestamps=40, seed=3))


def points(data, times):
    users = data.user_id.tolist()
    return Counter(zip(users, times, data.x.tolist(), data.y.tolist(), strict=True))


@pytest.mark.parametrize("by", ["day", "person-day"])
def test_every_point_keeps_its_person_place_and_time_of_day(real, by):
    day = real.folded(by)

    assert points(day, day.t.tolist()) == points(real, ((real.t + SHIFT) % PER_DAY).tolist())
    assert 0 <= day.first_t <= day.last_t < PER_DAY
    assert day.clock == Clock("2026-03-01T00:00:00+00:00", 7200.0)


def test_no_stream_holds_two_days_and_none_is_cut_elsewhere(real):
    day = real.folded()

    cuts = sum(
        (begin + SHIFT + length - 1) // PER_DAY - (begin + SHIFT) // PER_DAY
        for begin, length in zip(real.begins.tolist(), real.lengths.tolist(), strict=True)
    )
    assert day.n_streams == real.n_streams + cuts
    assert cuts > 0
    assert (day.begins + day.lengths <= PER_DAY).all()


def test_a_key_is_a_person_or_the_day_of_a_person(real):
    days = {
        (user, (t + SHIFT) // PER_DAY)
        for user, t in zip(real.user_id.tolist(), real.t.tolist(), strict=True)
    }
    by_day, by_person = real.folded("person-day"), real.folded("day")

    assert len(set(by_person.fold.keys.tolist())) == len(set(real.user_id.tolist()))
    assert len(set(by_day.fold.keys.tolist())) == len(days)
    owners = zip(by_day.user_of_stream.tolist(), by_day.fold.days.tolist(), strict=True)
    assert len(set(zip(by_day.fold.keys.tolist(), owners, strict=True))) == len(days)
    assert by_day.fold.most_days == max(Counter(user for user, _ in days).values()) > 1


@pytest.mark.parametrize(
    ("period", "epoch", "says"),
    [
        (7 * 60.0, "2026-03-01T00:00:00+00:00", "does not divide a day"),
        (86_400.0, "2026-03-01T00:00:00+00:00", "does not divide a day"),
    ],
)
def test_steps_that_make_no_day_are_refused(real, period, epoch, says):
    columns = {"traj_id": [1], "t": [0], "x": [0], "y": [0], "user_id": [1]}
    data = Trajectories.from_columns(**columns, clock=Clock(epoch, period))
    with pytest.raises(InputError, match=says):
        data.folded()


def test_what_cannot_be_folded_says_what_is_missing(real):
    columns = {"traj_id": [1], "t": [0], "x": [0], "y": [0]}
    with pytest.raises(InputError, match="when timestamp 0 was"):
        Trajectories.from_columns(**columns, user_id=[1]).folded()
    with pytest.raises(InputError, match="without user_id"):
        Trajectories.from_columns(**columns, clock=real.clock).folded()
    with pytest.raises(SettingError, match="neither day nor person-day"):
        real.folded("week")


def test_data_folded_in_another_way_than_the_settings_say_are_refused(real):
    assert folded_as(real, None) is real
    day = real.folded()
    assert folded_as(day, "day") is day
    for by in (None, "person-day"):
        with pytest.raises(SettingError, match="was folded by day"):
            folded_as(day, by)
