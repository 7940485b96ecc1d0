"""GeoJSON out."""

import json

import geopandas
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.data import Trajectories, write, writing_files
from retrasyn.data.metadata import Clock
from support.streams import recordings

CLOCK = Clock("2008-02-02T08:00:00+08:00", 600.0)


@given(real=recordings())
def test_every_point_is_a_feature_bit_by_bit(tmp_path_factory, real):
    path = tmp_path_factory.mktemp("json") / "out.geojson"

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writing_files, "_ROWS_AT_ONCE", 7)
        write(real, path)

    collection = json.loads(path.read_text())
    assert collection["type"] == "FeatureCollection"
    features = collection["features"]
    assert {feature["type"] for feature in features} == {"Feature"}
    places = np.array([feature["geometry"]["coordinates"] for feature in features], float)
    assert np.array_equal(places, np.stack([real.x, real.y], axis=1))
    for name in ("traj_id", "t", "user_id"):
        column = getattr(real, name)
        found = [feature["properties"].get(name) for feature in features]
        assert found == ([None] * real.n_points if column is None else column.tolist())


@given(name=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_names_are_written_whatever_they_hold(tmp_path_factory, name):
    path = tmp_path_factory.mktemp("json") / "out.geojson"

    write(Trajectories.from_columns(traj_id=[name], t=[0], x=[1], y=[2]), path)

    feature = json.loads(path.read_text(encoding="utf-8"))["features"][0]
    assert feature["properties"]["traj_id"] == name


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:3857"])
def test_geopandas_opens_a_file_with_times_and_the_right_system(crs, tmp_path):
    real = Trajectories.from_columns(
        traj_id=[3, 3, 8], t=[0, 1, 1], x=[1, 2.5, 3], y=[4, 5, 6.25], clock=CLOCK, crs=crs
    )

    write(real, tmp_path / "out.geojson")

    frame = geopandas.read_file(tmp_path / "out.geojson")
    assert frame.crs == crs
    assert frame.geometry.x.tolist() == [1, 2.5, 3]
    assert frame["traj_id"].tolist() == [3, 3, 8]
    assert [time.to_pydatetime() for time in frame["time"]] == [CLOCK.time_of(t) for t in real.t]


def test_clock_and_coordinate_system_stand_at_the_head(tmp_path):
    real = Trajectories.from_columns(traj_id=[3], t=[0], x=[1], y=[4], clock=CLOCK, crs="EPSG:4326")

    write(real, tmp_path / "out.geojson")

    head = json.loads((tmp_path / "out.geojson").read_text())["retrasyn"]
    assert head == {"version": 1, "epoch": CLOCK.epoch, "period": 600.0, "crs": "EPSG:4326"}


def test_where_nothing_is_known_nothing_is_said(tmp_path):
    write(Trajectories.from_columns(traj_id=[3], t=[0], x=[1], y=[4]), tmp_path / "out.geojson")

    assert list(json.loads((tmp_path / "out.geojson").read_text())) == ["type", "features"]
