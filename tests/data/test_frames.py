"""Frames of other libraries in and out."""

import sys

import duckdb
import geopandas
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.data import Trajectories
from retrasyn.data.metadata import Clock
from retrasyn.errors import InputError, MissingExtra, OutputError
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
