"""Answers become frames, tables and maps that other programs read."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from retrasyn import Trajectories, ask
from retrasyn.data.metadata import Metadata
from retrasyn.errors import OutputError
from support.asked import CLOCK, wanderers, write_zones

BOX = (0, 0, 10, 10)


@pytest.fixture
def zones(tmp_path):
    """A park, a centre and a harbour."""
    return write_zones(tmp_path / "zones.geojson")


@pytest.fixture(scope="module")
def data():
    return wanderers(clock=CLOCK)


def read_features(path):
    return json.loads(path.read_text())["features"]


def test_tables_hold_what_frames_hold(tmp_path, data, zones):
    found = ask(data, "od", zones=zones, by="day")

    found.write(tmp_path / "od.parquet")
    found.write(tmp_path / "od.csv")

    table = pa.parquet.read_table(tmp_path / "od.parquet")
    assert table.equals(found.to_frame())
    assert Metadata.of_schema(table.schema.metadata).clock == CLOCK
    text = pa.csv.read_csv(tmp_path / "od.csv")
    assert text.column_names == table.column_names
    for name in ("origin", "destination", "t", "value"):
        assert text.column(name).to_pylist() == table.column(name).to_pylist()
    assert "2026-05-04T22:00:00Z" in (tmp_path / "od.csv").read_text()
    assert text.column("standard_error").null_count == len(found)


def test_other_libraries_read_an_answer_as_it_is(data):
    polars = pytest.importorskip("polars")

    found = ask(data, "counts", zones="grid:3", box=BOX)

    assert polars.DataFrame(found).shape == (9, 7)
    assert found.to_pandas()["value"].sum() == pytest.approx(data.n_points / 40)
    assert repr(found) == "AnswerTable(counts: 9 rows, 0 replicas)"


def test_zones_are_polygons_on_a_map(tmp_path, data, zones):
    shapely = pytest.importorskip("shapely")
    found = ask(data, "counts", zones=zones)

    found.write(tmp_path / "counts.geojson")

    features = read_features(tmp_path / "counts.geojson")
    named = {row["properties"]["zone"]: row for row in features}
    assert list(named) == ["park", "centre", "harbour", "outside"]
    park = shapely.geometry.shape(named["park"]["geometry"])
    assert (park.area, len(park.interiors)) == (12, 1)
    assert named["outside"]["geometry"] is None
    values = [row["properties"]["value"] for row in features]
    assert values == found["value"].tolist()
    assert named["park"]["properties"]["standard_error"] is None


@pytest.mark.parametrize("what", ["od", "flows"])
def test_moves_are_lines_between_the_middles_of_zones(tmp_path, data, what):
    found = ask(data, what, zones="grid:2", box=(0, 0, 10, 5))

    found.write(tmp_path / "lines.geojson")

    middles = {"0": [2.5, 1.25], "1": [7.5, 1.25], "2": [2.5, 3.75], "3": [7.5, 3.75]}
    kinds = set()
    for row in read_features(tmp_path / "lines.geojson"):
        ends = [row["properties"][end] for end in ("origin", "destination")]
        line = row["geometry"]
        if "outside" in ends:
            assert line is None
        elif ends[0] == ends[1]:
            assert line == {"type": "Point", "coordinates": middles[ends[0]]}
        else:
            expected = {"type": "LineString", "coordinates": [middles[end] for end in ends]}
            assert line == expected
        kinds.add(line and line["type"])
    assert kinds == {None, "LineString"} | ({"Point"} if what == "od" else set())


def test_names_with_quotes_survive(tmp_path, data):
    rings = {'"Zum Löwen"\n': [[(0, 0), (10, 0), (10, 10), (0, 10), (0, 0)]]}
    zones = write_zones(tmp_path / "zones.geojson", rings)

    ask(data, "counts", zones=zones).write(tmp_path / "counts.geojson")

    (row,) = read_features(tmp_path / "counts.geojson")
    assert row["properties"]["zone"] == '"Zum Löwen"\n'


@pytest.mark.parametrize(("what", "kind"), [("counts", "Polygon"), ("flows", "LineString")])
def test_geoparquet_is_read_by_geopandas(tmp_path, what, kind):
    geopandas = pytest.importorskip("geopandas")
    rng = np.random.default_rng(1)
    data = Trajectories.from_columns(
        traj_id=np.repeat(np.arange(50), 4),
        t=np.tile(np.arange(4), 50),
        x=rng.uniform(8, 9, 200),
        y=rng.uniform(53, 54, 200),
        crs="EPSG:4326",
    )
    found = ask(data, what, zones="grid:3", by=2)

    found.write(tmp_path / "answer.geoparquet")

    frame = geopandas.read_parquet(tmp_path / "answer.geoparquet")
    assert set(frame.geom_type) == {kind}
    assert frame.crs.to_epsg() == 4326
    assert frame["value"].tolist() == found["value"].tolist()
    assert frame.total_bounds[0] >= 8
    assert frame.total_bounds[2] <= 9


def test_an_empty_answer_is_an_empty_file(tmp_path, data):
    pytest.importorskip("shapely")
    found = ask(data, "flows", zones="grid:1", box=BOX)

    for ending in ("csv", "parquet", "geojson", "geoparquet"):
        found.write(tmp_path / f"flows.{ending}")

    assert len(found) == 0
    assert read_features(tmp_path / "flows.geojson") == []
    assert pa.parquet.read_table(tmp_path / "flows.geoparquet").num_rows == 0


def test_what_has_no_zones_is_on_no_map(tmp_path, data):
    with pytest.raises(OutputError, match="there are no zones to put on a map"):
        ask(data, "trips").write(tmp_path / "trips.geojson")
    assert list(tmp_path.iterdir()) == []


def test_other_endings_are_refused(tmp_path, data):
    with pytest.raises(OutputError, match=r"ends in \.xlsx; use \.csv or \.parquet"):
        ask(data, "trips").write(tmp_path / "trips.xlsx")
