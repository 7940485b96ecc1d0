"""A GeoPackage with times, and the style by which QGIS plays them."""

import contextlib
import datetime as dt
import sqlite3

import geopandas
import pyogrio
import pytest
from lxml import etree

from retrasyn.errors import OutputError
from retrasyn.exports.qgis import GEOMETRY, LAYER, write_layer
from support.exported import CLOCK, METRES, city, plain


def style_of(path):
    """Return the style as QGIS looks it up, by layer, column and whether it is the usual one."""
    asked = (
        "SELECT styleQML FROM layer_styles WHERE f_table_schema = '' AND f_table_name = ? "
        "AND f_geometry_column = ? AND useAsDefault = 1"
    )
    with contextlib.closing(sqlite3.connect(path)) as package:
        (text,) = package.execute(asked, (LAYER, GEOMETRY)).fetchone()
        listed = package.execute("SELECT table_name, data_type FROM gpkg_contents").fetchall()
    assert ("layer_styles", "attributes") in listed
    return etree.fromstring(text)


def test_gdal_reads_points_times_and_system(tmp_path):
    real = city()

    write_layer(real, tmp_path / "out.gpkg")

    frame = geopandas.read_file(tmp_path / "out.gpkg", layer=LAYER)
    assert frame.crs == METRES
    assert frame.geometry.x.tolist() == real.x.tolist()
    assert frame["traj_id"].tolist() == real.traj_id.tolist()
    assert [at.to_pydatetime() for at in frame["time"]] == [CLOCK.time_of(int(t)) for t in real.t]


def test_the_style_plays_each_point_for_its_timestamp(tmp_path):
    write_layer(city(), tmp_path / "out.gpkg")

    temporal = style_of(tmp_path / "out.gpkg").find("temporal")
    info = pyogrio.read_info(tmp_path / "out.gpkg", layer=LAYER)
    kinds = dict(zip(info["fields"], info["dtypes"], strict=True))
    assert kinds[temporal.get("startField")].startswith("datetime64")
    # enabled; an instant of a field (1 of QgsVectorLayerTemporalProperties), shown so many seconds
    assert (temporal.get("enabled"), temporal.get("mode")) == ("1", "1")
    assert (temporal.get("durationUnit"), temporal.get("fixedDuration")) == ("s", "300")
    assert temporal.get("accumulate") == "0"


def test_the_style_draws_one_marker(tmp_path):
    write_layer(city(), tmp_path / "out.gpkg")

    renderer = style_of(tmp_path / "out.gpkg").find("renderer-v2")
    (symbol,) = renderer.findall("symbols/symbol")
    assert (renderer.get("type"), symbol.get("type")) == ("singleSymbol", "marker")
    options = {one.get("name"): one.get("value") for one in symbol.iter("Option")}
    assert float(options["size"]) > 0


def test_a_file_that_was_there_is_replaced(tmp_path):
    (tmp_path / "out.gpkg").write_text("an older one")

    write_layer(plain(clock=CLOCK), tmp_path / "out.gpkg")

    assert len(geopandas.read_file(tmp_path / "out.gpkg", layer=LAYER)) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["out.gpkg"]


def test_times_of_other_years_are_times(tmp_path):
    far = dt.datetime(1901, 1, 1, tzinfo=dt.UTC)
    write_layer(plain(clock=type(CLOCK)(far.isoformat(), 0.5)), tmp_path / "out.gpkg")

    times = geopandas.read_file(tmp_path / "out.gpkg", layer=LAYER)["time"]
    assert times[1].to_pydatetime() == far + dt.timedelta(seconds=0.5)


def test_points_in_an_unknown_system_have_none(tmp_path):
    write_layer(plain(x=[1e3, 2e3, 3e3], clock=CLOCK), tmp_path / "out.gpkg")
    assert geopandas.read_file(tmp_path / "out.gpkg", layer=LAYER).crs is None


def test_without_a_clock_nothing_is_written(tmp_path):
    with pytest.raises(OutputError, match=r"out.gpkg: a layer with times needs real times"):
        write_layer(plain(), tmp_path / "out.gpkg")
    assert not list(tmp_path.iterdir())
