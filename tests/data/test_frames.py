"""Frames of other libraries in and out."""

import importlib
import sys
import warnings

import duckdb
import geopandas
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrasyn
from retrasyn.data import Trajectories
from retrasyn.data.converting import ConversionWarning
from retrasyn.data.metadata import Clock
from retrasyn.errors import InputError, MissingExtra, OutputError, SettingError
from support.streams import recordings

CLOCK = Clock("2008-02-02T08:00:00+08:00", 600.0)
COLUMNS = {
    "traj_id": [3, 3, 3, 8, 8],
    "t": [0, 1, 2, 1, 2],
    "x": [0.1, 0.2, 0.3, 0.8, 0.9],
    "y": [0.1, 0.1, 0.2, 0.7, 0.7],
}


def relation(columns):
    table = pa.table(columns)
    return duckdb.connect().from_arrow(table)


MAKERS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "record batch": pa.record_batch,
    "duckdb": relation,
}
every_library = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def assert_same(one, other):
    for name in ("stream_ids", "begins", "starts", "x", "y", "user_of_stream"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


@pytest.fixture
def known():
    return Trajectories.from_columns(**COLUMNS, clock=CLOCK, crs="EPSG:4326")


# In


@every_library
def test_a_frame_gives_what_its_columns_give(make):
    assert_same(Trajectories.from_frame(make(COLUMNS)), Trajectories.from_columns(**COLUMNS))


@every_library
def test_columns_may_have_other_names(make):
    frame = make(
        {
            "id": COLUMNS["traj_id"],
            "step": COLUMNS["t"],
            "lon": COLUMNS["x"],
            "lat": COLUMNS["y"],
            "uid": ["Ann"] * 3 + ["Zoë"] * 2,
        }
    )

    real = Trajectories.from_frame(
        frame, traj_id="id", t="step", x="lon", y="lat", user_id="uid", clock=CLOCK, crs="EPSG:4326"
    )

    assert_same(real, Trajectories.from_columns(**COLUMNS, user_id=[0, 0, 0, 1, 1]))
    assert real.labels["user_id"].tolist() == ["Ann", "Zoë"]
    assert (real.clock, real.crs) == (CLOCK, "EPSG:4326")


@every_library
def test_text_identifiers_keep_their_names(make):
    frame = make({**COLUMNS, "traj_id": ["tram"] * 3 + ["bus"] * 2})

    real = Trajectories.from_frame(frame)

    assert real.labels["traj_id"].tolist() == ["bus", "tram"]


def test_users_can_be_left_aside():
    frame = pa.table({**COLUMNS, "user_id": [1, 1, 1, 2, 2]})

    assert Trajectories.from_frame(frame).user_of_stream.tolist() == [1, 2]
    assert Trajectories.from_frame(frame, user_id=None).user_of_stream is None


def test_a_filtered_pandas_frame_is_read_without_its_index():
    frame = pd.DataFrame(COLUMNS, index=list("abcde"))

    real = Trajectories.from_frame(frame[frame["traj_id"] == 8])

    assert real.traj_id.tolist() == [8, 8]


def test_points_of_a_geodataframe_stand_for_x_and_y():
    points = geopandas.points_from_xy(COLUMNS["x"], COLUMNS["y"], crs="EPSG:25832")
    columns = {name: COLUMNS[name] for name in ("traj_id", "t")}

    real = Trajectories.from_frame(geopandas.GeoDataFrame(columns, geometry=points))

    assert_same(real, Trajectories.from_columns(**COLUMNS))
    assert real.crs == "EPSG:25832"


def test_what_does_not_speak_arrow_is_refused():
    with pytest.raises(InputError, match="dict does not speak the Arrow interface"):
        Trajectories.from_frame(COLUMNS)


def test_a_missing_column_is_named_with_those_that_are_there():
    with pytest.raises(InputError, match=r"no column lon \(it has traj_id, t, x, y\)"):
        Trajectories.from_frame(pa.table(COLUMNS), x="lon")


def test_a_missing_user_column_is_refused_when_it_was_named():
    with pytest.raises(InputError, match="no column uid"):
        Trajectories.from_frame(pa.table(COLUMNS), user_id="uid")


@every_library
def test_an_empty_cell_is_named(make):
    with pytest.raises(InputError, match=r"column t (is empty|holds nan) in row 2"):
        Trajectories.from_frame(make({**COLUMNS, "t": [0, None, 2, 1, 2]}))


# Raw positions

RAW = {
    "user_id": ["Ann", "Ann", "Ann", "Zoë"],
    "time": ["2020-01-01 00:00", "2020-01-01 00:04", "2020-01-01 00:12", "2020-01-01 00:05"],
    "lon": [116.1, 116.2, 116.3, 116.4],
    "lat": [39.1, 39.2, 39.3, 39.4],
    "speed": [1, 2, 3, 4],
}


def stamped(columns):
    return {**columns, "time": pd.to_datetime(columns["time"])}


def geoframe(crs=4326):
    data = pd.DataFrame(stamped(RAW))
    points = geopandas.points_from_xy(data.lon, data.lat, crs=crs)
    return geopandas.GeoDataFrame(data.drop(columns=["lon", "lat"]), geometry=points)


def collection():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it uses what pandas will drop
        frame = geoframe().assign(stretch=[1, 1, 1, 2])
        return importlib.import_module("movingpandas").TrajectoryCollection(
            pd.concat([frame, frame.iloc[3:].assign(time=frame.time[3] + pd.Timedelta("1min"))]),
            "stretch",
            t="time",
        )


RAW_MAKERS = {
    "pandas": lambda: pd.DataFrame(stamped(RAW)),
    "pandas, texts": lambda: pd.DataFrame(RAW),
    "pandas, times in its index": lambda: pd.DataFrame(stamped(RAW)).set_index("time"),
    "pandas, times in a nameless index": lambda: (
        pd.DataFrame(RAW).set_index(pd.to_datetime(RAW["time"])).drop(columns="time")
    ),
    "pandas, categories": lambda: pd.DataFrame(stamped(RAW)).astype({"user_id": "category"}),
    "polars": lambda: pl.DataFrame(stamped(RAW)),
    "polars, lazy": lambda: pl.LazyFrame(stamped(RAW)),
    "pyarrow": lambda: pa.table(stamped(RAW)),
    "duckdb": lambda: relation(stamped(RAW)),
    "geopandas": geoframe,
    "geopandas, times in its index": lambda: geoframe().set_index("time"),
    "movingpandas": collection,
}


@pytest.mark.parametrize("make", RAW_MAKERS.values(), ids=RAW_MAKERS)
@pytest.mark.parametrize("read", [Trajectories.from_frame, retrasyn.convert])
def test_clock_times_of_every_library_become_steps(read, make):
    real = read(make(), every="10min")

    assert real.labels["user_id"].tolist() == ["Ann", "Zoë"]
    assert real.x.tolist() == [116.2, 116.3, 116.4]
    assert real.t.tolist() == [0, 1, 0]
    assert (real.clock, real.crs) == (Clock("2020-01-01T00:00:00+00:00", 600), "EPSG:4326")
    assert real.notes[0].startswith("user = user_id, ")
    assert "time = time (UTC)" in real.notes[0]


def test_columns_may_be_named_zone_and_box_given():
    frame = pd.DataFrame(stamped(RAW)).rename(columns={"user_id": "a", "time": "b", "lon": "c"})

    real = Trajectories.from_frame(
        frame,
        user="a",
        time="b",
        x="c",
        y="lat",
        every="10min",
        timezone="Asia/Shanghai",
        box=(116, 39, 117, 39.35),
    )

    assert real.x.tolist() == [116.2, 116.3]
    assert real.clock == Clock("2019-12-31T16:00:00+00:00", 600)


def test_what_was_understood_stands_in_the_notes():
    real = Trajectories.from_frame(pd.DataFrame(stamped(RAW)), every="10min")

    assert real.notes == (
        "user = user_id, time = time (UTC), x = lon, y = lat (EPSG:4326); not used: speed",
    )


@pytest.mark.parametrize("name", ["trip_id", "id", "traj_id"])
@pytest.mark.parametrize("read", [Trajectories.from_frame, retrasyn.convert])
def test_a_guessed_user_is_a_warning_that_one_word_confirms(name, read):
    frame = pd.DataFrame(stamped(RAW)).rename(columns={"user_id": name})

    with pytest.warns(ConversionWarning, match=f"user = {name} is a guess") as caught:
        read(frame, every="10min")
    assert caught[0].filename == __file__
    assert f'user="{name}"' in str(caught[0].message)
    read(frame, every="10min", user=name)  # a warning would be an error here


def test_rows_that_are_numbered_are_not_taken_for_persons():
    frame = pd.DataFrame({"object_id": range(10), "t": 0, "x": 0.5, "y": 0.5})

    with pytest.warns(ConversionWarning, match="10 fixes have a user of their own"):
        Trajectories.from_frame(frame)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ["clock times", 'every="10min"']),
        ({"every": "10min", "user": "who"}, ["'who'", "user", "'user_id'"]),
        ({"every": "soon"}, ["'soon'"]),
        ({"every": "10min", "traj_id": "a"}, ["traj_id", "user, time and traj"]),
    ],
)
def test_errors_speak_python(change, words):
    with pytest.raises((InputError, SettingError)) as caught:
        Trajectories.from_frame(pd.DataFrame(stamped(RAW)), **change)
    assert "--" not in str(caught.value)
    assert all(word in str(caught.value) for word in words)


def test_missing_columns_are_named_in_python():
    with pytest.raises(InputError, match=r'no column found for user.*user="COLUMN"'):
        Trajectories.from_frame(pd.DataFrame({"t": [1], "x": [0], "y": [0]}))
    real = Trajectories.from_frame(pd.DataFrame({"t": [1], "x": [0], "y": [0]}), user="file")
    assert real.n_streams == 1


@pytest.mark.parametrize("extra", [{}, {"user": "traj_id"}])
def test_seconds_since_1970_are_no_steps(extra):
    frame = pd.DataFrame({**COLUMNS, "t": [1_577_836_800, 1, 2, 3, 4]}).iloc[:1]

    with pytest.raises(SettingError, match=r'Unix time.*every="10min"'):
        Trajectories.from_frame(frame, **extra)
    with pytest.warns(ConversionWarning, match="traj_id"):
        real = Trajectories.from_frame(frame, every="10min")
    assert real.clock == Clock("2020-01-01T00:00:00+00:00", 600)


def test_a_frame_in_steps_is_synthesised_as_it_is():
    columns = {**COLUMNS, "user_id": COLUMNS["traj_id"]}
    settings = {"grid": 2, "box": (0, 0, 1, 1), "seed": 5, "door": "counts"}

    synthetic, _ = retrasyn.synthesize(pd.DataFrame(columns), **settings)

    assert_same(synthetic, retrasyn.synthesize(Trajectories.from_columns(**columns), **settings)[0])
    with pytest.warns(ConversionWarning, match="no column user_id") as caught:
        retrasyn.synthesize(pd.DataFrame(COLUMNS), **settings)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (pd.DataFrame(stamped(RAW)), ["clock times", "from_frame", 'every="10min"']),
        (pd.DataFrame({"when": [1], "a": [1]}), ["no column", "user, x, y", "from_frame"]),
        ({"a": 1}, ["dict", "pandas", "from_columns"]),
        ("trips.csv", ["'trips.csv'", "retrasyn.read", "retrasyn.convert"]),
    ],
)
def test_what_cannot_be_synthesised_as_it_is_is_explained_in_python(given, words):
    with pytest.raises((InputError, SettingError)) as caught:
        retrasyn.synthesize(given)
    assert not [word for word in words if word not in str(caught.value)]
    assert "--" not in str(caught.value)


def test_a_frame_of_two_types_in_a_column_is_refused_with_its_name():
    frame = pd.DataFrame({**stamped(RAW), "user_id": ["Ann", 1, 2, 3]})

    with pytest.raises(InputError, match=r"user_id.*one type"):
        Trajectories.from_frame(frame, every="10min")


# Out


@given(real=recordings())
def test_every_library_reads_what_a_frame_holds(real):
    table = real.to_frame()

    expected = {"traj_id": real.traj_id, "t": real.t, "x": real.x, "y": real.y}
    if real.user_id is not None:
        expected["user_id"] = real.user_id
    frames = [
        table.to_pandas(),
        pl.from_arrow(table).to_pandas(),
        duckdb.connect().from_arrow(table).df(),
    ]
    for frame in frames:
        assert set(frame.columns) == set(expected)
        for name, column in expected.items():
            assert np.array_equal(frame[name].to_numpy(), column), name


@given(real=recordings())
def test_a_frame_is_read_back_bit_by_bit(real):
    assert_same(Trajectories.from_frame(real.to_frame()), real)
    assert_same(Trajectories.from_frame(pl.from_arrow(real.to_frame())), real)


def test_clock_and_coordinate_system_travel_with_the_frame(known):
    again = Trajectories.from_frame(known.to_frame())

    assert (again.clock, again.crs) == (CLOCK, "EPSG:4326")


def test_times_are_added_on_request(known):
    table = known.to_frame(datetime=True)

    assert table.column_names == ["traj_id", "t", "time", "x", "y"]
    assert table.column("time").to_pylist() == [CLOCK.time_of(t) for t in COLUMNS["t"]]
    assert pl.from_arrow(table)["time"].dtype == pl.Datetime("us", "UTC")


def test_times_nobody_knows_are_refused():
    with pytest.raises(OutputError, match="needs real times"):
        Trajectories.from_columns(**COLUMNS).to_frame(datetime=True)


# GeoPandas and MovingPandas


def test_a_geodataframe_has_points_times_and_the_coordinate_system(known):
    frame = known.to_geodataframe()

    assert frame.crs == "EPSG:4326"
    assert frame.geometry.x.tolist() == COLUMNS["x"]
    assert frame.geometry.y.tolist() == COLUMNS["y"]
    assert frame["traj_id"].tolist() == COLUMNS["traj_id"]
    assert frame["time"].tolist() == [CLOCK.time_of(t) for t in COLUMNS["t"]]


def test_a_geodataframe_does_without_clock_and_coordinate_system():
    frame = Trajectories.from_columns(**COLUMNS).to_geodataframe()

    assert frame.crs is None
    assert list(frame.columns) == ["traj_id", "t", "geometry"]


def test_a_collection_has_a_line_per_stream(known):
    collection = known.to_trajectory_collection()

    assert [line.id for line in collection.trajectories] == [3, 8]
    assert [line.size() for line in collection.trajectories] == [3, 2]
    assert collection.trajectories[0].crs == "EPSG:4326"
    begin = collection.trajectories[1].get_start_time()
    assert begin.isoformat() == "2008-02-02T00:10:00"


def test_a_collection_needs_a_clock():
    with pytest.raises(OutputError, match="a TrajectoryCollection needs real times"):
        Trajectories.from_columns(**COLUMNS).to_trajectory_collection()


@pytest.mark.parametrize(
    ("library", "call"),
    [("geopandas", "to_geodataframe"), ("movingpandas", "to_trajectory_collection")],
)
def test_a_missing_extra_says_what_to_type(library, call, known, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(MissingExtra) as caught:
        getattr(known, call)()

    assert str(caught.value).startswith(f"{library} is not installed")
    assert str(caught.value).endswith('pip install "retrasyn[geo]"')


def test_a_coordinate_system_nobody_knows_is_refused():
    real = Trajectories.from_columns(**COLUMNS, crs="EPSG:99999999")

    with pytest.raises(OutputError, match="'EPSG:99999999' is not known"):
        real.to_geodataframe()


def test_pandas_gets_every_point_with_its_time_if_the_clock_is_known(known):
    frame = known.to_pandas()
    assert list(frame.columns) == ["traj_id", "t", "time", "x", "y"]
    assert frame["x"].tolist() == known.x.tolist()
    assert frame["time"].tolist() == known.to_frame(datetime=True)["time"].to_pylist()
    assert len(frame) == len(known)


@given(recordings(), st.integers(0, 12))
def test_the_head_is_the_first_rows_of_all(real, n):
    pd.testing.assert_frame_equal(real.head(n), real.to_pandas().head(n))


def test_without_pandas_it_is_said_what_to_type(known, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        MissingExtra, match="pandas is not installed, and is needed for a DataFrame"
    ):
        known.to_pandas()
