"""Files written by GeoPandas, pandas, polars, gpxpy and MovingPandas."""

import datetime as dt
import json
import struct
import warnings

import geopandas
import gpxpy.gpx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from retrasyn.data.formats import tables
from support.raw_files import crs_of, refuse, rows_of, skipped

EXPECTED = [
    ("a", "2020-01-01T00:00:00", 1.5, 4.0),
    ("a", "2020-01-01T00:01:00", 2.5, 5.0),
    ("b", "2020-01-01T00:00:30", -3.0, 6.0),
    ("b", "2020-01-01T00:02:00", -3.5, 6.5),
]


def frame(zone=None):
    users, times, x, y = zip(*EXPECTED, strict=True)
    stamps = pd.to_datetime(list(times)).tz_localize(zone)
    return pd.DataFrame({"user_id": users, "timestamp": stamps, "x": x, "y": y})


def geoframe(crs=4326, zone=None):
    data = frame(zone)
    points = geopandas.points_from_xy(data.x, data.y)
    return geopandas.GeoDataFrame(data.drop(columns=["x", "y"]), geometry=points, crs=crs)


# Parquet


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_parquet_of_pandas_is_read_in_any_zone(zone, tmp_path):
    data = frame("UTC")
    data["timestamp"] = data.timestamp.dt.tz_convert(zone)
    data.to_parquet(tmp_path / "in.parquet")

    assert rows_of(tmp_path / "in.parquet") == EXPECTED


def test_parquet_of_polars_is_read(tmp_path):
    users, times, x, y = zip(*EXPECTED, strict=True)
    stamps = [dt.datetime.fromisoformat(time) for time in times]
    data = pl.DataFrame({"uid": users, "datetime": stamps, "lng": x, "lat": y})
    data.write_parquet(tmp_path / "in.parquet")

    assert rows_of(tmp_path / "in.parquet") == EXPECTED
    assert crs_of(tmp_path / "in.parquet") == "EPSG:4326"


def test_identifiers_may_be_numbers_or_categories(tmp_path):
    for users in ([7, 7, 8, 8], pd.Categorical(["7", "7", "8", "8"])):
        data = frame()
        data["user_id"] = users
        data.to_parquet(tmp_path / "in.parquet")
        assert [row[0] for row in rows_of(tmp_path / "in.parquet")] == ["7", "7", "8", "8"]


def test_a_bad_row_of_parquet_is_named(tmp_path):
    data = frame()
    data.loc[2, "x"] = np.nan
    data.to_parquet(tmp_path / "in.parquet")

    refuse(tmp_path / "in.parquet", "parquet", "row 3", "x")
    assert skipped(tmp_path / "in.parquet", "parquet") == 1


def test_what_is_no_parquet_is_refused(tmp_path):
    (tmp_path / "in.parquet").write_bytes(b"PAR1 no")

    for kind in ("parquet", "geoparquet", "auto"):
        refuse(tmp_path / "in.parquet", kind, str(tmp_path / "in.parquet"), "parquet")


# GeoParquet


@pytest.mark.parametrize("encoding", ["WKB", "geoarrow"])
@pytest.mark.parametrize(
    ("crs", "name"), [(4326, "EPSG:4326"), (25832, "EPSG:25832"), (None, None)]
)
def test_geoparquet_of_geopandas_is_read_with_its_system(crs, name, encoding, tmp_path):
    path = tmp_path / "in.parquet"
    geoframe(crs).to_parquet(path, geometry_encoding=encoding)

    assert rows_of(path) == EXPECTED
    assert crs_of(path) == name


def test_a_geometry_that_is_no_point_is_a_bad_row(tmp_path):
    data = geoframe()
    data.loc[1, "geometry"] = data.geometry[0].buffer(1)
    data.loc[2, "geometry"] = None
    data.to_parquet(tmp_path / "in.parquet")

    refuse(tmp_path / "in.parquet", "geoparquet", "row 2", "geometry")
    assert skipped(tmp_path / "in.parquet", "geoparquet") == 2


def test_parquet_without_geo_metadata_is_not_geoparquet(tmp_path):
    frame().to_parquet(tmp_path / "in.parquet")

    refuse(tmp_path / "in.parquet", "geoparquet", "no geo metadata")


def test_damaged_geo_metadata_is_refused(tmp_path):
    table = pa.table({"user_id": [1], "t": [1], "geometry": [b""]})
    for text in (b"{", b"[]", b'{"primary_column": "g", "columns": {}}'):
        damaged = table.replace_schema_metadata({b"geo": text})
        pa.parquet.write_table(damaged, tmp_path / "in.parquet")
        refuse(tmp_path / "in.parquet", "geoparquet", "geo metadata")


def test_points_are_decoded_in_every_form_of_well_known_binary():
    forms = [
        struct.pack("<BIdd", 1, 1, 1.5, 4),
        struct.pack(">BIdd", 0, 1, 1.5, 4),
        struct.pack("<BIddd", 1, 1001, 1.5, 4, 9),
        struct.pack("<BIddd", 1, 0x80000001, 1.5, 4, 9),
        struct.pack("<BIIdd", 1, 0x20000001, 4326, 1.5, 4),
        struct.pack(">BIIdd", 0, 0x20000001, 4326, 1.5, 4),
    ]
    others = [b"", None, struct.pack("<BIdd", 1, 2, 1.5, 4), struct.pack("<BId", 1, 1, 1.5)]
    x, y = tables.points(pa.array([None, *forms, *others], pa.binary()).slice(1))

    assert x.to_pylist() == [1.5] * 6 + [None] * 4
    assert y.to_pylist() == [4.0] * 6 + [None] * 4


# GeoJSON


@pytest.mark.parametrize(("driver", "suffix"), [("GeoJSON", "geojson"), ("GeoJSONSeq", "geojsonl")])
def test_geojson_of_geopandas_is_read(driver, suffix, tmp_path):
    path = tmp_path / f"in.{suffix}"
    geoframe().to_file(path, driver=driver)

    assert rows_of(path) == EXPECTED
    assert crs_of(path) == "EPSG:4326"


def test_geojson_may_name_another_system(tmp_path):
    path = tmp_path / "in.geojson"
    geoframe(25832).to_file(path, driver="GeoJSON")

    assert rows_of(path) == EXPECTED
    assert crs_of(path) == "EPSG:25832"


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("size", [1, 7, 100, 1 << 20])
def test_geojson_is_read_piece_by_piece(indent, size, tmp_path, monkeypatch):
    monkeypatch.setattr("retrasyn.data.formats.geojson._BLOCK", size)
    path = tmp_path / "in.geojson"
    path.write_text(json.dumps(json.loads(geoframe().to_json(default=str)), indent=indent))

    assert rows_of(path) == EXPECTED


@pytest.mark.parametrize("end", [-2, -30, 200])
def test_geojson_cut_off_is_refused_with_its_line(end, tmp_path):
    path = tmp_path / "in.geojson"
    geoframe().to_file(path, driver="GeoJSON")
    path.write_text(path.read_text().rstrip()[:end].rstrip("]} \n"))

    for mode in ("fail", "skip"):
        refuse(path, "geojson", str(path), "line", on_error=mode)


@pytest.mark.parametrize(
    "feature",
    [
        {"type": "Feature", "properties": {}, "geometry": None},
        {"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": []}},
        {"type": "Feature", "geometry": {"type": "LineString", "coordinates": [[1, 2], [3, 4]]}},
        {"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [1, 2]}},
        [1, 2],
        7,
    ],
)
def test_a_feature_without_who_when_or_where_is_named_or_skipped(feature, tmp_path):
    path = tmp_path / "in.geojsonl"
    geoframe().to_file(path, driver="GeoJSONSeq")
    path.write_text(path.read_text().rstrip() + "\n" + json.dumps(feature) + "\n")

    refuse(path, "geojson", f"{path}, line 5:")
    assert rows_of(path, "geojson", on_error="skip") == EXPECTED
    assert skipped(path, "geojson") == 1


def test_json_nested_without_end_is_refused(tmp_path):
    path = tmp_path / "in.geojson"
    path.write_text("[" * 200_000)

    refuse(path, "geojson", str(path))


def test_an_empty_collection_is_refused(tmp_path):
    path = tmp_path / "in.geojson"
    path.write_text('{"type": "FeatureCollection", "features": []}')

    refuse(path, "geojson", str(path), "no feature")


# GPX


def gpx_of(rows):
    document = gpxpy.gpx.GPX()
    for user in dict.fromkeys(row[0] for row in rows):
        track = gpxpy.gpx.GPXTrack(name=user)
        segment = gpxpy.gpx.GPXTrackSegment()
        for _, time, x, y in (row for row in rows if row[0] == user):
            stamp = None if time is None else dt.datetime.fromisoformat(time + "+00:00")
            point = gpxpy.gpx.GPXTrackPoint(y, x, elevation=30, time=stamp, name="here")
            segment.points.append(point)
        track.segments.append(segment)
        document.tracks.append(track)
    document.waypoints.append(gpxpy.gpx.GPXWaypoint(1, 2))
    return document.to_xml()


def test_gpx_of_gpxpy_is_read(tmp_path):
    path = tmp_path / "walk.gpx"
    path.write_text(gpx_of(EXPECTED))

    assert rows_of(path, user="name") == EXPECTED
    assert rows_of(path) == [("walk", *row[1:]) for row in EXPECTED]
    assert crs_of(path) == "EPSG:4326"


@pytest.mark.parametrize("size", [1, 50, 333])
def test_gpx_is_read_piece_by_piece(size, tmp_path, monkeypatch):
    monkeypatch.setattr("retrasyn.data.formats.gpx._BLOCK", size)
    path = tmp_path / "walk.gpx"
    path.write_text(gpx_of(EXPECTED))

    assert rows_of(path, user="name") == EXPECTED
    assert rows_of(path) == [("walk", *row[1:]) for row in EXPECTED]


def test_a_gpx_point_without_time_is_named_or_skipped(tmp_path):
    path = tmp_path / "walk.gpx"
    path.write_text(gpx_of([*EXPECTED[:3], ("b", None, 1.0, 2.0), EXPECTED[3]]))

    refuse(path, "gpx", str(path), "line", "time is empty")
    assert rows_of(path, user="name", on_error="skip") == EXPECTED
    assert skipped(path) == 1


def test_gpx_with_entities_is_refused(tmp_path):
    path = tmp_path / "bomb.gpx"
    path.write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE gpx [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>\n'
        "<gpx><trk><name>&b;</name></trk></gpx>"
    )

    refuse(path, "gpx", str(path), "line 2", "DOCTYPE")


def test_gpx_cut_off_is_refused_with_its_line(tmp_path):
    path = tmp_path / "walk.gpx"
    path.write_text(gpx_of(EXPECTED)[:-20])

    refuse(path, "gpx", str(path), "line", "XML")


# MF-JSON


def test_mf_json_of_movingpandas_is_read(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import movingpandas  # warns of what else could be installed

        data = geoframe().set_index("timestamp")
        collection = movingpandas.TrajectoryCollection(data, traj_id_col="user_id")
        document = collection.to_mf_json(datetime_to_str=True)
    path = tmp_path / "in.json"
    path.write_text(json.dumps(document))

    assert rows_of(path) == EXPECTED
    assert rows_of(path, "mf-json") == EXPECTED


def moving(coordinates, datetimes, **more):
    shape = {"type": "MovingPoint", "coordinates": coordinates, "datetimes": datetimes}
    return {"type": "Feature", "temporalGeometry": shape, **more}


def test_mf_json_may_be_one_feature_with_milliseconds(tmp_path):
    path = tmp_path / "in.mfjson"
    feature = moving([[1.5, 4, 0], [2.5, 5, 0]], [1577836800000, 1577836860000], id="a")
    path.write_text(json.dumps(feature))

    assert rows_of(path) == EXPECTED[:2]


def test_mf_json_in_trajectory_form_is_read(tmp_path):
    feature = {
        "type": "Feature",
        "crs": {"type": "Name", "properties": {"name": "urn:ogc:def:crs:EPSG::3857"}},
        "properties": {
            "user_id": ["a"],
            "datetimes": ["2020-01-01T01:00:00+01:00", "2020-01-01T00:01:00Z"],
        },
        "geometry": {"type": "LineString", "coordinates": [[1.5, 4], [2.5, 5]]},
    }
    path = tmp_path / "in.json"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}, indent=1))

    assert rows_of(path) == EXPECTED[:2]
    assert crs_of(path) == "EPSG:3857"


@pytest.mark.parametrize(
    "feature",
    [
        moving([[1, 2]], ["2020-01-01", "2020-01-02"]),
        moving([["x", 2]], ["2020-01-01"]),
        moving([[1]], ["2020-01-01"]),
        moving(None, None),
        moving([[1, 2]], [1e300]),
        {"type": "Feature", "temporalGeometry": {"type": "MovingPolygon"}},
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}},
        {"type": "Feature"},
        {},
        3,
    ],
)
def test_a_feature_that_is_no_moving_point_is_named_or_skipped(feature, tmp_path):
    path = tmp_path / "in.json"
    good = moving([[1.5, 4], [2.5, 5]], [1577836800000, 1577836860000], id="a")
    features = ",\n".join(map(json.dumps, [good, feature]))
    path.write_text(f'{{"type": "FeatureCollection",\n"features": [\n{features}]}}')

    refuse(path, "mf-json", f"{path}, line 4:")
    assert rows_of(path, "mf-json", on_error="skip") == EXPECTED[:2]
    assert skipped(path, "mf-json") == 1
