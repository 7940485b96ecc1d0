"""OGC Moving Features JSON out, with MovingPandas on the other side."""

import dataclasses
import datetime as dt
import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings

from retrasyn.data import Trajectories, geoparquet, write, writing_files
from retrasyn.data.metadata import Clock
from retrasyn.errors import OutputError
from support.streams import recordings

CLOCK = Clock("2008-02-02T08:00:00+08:00", 600.0)


def open_in_movingpandas(path):
    movingpandas = geoparquet.load_extra("movingpandas", "here")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it drops the time zone
        return movingpandas.read_mf_json(path, "traj_id")


@pytest.mark.parametrize("period", [600.0, 0.5, 601.0])
def test_movingpandas_opens_a_file(period, tmp_path):
    clock = Clock(CLOCK.epoch, period)
    real = Trajectories.from_columns(
        traj_id=["bus", "bus", "bus", "tram", "walk", "walk"],
        t=[2, 3, 4, 7, 0, 1],
        x=[0.1, 0.2, 0.3, 9, 5, 6],
        y=[1, 2, 3, 8, 5, 6],
        user_id=["Ann", "Ann", "Ann", "Bo", 'C"\\', 'C"\\'],
        clock=clock,
        crs="EPSG:4326",
    )

    write(real, tmp_path / "out.mfjson")

    lines = {line.id: line for line in open_in_movingpandas(tmp_path / "out.mfjson").trajectories}
    assert set(lines) == {"bus", "tram", "walk"}
    assert lines["bus"].df.geometry.x.tolist() == [0.1, 0.2, 0.3]
    assert lines["bus"].df.geometry.y.tolist() == [1, 2, 3]
    times = [clock.time_of(t).astimezone(dt.UTC).replace(tzinfo=None) for t in (2, 3, 4)]
    assert [time.to_pydatetime() for time in lines["bus"].df.index] == times
    assert lines["tram"].df.geometry.x.tolist() == [9, 9]


@settings(max_examples=30)
@given(real=recordings())
def test_every_stream_is_a_feature_bit_by_bit(tmp_path_factory, real):
    path = tmp_path_factory.mktemp("json") / "out.mfjson"
    real = dataclasses.replace(real, clock=CLOCK)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writing_files, "_ROWS_AT_ONCE", 7)
        write(real, path)

    features = json.loads(path.read_text())["features"]
    assert [feature["properties"]["traj_id"] for feature in features] == real.stream_ids.tolist()
    for number, feature in enumerate(features):
        rows = slice(real.starts[number], real.starts[number + 1])
        moving = feature["temporalGeometry"]
        assert moving["type"] == "MovingPoint"
        times = [dt.datetime.fromisoformat(text) for text in moving["datetimes"]]
        places = np.array(moving["coordinates"], float)
        n_points = real.lengths[number]
        assert len(times) == len(places) == max(n_points, 2)
        assert times[:n_points] == [CLOCK.time_of(int(t)) for t in real.t[rows]]
        assert np.array_equal(places[:n_points], np.stack([real.x[rows], real.y[rows]], axis=1))


def test_a_stream_of_one_point_stays_within_its_own_time_step(tmp_path):
    real = Trajectories.from_columns(traj_id=[3], t=[5], x=[1], y=[2], clock=CLOCK)

    write(real, tmp_path / "out.mfjson")

    moving = json.loads((tmp_path / "out.mfjson").read_text())["features"][0]["temporalGeometry"]
    assert moving["coordinates"] == [[1, 2], [1, 2]]
    assert moving["datetimes"] == ["2008-02-02T00:50:00Z", "2008-02-02T00:55:00Z"]


@pytest.mark.parametrize(
    ("crs", "urn"),
    [
        ("EPSG:4326", "urn:ogc:def:crs:OGC:1.3:CRS84"),
        ("EPSG:3857", "urn:ogc:def:crs:EPSG::3857"),
    ],
)
def test_systems_of_space_and_time_are_named(crs, urn, tmp_path):
    real = Trajectories.from_columns(traj_id=[3], t=[5], x=[1], y=[2], clock=CLOCK, crs=crs)

    write(real, tmp_path / "out.mfjson")

    collection = json.loads((tmp_path / "out.mfjson").read_text())
    assert collection["crs"] == {"type": "Name", "properties": {"name": urn}}
    assert collection["trs"]["properties"]["name"] == "urn:ogc:data:time:iso8601"
    assert collection["retrasyn"]["crs"] == crs


def test_without_a_clock_it_is_refused_with_a_way_out(tmp_path):
    real = Trajectories.from_columns(traj_id=[3], t=[5], x=[1], y=[2])

    with pytest.raises(OutputError, match=r"out\.mfjson: MF-JSON needs real times.*clock=Clock"):
        write(real, tmp_path / "out.mfjson")

    assert list(tmp_path.iterdir()) == []
