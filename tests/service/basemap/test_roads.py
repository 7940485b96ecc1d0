"""Roads: the lines of a file that touch the box, with their classes and no other properties."""

import json

import numpy as np
import pytest

from retrasyn.errors import InputError
from retrasyn.service.basemap import basemap
from retrasyn.service.basemap.basemap import BaseMap, read_roads
from retrasyn.service.settings import MapSettings
from retrasyn.space import Box
from support.public_maps import public_map

BOX = Box(0, 0, 10, 10)
LINE = {"type": "LineString", "coordinates": [[1, 1, 7.5], [2.123456789, 3]]}
FAR = {"type": "LineString", "coordinates": [[11, 11], [12, 12]]}
TWO = {"type": "MultiLineString", "coordinates": [[[5, 5], [6, 6]], [[20, 20], [30, 30]]]}


def roads(path, thing):
    path.write_text(thing if isinstance(thing, str) else json.dumps(thing))
    return json.loads(read_roads(path, BOX))


def feature(geometry):
    return {"type": "Feature", "properties": {"name": "Secret Lane"}, "geometry": geometry}


@pytest.mark.parametrize(
    "thing",
    [
        {"type": "FeatureCollection", "features": [feature(g) for g in (LINE, FAR, TWO, None)]},
        {"type": "GeometryCollection", "geometries": [LINE, FAR, TWO]},
    ],
)
def test_lines_that_touch_the_box_are_kept_and_nothing_else(tmp_path, thing):
    found = roads(tmp_path / "roads.geojson", thing)
    (only,) = found["features"]
    assert found["type"] == "FeatureCollection"
    assert only["geometry"]["coordinates"] == [
        [[1.0, 1.0], [2.1234568, 3.0]],
        [[5.0, 5.0], [6.0, 6.0]],
    ]
    assert only["properties"] == {}


def test_class_and_direction_are_kept_where_they_are_those_of_road_networks(tmp_path):
    kinds = [
        *({"class": known, "id": 1} for known in (2, 0, 2, 7, "primary", True, None)),
        *({"class": 2, "oneway": said} for said in ("yes", "no", 1)),
    ]
    features = [{**feature(LINE), "properties": kind} for kind in kinds]
    found = roads(tmp_path / "roads.json", {"type": "FeatureCollection", "features": features})
    told = [(one["properties"], len(one["geometry"]["coordinates"])) for one in found["features"]]
    assert told == [
        ({"class": 2}, 4),
        ({"class": 0}, 1),
        ({}, 4),
        ({"class": 2, "oneway": "yes"}, 1),
    ]


@pytest.mark.parametrize(("most", "classes"), [(40, 7), (39, 6), (6, 1), (5, 0)])
def test_roads_of_a_campaign_are_drawn_unless_others_are_named_and_the_fastest_of_many(
    most, classes, tmp_path, monkeypatch
):
    monkeypatch.setattr(basemap, "_MOST_ROADS", most)
    network = public_map(BOX, roads=True).roads
    assert network.n_edges == 40
    assert np.bincount(network.road_class).tolist() == [6, 6, 6, 6, 6, 5, 5]
    bare = BaseMap.open(MapSettings(), BOX)
    drawn = bare.with_roads(network).roads
    found = [] if drawn is None else json.loads(drawn)["features"]
    assert {one["properties"]["class"] for one in found} == set(range(classes))
    assert bare.with_roads(None) is bare
    (tmp_path / "own.geojson").write_text(json.dumps(LINE))
    own = BaseMap.open(MapSettings(roads=tmp_path / "own.geojson"), BOX)
    assert own.with_roads(network) is own


def test_a_line_that_crosses_the_box_between_its_ends_is_kept(tmp_path):
    found = roads(
        tmp_path / "roads.json", {"type": "LineString", "coordinates": [[-5, 5], [15, 5]]}
    )
    assert found["features"][0]["geometry"]["coordinates"] == [[[-5.0, 5.0], [15.0, 5.0]]]


@pytest.mark.parametrize(
    ("thing", "says"),
    [
        ("no json", "is not JSON"),
        ("[1, 2]", "must hold a JSON object"),
        ('{"type": "LineString", "coordinates": [[NaN, 1], [2, 2]]}', "is not JSON"),
        ({"type": "LineString", "coordinates": [["a", 1], [2, 2]]}, "is not GeoJSON"),
        ({"type": "LineString", "coordinates": [[1, 1]]}, "is not GeoJSON"),
        ({"type": "LineString", "coordinates": [[1], [2]]}, "is not GeoJSON"),
        ({"type": "LineString"}, "is not GeoJSON"),
        ({"type": "Point", "coordinates": [1, 1]}, "is not GeoJSON"),
        ({"features": []}, "is not GeoJSON"),
        ({"type": "FeatureCollection", "features": []}, "has no line in the box 0,0,10,10"),
        (FAR, "has no line in the box"),
        ("[" * 100_000, "is not JSON"),
        ('{"type": "LineString", "coordinates": [[1e999, 1], [2, 2]]}', "is not GeoJSON"),
    ],
)
def test_what_is_no_roads_is_refused_in_one_line(tmp_path, thing, says):
    with pytest.raises(InputError, match=says) as caught:
        roads(tmp_path / "roads.geojson", thing)
    assert "\n" not in str(caught.value)
    assert "roads.geojson" in str(caught.value)


def test_a_missing_file_of_roads_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"map\.roads .* cannot be read: No such file"):
        read_roads(tmp_path / "none.geojson", BOX)


def test_a_file_that_is_too_large_is_refused_unread(tmp_path):
    path = tmp_path / "roads.geojson"
    with path.open("wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(InputError, match="larger than 64 MiB"):
        read_roads(path, BOX)
