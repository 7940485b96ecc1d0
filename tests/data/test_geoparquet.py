"""GeoParquet out and in, with GeoPandas on the other side."""

import dataclasses
import json
import sys

import duckdb
import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from retrasyn.data import Trajectories, geoparquet, read, write, writing_files
from retrasyn.data.metadata import Clock
from retrasyn.errors import InputError, MissingExtra, OutputError
from support.streams import recordings

COLUMNS = {
    "traj_id": [3, 3, 8],
    "t": [4, 5, 4],
    "x": [0.1, 1 / 3, -1e-300],
    "y": [116.4, 2**-52, 1e300],
}
floats = st.floats(allow_nan=False, allow_infinity=False)


def frame_of(geometry, **changes):
    columns = {"traj_id": COLUMNS["traj_id"], "t": COLUMNS["t"], **changes}
    return geopandas.GeoDataFrame(columns, geometry=geometry)


def points(crs=None):
    return geopandas.points_from_xy(COLUMNS["x"], COLUMNS["y"], crs=crs)


def assert_same(one, other):
    for name in ("stream_ids", "begins", "starts", "x", "y", "user_of_stream"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


# Out


@pytest.mark.parametrize("crs", [None, "EPSG:4326", "OGC:CRS84", "EPSG:3857", "EPSG:25832"])
def test_geopandas_opens_a_file_with_the_right_points_and_system(crs, tmp_path):
    real = Trajectories.from_columns(**COLUMNS, user_id=[5, 5, 6], crs=crs)

    write(real, tmp_path / "out.geoparquet")

    frame = geopandas.read_parquet(tmp_path / "out.geoparquet")
    assert list(frame.columns) == ["traj_id", "user_id", "t", "geometry"]
    assert frame.crs == crs
    assert frame.geometry.x.tolist() == COLUMNS["x"]
    assert frame.geometry.y.tolist() == COLUMNS["y"]
    assert frame["t"].tolist() == COLUMNS["t"]


def test_times_are_added_where_the_clock_is_known(tmp_path):
    clock = Clock("2008-02-02T08:00:00+08:00", 600.0)
    real = Trajectories.from_columns(**COLUMNS, clock=clock)

    write(real, tmp_path / "out.geoparquet")

    frame = geopandas.read_parquet(tmp_path / "out.geoparquet")
    assert frame["time"].tolist() == [clock.time_of(t) for t in COLUMNS["t"]]


def test_the_file_says_what_the_standard_asks_for(tmp_path):
    write(Trajectories.from_columns(**COLUMNS), tmp_path / "out.geoparquet")

    geo = json.loads(pa.parquet.read_schema(tmp_path / "out.geoparquet").metadata[b"geo"])
    assert geo == {
        "version": "1.1.0",
        "primary_column": "geometry",
        "columns": {
            "geometry": {
                "encoding": "WKB",
                "geometry_types": ["Point"],
                "crs": None,
                "bbox": [-1e-300, 2**-52, 1 / 3, 1e300],
            }
        },
    }


def test_degrees_need_no_other_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyproj", None)

    assert geoparquet.projjson("EPSG:4326")["id"] == {"authority": "EPSG", "code": 4326}
    assert geoparquet.projjson("OGC:CRS84")["id"] == {"authority": "OGC", "code": "CRS84"}
    with pytest.raises(MissingExtra, match=r"to describe EPSG:25832: pip install .retrasyn\[geo\]"):
        geoparquet.projjson("EPSG:25832")


def test_a_system_nobody_knows_is_refused_before_anything_is_written(tmp_path):
    real = Trajectories.from_columns(**COLUMNS, crs="EPSG:99999999")

    with pytest.raises(OutputError, match="'EPSG:99999999' is not known"):
        write(real, tmp_path / "out.geoparquet")

    assert list(tmp_path.iterdir()) == []


@given(x=floats, y=floats)
def test_points_are_those_of_shapely(x, y):
    assert geoparquet.points(np.array([x]), np.array([y])).to_pylist() == [
        shapely.to_wkb(shapely.Point(x, y), byte_order=1)
    ]


# In


@given(real=recordings())
def test_a_file_is_read_back_bit_by_bit(tmp_path_factory, real):
    path = tmp_path_factory.mktemp("geo") / "out.geoparquet"

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writing_files, "_ROWS_AT_ONCE", 7)
        write(real, path)

    assert_same(read(path), real)


@pytest.mark.parametrize("name", ["in.geoparquet", "in.parquet"])
@pytest.mark.parametrize("encoding", ["WKB", "geoarrow"])
@pytest.mark.parametrize("crs", [None, "EPSG:4326", "EPSG:25832"])
def test_a_file_of_geopandas_is_read(name, encoding, crs, tmp_path):
    frame_of(points(crs)).to_parquet(
        tmp_path / name, geometry_encoding=encoding, schema_version="1.1.0"
    )

    real = read(tmp_path / name)

    assert_same(real, Trajectories.from_columns(**COLUMNS))
    assert real.crs == crs


def test_a_geometry_of_another_name_is_read(tmp_path):
    frame_of(points()).rename_geometry("place").to_parquet(tmp_path / "in.geoparquet")

    assert_same(read(tmp_path / "in.geoparquet"), Trajectories.from_columns(**COLUMNS))


def test_heights_are_passed_over(tmp_path):
    raised = geopandas.points_from_xy(COLUMNS["x"], COLUMNS["y"], [1, 2, 3])
    frame_of(raised).to_parquet(tmp_path / "in.geoparquet")

    assert_same(read(tmp_path / "in.geoparquet"), Trajectories.from_columns(**COLUMNS))


def test_points_in_either_byte_order_are_read():
    big = [shapely.to_wkb(point, byte_order=0) for point in shapely.points([1.5, 2], [3, 4])]

    x, y = geoparquet.coordinates(pa.chunked_array([big, big[:1]]).slice(1))

    assert (x.tolist(), y.tolist()) == ([2, 1.5], [4, 3])


def test_columns_x_and_y_come_before_points(tmp_path):
    frame = frame_of(points("EPSG:4326"), x=[1, 2, 3], y=[4, 5, 6])
    frame.to_parquet(tmp_path / "in.geoparquet")

    real = read(tmp_path / "in.geoparquet")

    assert real.x.tolist() == [1, 2, 3]


def test_a_system_without_a_code_is_kept_whole(tmp_path):
    crs = "+proj=tmerc +lat_0=1 +lon_0=2 +ellps=GRS80"
    frame_of(points(crs)).to_parquet(tmp_path / "in.geoparquet")

    real = read(tmp_path / "in.geoparquet")
    write(real, tmp_path / "out.geoparquet")

    assert geopandas.read_parquet(tmp_path / "out.geoparquet").crs == points(crs).crs


def test_a_file_that_names_no_system_is_in_degrees(tmp_path):
    real = Trajectories.from_columns(**COLUMNS)
    table = real.to_frame().drop_columns(["x", "y"])
    table = table.append_column("geometry", geoparquet.points(real.x, real.y))
    about = {"encoding": "WKB", "geometry_types": []}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": about}}
    table = table.replace_schema_metadata({b"geo": json.dumps(geo).encode()})
    pa.parquet.write_table(table, tmp_path / "in.geoparquet")

    assert read(tmp_path / "in.geoparquet").crs == "OGC:CRS84"


@pytest.mark.parametrize(
    ("geometry", "words"),
    [
        ([shapely.Point(0, 0), shapely.LineString([(0, 0), (1, 1)]), shapely.Point(1, 1)], "row 2"),
        ([shapely.LineString([(0, 0), (1, 1)])] * 3, "other than a point in row 1"),
        ([shapely.Point(0, 0), None, shapely.Point(1, 1)], "empty in row 2"),
        ([shapely.Point(0, 0), shapely.Point(), shapely.Point(1, 1)], "holds nan in row 2"),
        ([shapely.Point(0, 0), shapely.Point(0, 0, 1), shapely.Point(1, 1)], "row 2"),
    ],
)
def test_what_is_no_point_is_refused_with_its_row(geometry, words, tmp_path):
    frame_of(geometry).to_parquet(tmp_path / "in.geoparquet")

    with pytest.raises(InputError, match=words) as caught:
        read(tmp_path / "in.geoparquet")

    assert "in.geoparquet" in str(caught.value)


@pytest.mark.parametrize("geo", [b"{", b"[]", b'{"primary_column": "geometry", "columns": 3}'])
def test_damaged_metadata_is_refused(geo, tmp_path):
    real = Trajectories.from_columns(**COLUMNS)
    table = real.to_frame().drop_columns(["x", "y"])
    table = table.append_column("geometry", geoparquet.points(real.x, real.y))
    pa.parquet.write_table(table.replace_schema_metadata({b"geo": geo}), tmp_path / "in.geoparquet")

    with pytest.raises(InputError, match=r"in\.geoparquet: .*damaged"):
        read(tmp_path / "in.geoparquet")


def test_bytes_that_are_no_geometry_are_refused():
    with pytest.raises(InputError, match="row 1"):
        geoparquet.coordinates(pa.chunked_array([[b"abc", b"def"]]))


def test_synthetic_points_are_written_as_they_are(tmp_path):
    real = Trajectories.from_columns(**COLUMNS)
    write(dataclasses.replace(real, crs="EPSG:4326"), tmp_path / "out.geoparquet")

    assert read(tmp_path / "out.geoparquet").crs == "EPSG:4326"


# Version 2.0

NATIVE = {"traj_id": [3, 3, 8], "t": [4, 5, 4], "x": [0.5, 0.25, -1.5], "y": [53.5, 53.25, 52.5]}


@pytest.fixture(params=[None, "EPSG:4326", "OGC:CRS84", "EPSG:25832"])
def native(request, tmp_path):
    """Return streams, and the file of Parquet's own geometries that they were written to."""
    clock = Clock("2008-02-02T08:00:00+08:00", 600.0)
    real = Trajectories.from_columns(**NATIVE, clock=clock, crs=request.param)
    writing_files.write_native(real, tmp_path / "out.parquet")
    return real, tmp_path / "out.parquet"


def test_duckdb_and_pyarrow_see_geometries_of_parquets_own(native):
    real, path = native
    points = duckdb.read_parquet(str(path)).project("geometry::VARCHAR").fetchall()
    assert points == [("POINT (0.5 53.5)",), ("POINT (0.25 53.25)",), ("POINT (-1.5 52.5)",)]
    file = pa.parquet.ParquetFile(path)
    place = file.schema.names.index("geometry")
    kind = json.loads(file.schema.column(place).logical_type.to_json())
    assert kind["Type"] == "Geometry"
    named = kind.get("crs", "")
    assert {None: "srid:0", "EPSG:25832": "UTM zone 32N"}.get(real.crs, "") in named
    assert bool(named) == (real.crs in {None, "EPSG:25832"})  # else longitude and latitude
    extent = file.metadata.row_group(0).column(place).geo_statistics
    assert (extent.xmin, extent.ymax) == (-1.5, 53.5)


def test_what_the_file_says_of_itself_is_version_2(native):
    real, path = native
    geo = json.loads(pa.parquet.read_schema(path).metadata[b"geo"])
    about = geo["columns"]["geometry"]
    assert (geo["version"], geo["primary_column"], about["encoding"]) == (
        "2.0.0",
        "geometry",
        "WKB",
    )
    assert about["geometry_types"] == ["Point"]
    assert about["bbox"] == [-1.5, 52.5, 0.5, 53.5]
    assert ("crs" in about) == (real.crs in {None, "EPSG:25832"})


def test_geopandas_and_we_read_geometries_of_parquets_own(native):
    real, path = native
    frame = geopandas.read_parquet(path)
    assert frame.crs == (real.crs if real.crs != "EPSG:4326" else "OGC:CRS84")
    assert frame.geometry.x.tolist() == NATIVE["x"]
    assert frame["time"].tolist() == [real.clock.time_of(int(t)) for t in real.t]
    again = read(path)
    assert_same(again, real)
    assert (again.clock, again.crs) == (real.clock, real.crs)


def test_an_older_pyarrow_is_told_to_be_newer(monkeypatch, tmp_path):
    monkeypatch.setattr(pa, "__version__", "20.0.0")
    with pytest.raises(MissingExtra, match=r"pyarrow 20.0.0 cannot .* \"pyarrow>=21\""):
        writing_files.write_native(Trajectories.from_columns(**NATIVE), tmp_path / "out.parquet")
