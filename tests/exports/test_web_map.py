"""Vector tiles, read by GDAL, which has its own decoder."""

import datetime as dt

import geopandas
import numpy as np
import pyogrio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pmtiles.reader import MmapSource, Reader
from pmtiles.tile import TileType

from retrasyn.errors import OutputError
from retrasyn.exports import web_map
from retrasyn.exports.vector_tiles import EXTENT, LINE, POLYGON, TileShape, tile_bytes
from retrasyn.exports.web_map import write_tiles
from support.exported import CLOCK, city, in_degrees, plain

WORLD = 20037508.342789244  # half of the square of web maps, in its metres


@pytest.fixture(scope="module")
def tiles(tmp_path_factory):
    path = tmp_path_factory.mktemp("tiles") / "out.pmtiles"
    write_tiles(city(), path)
    return path


def zooms_of(path):
    with path.open("rb") as file:
        header = Reader(MmapSource(file)).header()
    return range(header["min_zoom"], header["max_zoom"] + 1)


def test_every_zoom_counts_every_point(tiles):
    real = in_degrees(city())
    x = (real.x + 180) / 360
    y = 0.5 - np.log(np.tan(np.pi / 4 + np.radians(real.y) / 2)) / (2 * np.pi)
    for zoom in zooms_of(tiles):
        side = 32 * 2**zoom
        counted = {}
        for place in zip((x * side).astype(int), (y * side).astype(int), strict=True):
            counted[place] = counted.get(place, 0) + 1
        frame = geopandas.read_file(tiles, layer="cells", ZOOM_LEVEL=zoom)
        centres = frame.geometry.centroid
        found = {
            (int((px + WORLD) / (2 * WORLD) * side), int((WORLD - py) / (2 * WORLD) * side)): n
            for px, py, n in zip(centres.x, centres.y, frame["points"], strict=True)
        }
        assert found == counted
        assert np.allclose(frame["share"], frame["points"] / real.n_points, atol=1e-6)


def test_lines_are_where_the_streams_are(tiles):
    real = in_degrees(city())
    moving = real.stream_ids[real.lengths > 1]
    deepest = zooms_of(tiles)[-1]
    frame = geopandas.read_file(tiles, layer="trips", ZOOM_LEVEL=deepest).to_crs("EPSG:4326")
    assert set(frame["traj_id"].astype(int)) == set(moving.tolist())
    one = int(np.argmax(real.lengths))
    rows = slice(real.starts[one], real.starts[one + 1])
    drawn = frame[frame["traj_id"] == str(real.stream_ids[one])]
    begin = dt.datetime.fromisoformat(drawn["begin"].iloc[0])
    assert begin == CLOCK.time_of(int(real.begins[one]))
    points = geopandas.points_from_xy(real.x[rows], real.y[rows])
    assert max(drawn.geometry.union_all().distance(point) for point in points) < 1e-5


def test_a_sample_of_many_streams_is_drawn(monkeypatch, tmp_path):
    monkeypatch.setattr(web_map, "N_TRIPS", 5)
    write_tiles(city(), tmp_path / "out.pmtiles")

    zoom = zooms_of(tmp_path / "out.pmtiles")[0]
    frame = geopandas.read_file(tmp_path / "out.pmtiles", layer="trips", ZOOM_LEVEL=zoom)
    assert frame["traj_id"].nunique() == 5


def test_the_header_says_where_it_is_and_what_is_in_it(tiles):
    real = in_degrees(city())
    with tiles.open("rb") as file:
        reader = Reader(MmapSource(file))
        header, about = reader.header(), reader.metadata()
    assert header["tile_type"] == TileType.MVT
    assert header["clustered"]
    assert np.allclose(header["min_lon_e7"] / 1e7, real.x.min(), atol=1e-6)
    assert np.allclose(header["max_lat_e7"] / 1e7, real.y.max(), atol=1e-6)
    assert [layer["id"] for layer in about["vector_layers"]] == ["cells", "trips"]


def test_the_same_release_gives_the_same_bytes(tiles, tmp_path):
    write_tiles(city(), tmp_path / tiles.name)  # the name stands in it
    assert (tmp_path / tiles.name).read_bytes() == tiles.read_bytes()


@pytest.mark.parametrize("data", [plain(traj_id=[1, 2, 3]), plain(x=[1, 1, 1], y=[1, 1, 1])])
def test_points_that_go_nowhere_are_shown_too(data, tmp_path):
    write_tiles(data, tmp_path / "out.pmtiles")

    path = tmp_path / "out.pmtiles"
    frame = geopandas.read_file(path, layer="cells", ZOOM_LEVEL=zooms_of(path)[-1])
    assert frame["points"].sum() == 3


def test_points_near_a_pole_are_on_no_web_map(tmp_path):
    with pytest.raises(OutputError, match=r"ends at 85.05 degrees"):
        write_tiles(plain(y=[86.0, 86, 86]), tmp_path / "out.pmtiles")


places = st.tuples(st.integers(-200, EXTENT + 200), st.integers(-200, EXTENT + 200))
values = st.one_of(
    st.integers(0, 2**53), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=9)
)


@given(
    points=st.lists(places, min_size=2, max_size=6, unique=True),
    value=values.filter(lambda value: "\0" not in str(value)),
)
def test_gdal_reads_what_is_encoded(tmp_path_factory, points, value):
    folder = tmp_path_factory.mktemp("tile")
    shape = TileShape(LINE, points, {"value": value, "other": 1})
    (folder / "0.mvt").write_bytes(tile_bytes({"lines": [shape, shape], "none": []}))

    frame = geopandas.read_file(folder / "0.mvt", CLIP="NO")

    assert pyogrio.list_layers(folder / "0.mvt")[:, 0].tolist() == ["lines"]
    assert len(frame) == 2
    assert frame["value"][0] == value
    drawn = np.array([part for line in frame.geometry[:1] for part in line.coords])
    there = np.array([(x, EXTENT - y) for x, y in points])
    assert np.allclose(drawn, there) or np.allclose(drawn * EXTENT, there)


def test_one_and_one_point_zero_are_two_values():
    one, same, other = (TileShape(POLYGON, [(0, 0), (9, 0), (9, 9)], {"n": n}) for n in (1, 1, 1.0))
    assert len(tile_bytes({"a": [one, other]})) > len(tile_bytes({"a": [one, same]}))
