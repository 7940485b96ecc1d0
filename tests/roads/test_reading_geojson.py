"""Lines of GeoJSON become roads: classes, one-ways and coordinates as the file says."""

import json

import numpy as np
import pytest

from retrasyn.data.writing_roads import write_roads
from retrasyn.errors import InputError
from retrasyn.roads.lines import CLASS_OF, way_of
from retrasyn.roads.network import DisconnectedNetworkWarning, RoadNetwork
from retrasyn.roads.reading_networks import read_network


def feature(coordinates, kind="LineString", **properties):
    geometry = {"type": kind, "coordinates": coordinates}
    return {"type": "Feature", "properties": properties or None, "geometry": geometry}


def write(path, *features, **more):
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features} | more))
    return path


def test_lines_meet_where_they_share_a_vertex(tmp_path):
    path = write(
        tmp_path / "cross.geojson",
        feature([[0, 1], [1, 1], [2, 1, 17.5]]),
        feature([[[1, 0], [1, 1]], [[1, 1], [1, 2]]], "MultiLineString"),
        feature([1, 5], "Point"),
        {"type": "Feature", "geometry": None},
    )
    network = read_network(path)

    assert (network.n_nodes, network.n_edges) == (5, 4)
    assert not network.classed
    assert network.length.tolist() == [1, 1, 1, 1]


def test_a_file_may_be_one_geometry_or_a_collection(tmp_path):
    line = {"type": "LineString", "coordinates": [[0, 0], [1, 0]]}
    for whole in (
        line,
        {"type": "GeometryCollection", "geometries": [line]},
        feature([[0, 0], [1, 0]]),
    ):
        (tmp_path / "one.json").write_text(json.dumps(whole))
        assert read_network(tmp_path / "one.json").n_edges == 1


def test_classes_and_one_ways_are_those_of_the_tags(tmp_path):
    path = write(
        tmp_path / "town.geojson",
        feature([[0, 0], [1, 0]], highway="primary", oneway="yes"),
        feature([[1, 0], [1, 1]], highway="residential", oneway="-1"),
        feature([[0, 0], [1, 1]], fclass="motorway_link", oneway="B"),
        feature([[1, 0], [0, 0]], highway="secondary"),
        feature([[1, 1], [1, 0]], highway="residential", oneway="-1"),
        feature([[0, 0], [5, 5]], highway="footway"),
        feature([[0, 0], [7, 7]], railway="rail"),
    )
    network = read_network(path)

    assert network.classed
    assert network.road_class.tolist() == [2, 5, 1]
    assert network.one_way.tolist() == [0, 0, 0]  # two parallel ones lead there and back
    assert network.x.max() == 1


def test_a_one_way_leads_in_its_direction(tmp_path):
    ring = [[0, 0], [0, 1], [1, 1], [0, 0]]
    path = write(tmp_path / "ring.geojson", feature(ring, junction="roundabout"))
    network = read_network(path)
    turned = read_network(write(tmp_path / "ring.geojson", feature(ring[::-1], oneway=-1)))

    for one in (network, turned):
        leads = {
            (tail, head) if way > 0 else (head, tail)
            for tail, head, way in zip(one.tail, one.head, one.one_way, strict=True)
        }
        assert leads == {(0, 1), (1, 2), (2, 0)}


@pytest.mark.parametrize(
    ("tags", "way"),
    [
        ({}, 0),
        ({"oneway": "no", "highway": "motorway"}, 0),
        ({"oneway": True}, 1),
        ({"oneway": "F"}, 1),
        ({"oneway": "T"}, -1),
        ({"oneway": "B"}, 0),
        ({"oneway": None, "junction": "circular"}, 1),
        ({"oneway": "reversible"}, 0),
    ],
)
def test_the_tag_of_one_ways_has_many_words(tags, way):
    assert way_of(tags) == way


def test_what_was_written_is_read_again(tmp_path):
    network = RoadNetwork.from_edges(
        x=[0.1, 1 / 3, 200.7],
        y=[0, 1e-7, 2],
        tail=[0, 1, 0],
        head=[1, 2, 2],
        road_class=[0, 3, 3],
        one_way=[1, 1, -1],
    )
    write_roads(network, tmp_path / "again.geojson")
    again = read_network(tmp_path / "again.geojson")

    for name in ("x", "y", "tail", "head", "length", "road_class", "one_way"):
        assert np.array_equal(getattr(again, name), getattr(network, name)), name


def test_coordinates_are_degrees_if_they_can_be_or_what_the_file_names(tmp_path):
    path = tmp_path / "roads.geojson"
    far, near = feature([[500, 0], [600, 0]]), feature([[8.1, 53.2], [8.2, 53.1]])
    utm = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::25832"}}
    degrees = {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}

    assert read_network(write(path, near)).crs == "EPSG:4326"
    assert read_network(write(path, far)).crs is None
    assert read_network(write(path, far, crs=utm)).crs == "urn:ogc:def:crs:EPSG::25832"
    assert read_network(write(path, near, crs=degrees)).crs == "EPSG:4326"


def test_parts_that_do_not_meet_are_left_out_with_a_warning(tmp_path):
    path = write(
        tmp_path / "two.geojson", feature([[0, 0], [1, 0], [2, 0]]), feature([[5, 5], [6, 6]])
    )

    with pytest.warns(DisconnectedNetworkWarning, match=r"two\.geojson: .* 2 of 5 nodes"):
        assert read_network(path).n_nodes == 3


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "is empty"),
        ("{", "is not GeoJSON: it is not JSON"),
        ("[]", "is not GeoJSON: it has no type"),
        ('{"type": "FeatureCollection", "features": []}', "has no lines of roads"),
        ('{"type": "Topology"}', "feature 1: 'Topology' is no shape of GeoJSON"),
        (json.dumps(feature([[0, 0]])), "feature 1: a line needs two vertices"),
        (json.dumps(feature([[0, 0], [1]])), "feature 1: it is malformed"),
        (json.dumps(feature([0, 1])), "feature 1: it is malformed"),
        (json.dumps(feature([["a", 0], [1, 1]])), "feature 1: it is malformed"),
        (json.dumps(feature([[10**400, 0], [1, 1]])), "feature 1: it is malformed"),
        (json.dumps(feature([[0, 0], [1, 1]]) | {"properties": ["class"]}), "1: it is malformed"),
        (json.dumps({"type": "FeatureCollection", "features": [7]}), "1: it is malformed"),
        (json.dumps({"type": "Feature", "geometry": "line"}), "1: it is malformed"),
        (json.dumps(feature([[0, 0], [1, 1]], **{"class": 9})), "feature 1: class is '9'"),
        (json.dumps(feature([[0, 0], [1, 1]], highway="path")), "and 1 that are no roads for cars"),
        (json.dumps(feature([[0, 0], [float("nan"), 1]])), "x of node 1 is nan"),
        (json.dumps(feature([[0, 0], [0, 0]])), "at least 2 connected nodes"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(tmp_path, text, named):
    path = tmp_path / "bad.geojson"
    path.write_text(text)

    with pytest.raises(InputError, match=named) as caught:
        read_network(path)

    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bytes_and_other_files_are_refused(tmp_path):
    (tmp_path / "bytes.geojson").write_bytes(b"\xff\x00")
    with pytest.raises(InputError, match="not JSON"):
        read_network(tmp_path / "bytes.geojson")
    with pytest.raises(InputError, match="does not exist"):
        read_network(tmp_path / "none.geojson")
    with pytest.raises(InputError, match=r"no known form; use a file ending in .*\.geojson"):
        read_network(tmp_path / "roads.xml")


def test_every_class_has_a_road_of_openstreetmap():
    assert set(CLASS_OF.values()) == set(range(7))
