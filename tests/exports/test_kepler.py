"""Lines with times, as kepler.gl and deck.gl describe them."""

import json

import geopandas
import jsonschema
import numpy as np
import pytest

from retrasyn.data.metadata import Clock
from retrasyn.errors import OutputError
from retrasyn.exports.kepler import write_lines
from support.exported import CLOCK, city, in_degrees, plain

VERTEX = {
    "type": "array",
    "prefixItems": [
        {"type": "number", "minimum": -180, "maximum": 180},
        {"type": "number", "minimum": -90, "maximum": 90},
        {"type": "number"},
        {"type": "number", "minimum": 1_000_000_000, "maximum": 9_999_999_999},
    ],
    "minItems": 4,
    "maxItems": 4,
}
LINES = {
    "type": "object",
    "required": ["type", "features"],
    "properties": {
        "type": {"const": "FeatureCollection"},
        "features": {
            "type": "array",
            "items": {
                "required": ["type", "properties", "geometry"],
                "properties": {
                    "type": {"const": "Feature"},
                    "geometry": {
                        "required": ["type", "coordinates"],
                        "properties": {
                            "type": {"const": "LineString"},
                            "coordinates": {"type": "array", "minItems": 2, "items": VERTEX},
                        },
                    },
                },
            },
        },
    },
}
"""What both tools say of a trip: a vertex is longitude, latitude, height, seconds since 1970."""


def read_lines(path):
    found = json.loads(path.read_text())
    jsonschema.validate(found, LINES)
    return found["features"]


def test_every_stream_is_a_line_of_its_points_and_times(tmp_path):
    real = city()

    write_lines(real, tmp_path / "out.json")

    features = read_lines(tmp_path / "out.json")
    degrees = in_degrees(real)
    assert len(features) == real.n_streams
    for stream, feature in enumerate(features):
        rows = slice(real.starts[stream], real.starts[stream + 1])
        line = np.array(feature["geometry"]["coordinates"])
        n = rows.stop - rows.start
        assert feature["properties"] == {"traj_id": int(real.stream_ids[stream])}
        assert np.abs(line[:n, 0] - degrees.x[rows]).max() <= 5.1e-8
        assert np.abs(line[:n, 1] - degrees.y[rows]).max() <= 5.1e-8
        assert line[:n, 3].tolist() == [CLOCK.time_of(int(t)).timestamp() for t in real.t[rows]]
        assert len(line) == max(n, 2)


def test_a_stream_of_one_point_stays_for_half_its_time(tmp_path):
    write_lines(plain(clock=CLOCK), tmp_path / "out.json")

    *_, alone = read_lines(tmp_path / "out.json")
    first, second = alone["geometry"]["coordinates"]
    assert first[:3] == second[:3] == [5, 5, 0]
    assert second[3] - first[3] == CLOCK.period / 2


def test_names_are_kept_and_fractions_of_seconds_too(tmp_path):
    clock = Clock("2026-05-04T00:00:00.500000+00:00", 1.0)
    write_lines(plain(traj_id=['a"', 'a"', "b"], clock=clock), tmp_path / "out.json")

    features = read_lines(tmp_path / "out.json")
    assert [feature["properties"]["traj_id"] for feature in features] == ['a"', "b"]
    assert features[0]["geometry"]["coordinates"][0][3] % 1 == 0.5


@pytest.mark.filterwarnings("ignore")  # that it does not read the time
@pytest.mark.parametrize("crs", [None, "EPSG:4326"])
def test_gdal_reads_the_lines(crs, tmp_path):
    write_lines(plain(clock=CLOCK, crs=crs), tmp_path / "out.geojson")

    frame = geopandas.read_file(tmp_path / "out.geojson")
    assert frame.geometry.geom_type.tolist() == ["LineString"] * 2
    assert [place[:2] for place in frame.geometry[0].coords] == [(1, 1), (2, 1)]


def test_without_a_clock_nothing_is_written(tmp_path):
    with pytest.raises(OutputError, match="needs real times"):
        write_lines(plain(), tmp_path / "out.json")
    assert not list(tmp_path.iterdir())
