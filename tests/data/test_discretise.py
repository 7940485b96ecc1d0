"""From fixes at any time to one point per user and step."""

import datetime as dt
import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.data import Trajectories
from retrasyn.data.discretise import discretise, read_period
from retrasyn.data.formats import Options, read_fixes
from retrasyn.data.formats.base import Fixes, labels
from retrasyn.data.metadata import Clock
from retrasyn.errors import InputError, MissingExtra, SettingError
from retrasyn.space import Box

MINUTE = 60_000_000


def chunk(rows, *, trips=None, **more):
    """Make a chunk of (user, time, x, y) rows."""
    users, times, x, y = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Fixes(
        user=labels(pa.array([str(user) for user in users], pa.string())),
        time=np.array(times, np.int64),
        x=np.array(x, np.float64),
        y=np.array(y, np.float64),
        trip=None if trips is None else labels(pa.array(trips, pa.string())),
        **more,
    )


def points_of(real):
    """Return (user, stream, t, x, y) of every point, users as written."""
    users = [real.name("user_id", int(user)) for user in real.user_id]
    columns = (users, real.traj_id.tolist(), real.t.tolist(), real.x.tolist(), real.y.tolist())
    return list(zip(*columns, strict=True))


def plain_loop(rows, trips, period, box, *, dense):
    """Return what discretise must give: {(user, step): (x, y)} and the streams as sets of these."""
    inside = [
        (row, trip)
        for row, trip in zip(rows, trips, strict=True)
        if box is None or (box[0] <= row[2] <= box[2] and box[1] <= row[3] <= box[3])
    ]
    best = {}
    for (user, time, x, y), trip in inside:
        key = user, time // period
        if key not in best or time >= best[key][0]:
            best[key] = time, x, y, trip
    steps = sorted({step for _, step in best})
    numbers = {step: i for i, step in enumerate(steps)}
    first = steps[0] if steps else 0
    number = numbers.get if dense else lambda step: step - first
    streams = []
    before = None
    for user, step in sorted(best):
        _, x, y, trip = best[user, step]
        if before is None or before != (user, number(step) - 1, trip):
            streams.append([])
        streams[-1].append((str(user), number(step), x, y))
        before = user, number(step), trip
    return sorted(streams), len(rows) - len(inside), len(inside) - len(best)


fixes = st.tuples(
    st.integers(0, 4), st.integers(-50, 50), st.integers(0, 9).map(float), st.integers(0, 9)
)


@given(
    rows=st.lists(fixes, min_size=1, max_size=60),
    n_trips=st.integers(1, 3),
    cuts=st.lists(st.integers(0, 60), max_size=4),
    period=st.integers(1, 20),
    box=st.none() | st.just((2.0, 0.0, 7.0, 8.0)),
    dense=st.booleans(),
    compact=st.integers(0, 30),
)
def test_the_result_is_that_of_a_plain_loop(rows, n_trips, cuts, period, box, dense, compact):
    trips = [str(i % n_trips) for i in range(len(rows))]
    streams, n_outside, n_duplicates = plain_loop(rows, trips, period, box, dense=dense)
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    slower = [(user, time * 1000, x, y) for user, time, x, y in rows]  # in milliseconds
    chunks = [chunk(slower[a:b], trips=trips[a:b]) for a, b in pairwise(edges)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retrasyn.data.discretise._COMPACT", compact)
        extent = None if box is None else Box(*box)
        if not streams:
            with pytest.raises(InputError, match="no fixes are left"):
                discretise(chunks, every=f"{period}ms", box=extent, dense=dense)
            return
        real, summary = discretise(chunks, every=f"{period}ms", box=extent, dense=dense)

    found = {}
    for user, stream, t, x, y in points_of(real):
        found.setdefault(stream, []).append((user, t, x, y))
    assert sorted(found.values()) == streams
    assert (summary.n_outside, summary.n_duplicates) == (n_outside, n_duplicates)
    assert summary.n_fixes == len(rows)
    assert summary.n_users == len({stream[0][0] for stream in streams})
    again = Trajectories.from_columns(
        traj_id=real.traj_id, t=real.t, x=real.x, y=real.y, user_id=real.user_id
    )  # keeps every rule
    assert np.array_equal(again.starts, real.starts)


def test_steps_are_numbered_from_the_one_with_the_first_fix():
    start = int(dt.datetime(2008, 2, 2, 13, 34, tzinfo=dt.UTC).timestamp()) * 1_000_000
    rows = [(1, start, 0, 0), (1, start + 7 * MINUTE, 1, 1), (1, start + 16 * MINUTE, 2, 2)]

    real, summary = discretise([chunk(rows)], every="10min")

    assert points_of(real) == [("1", 0, 0, 0, 0), ("1", 0, 1, 1, 1), ("1", 0, 2, 2, 2)]
    assert real.clock == Clock("2008-02-02T13:30:00+00:00", 600.0)
    assert summary.n_timestamps == 3
    assert summary.mean_length == 3


def test_of_two_fixes_at_the_same_time_the_later_in_the_file_is_kept():
    rows = [("a", 5, 1, 1), ("a", 9, 2, 2), ("a", 9, 3, 3), ("a", 1, 4, 4)]

    real, summary = discretise([chunk(rows[:2]), chunk(rows[2:])], every=1)

    assert real.x.tolist() == [3]
    assert summary.n_duplicates == 3


def test_a_user_who_is_missing_for_a_step_begins_another_stream():
    rows = [("b", 0, 1, 1), ("b", MINUTE, 1, 1), ("b", 3 * MINUTE, 1, 1), ("a", 0, 1, 1)]

    real, summary = discretise([chunk(rows)], every="1min")

    assert [row[:3] for row in points_of(real)] == [
        ("b", 0, 0),
        ("b", 0, 1),
        ("b", 1, 3),
        ("a", 2, 0),
    ]
    assert (summary.n_users, summary.n_streams) == (2, 3)


def test_dense_numbers_empty_steps_away_and_then_has_no_clock():
    rows = [(1, 0, 0, 0), (1, 5 * MINUTE, 1, 1), (2, 6 * MINUTE, 1, 1)]

    real, _ = discretise([chunk(rows)], every="1min", dense=True)
    full, _ = discretise([chunk(rows[:1])], every="1min", dense=True)

    assert [row[:3] for row in points_of(real)] == [("1", 0, 0), ("1", 0, 1), ("2", 1, 2)]
    assert real.clock is None
    assert full.clock == Clock("1970-01-01T00:00:00+00:00", 60.0)


def test_steps_pass_through():
    rows = [(7, 3, 0, 0), (7, 4, 1, 1), (9, 4, 2, 2)]

    real, _ = discretise([chunk(rows, kind="steps")])

    assert points_of(real) == [("7", 0, 3, 0, 0), ("7", 0, 4, 1, 1), ("9", 1, 4, 2, 2)]
    assert real.clock is None
    assert real.labels == {}


@pytest.mark.parametrize(
    ("users", "texts"), [(["7", "12"], False), (["07", "7"], True), (["a", "7"], True)]
)
def test_users_are_numbers_only_where_all_are_written_as_such(users, texts):
    real, _ = discretise([chunk([(user, 0, 1, 1) for user in users])], every=1)

    assert [row[0] for row in points_of(real)] == users
    assert bool(real.labels) == texts


@pytest.mark.parametrize(
    ("every", "micros"),
    [
        ("10min", 600_000_000),
        ("30s", 30_000_000),
        ("1h", 3_600_000_000),
        ("1.5 h", 5_400_000_000),
        ("1d", 86_400_000_000),
        ("250ms", 250_000),
        (90, 90_000_000),
        ("90", 90_000_000),
        (0.25, 250_000),
    ],
)
def test_a_period_is_read(every, micros):
    assert read_period(every) == micros


@pytest.mark.parametrize(
    "every", ["", "soon", "0", "-5min", "10 minutes", 0, "nan", "9999d", "1e3"]
)
def test_a_period_that_is_none_is_refused(every):
    with pytest.raises(SettingError, match="10min"):
        read_period(every)


def test_clock_times_need_a_period_and_steps_need_none():
    with pytest.raises(SettingError, match="for example `every="):
        discretise([chunk([(1, 0, 0, 0)])])
    with pytest.raises(SettingError, match="leave `every` away"):
        discretise([chunk([(1, 0, 0, 0)], kind="steps")], every=1)


def test_chunks_that_do_not_go_together_are_refused():
    rows = [(1, 0, 0, 0)]
    with pytest.raises(InputError, match="EPSG:3857"):
        discretise([chunk(rows, crs="EPSG:4326"), chunk(rows, crs="EPSG:3857")], every=1)
    with pytest.raises(InputError, match="offset"):
        discretise([chunk(rows, zoned=True), chunk(rows, zoned=False)], every=1)


def test_a_stray_date_is_refused():
    rows = [(1, 0, 0, 0), (1, 2_000_000_000 * 1_000_000, 0, 0)]

    with pytest.raises(InputError, match="stray"):
        discretise([chunk(rows)], every="1s")
    with pytest.raises(InputError, match="calendar"):
        discretise([chunk([(1, 9 * 10**18, 0, 0)])], every="1s")


def test_a_box_without_area_is_refused():
    with pytest.raises(SettingError, match="no area"):
        discretise([chunk([(1, 0, 0, 0)])], every=1, box=Box(1, 0, 0, 1))


# Coordinate systems


def test_degrees_stay_degrees_unless_projected():
    rows = [(1, 0, 116.4, 39.9)]

    real, _ = discretise([chunk(rows, crs="EPSG:4326")], every=1)
    assert (real.crs, real.x[0], real.y[0]) == ("EPSG:4326", 116.4, 39.9)

    real, _ = discretise([chunk(rows, crs="EPSG:4326")], every=1, to_crs="EPSG:3857")
    assert real.crs == "EPSG:3857"
    assert real.x[0] == pytest.approx(np.radians(116.4) * 6378137)
    assert real.y[0] == pytest.approx(
        6378137 * np.log(np.tan(np.pi / 4 + np.radians(39.9) / 2)), rel=1e-9
    )


def test_the_box_is_in_the_coordinates_of_the_result():
    rows = [(1, 0, 0.0, 0.0), (2, 0, 10.0, 0.0), (3, 0, 0.0, 90.0)]

    real, summary = discretise(
        [chunk(rows)],
        every=1,
        from_crs="EPSG:4326",
        to_crs="EPSG:3857",
        box=Box(-1e5, -1e5, 1e5, 1e5),
    )

    assert [row[0] for row in points_of(real)] == ["1"]
    assert summary.n_outside + summary.n_unprojectable == 2


def test_projecting_needs_a_known_system():
    with pytest.raises(SettingError, match="`from_crs`"):
        discretise([chunk([(1, 0, 0, 0)])], every=1, to_crs="EPSG:3857")
    with pytest.raises(SettingError, match="nowhere"):
        discretise([], every=1, from_crs="nowhere", to_crs="EPSG:3857")


def test_without_pyproj_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyproj", None)

    with pytest.raises(MissingExtra, match=r'pip install "retrasyn\[geo\]"'):
        discretise([], every=1, from_crs="EPSG:4326", to_crs="EPSG:3857")


def test_lines_skipped_are_counted(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("id,t,x,y\na,2020-01-01,1,2\na,soon,1,2\nb,2020-01-01,1\n")

    _, summary = discretise(read_fixes(path, "csv", Options(on_error="skip")), every=1)

    assert (summary.n_fixes, summary.n_points, summary.n_skipped) == (3, 1, 2)
    path.write_text("id,t,x,y\na,soon,1,2\n")
    with pytest.raises(InputError, match="no fixes are left"):
        discretise(read_fixes(path, "csv", Options(on_error="skip")), every=1)
