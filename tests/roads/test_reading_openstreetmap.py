"""Extracts of OpenStreetMap become roads."""

import pytest

from retrasyn.errors import InputError
from retrasyn.roads.opening import open_map
from retrasyn.roads.reading_networks import read_network
from retrasyn.space import Box

osmium = pytest.importorskip("osmium")

NODES = {1: (8.10, 53.10), 2: (8.20, 53.10), 3: (8.20, 53.20), 4: (8.10, 53.20), 5: (8.15, 53.15)}
WAYS = [
    ([1, 2, 3], {"highway": "primary"}),
    ([3, 4], {"highway": "residential"}),
    ([4, 1], {"highway": "residential"}),
    ([1, 5], {"highway": "tertiary", "oneway": "yes"}),
    ([5, 3], {"highway": "tertiary", "oneway": "yes"}),
    ([2, 4], {"highway": "footway"}),
    ([1, 3], {"railway": "rail"}),
]


def write(path, ways=WAYS):
    with osmium.SimpleWriter(str(path)) as writer:
        for number, place in NODES.items():
            writer.add_node(osmium.osm.mutable.Node(id=number, location=place))
        for number, (nodes, tags) in enumerate(ways, 1):
            writer.add_way(osmium.osm.mutable.Way(id=number, nodes=nodes, tags=tags))
    return path


def test_roads_for_cars_are_read_with_classes_and_one_ways(tmp_path):
    network = read_network(write(tmp_path / "town.osm.pbf"))

    assert (network.n_nodes, network.n_edges) == (5, 6)
    assert sorted(network.road_class.tolist()) == [2, 2, 4, 4, 5, 5]
    assert (network.one_way != 0).sum() == 2
    assert (network.n_others, network.crs) == (1, "EPSG:4326")
    assert network.x.min() == pytest.approx(8.1)


def test_a_way_that_the_extract_cuts_ends_there(tmp_path):
    ways = [([1, 2, 99, 3, 4], {"highway": "road"}), ([2, 3], {"highway": "road"})]
    network = read_network(write(tmp_path / "cut.osm.pbf", ways))

    assert (network.n_nodes, network.n_edges) == (4, 3)


def test_the_map_comes_into_the_coordinates_of_the_data(tmp_path):
    pytest.importorskip("pyproj")
    path = write(tmp_path / "town.osm.pbf")
    degrees = open_map(Box(8.0, 53.0, 8.3, 53.3), roads=path)
    metres = open_map(Box(430_000, 5_870_000, 455_000, 5_900_000), roads=path, crs="EPSG:25832")

    assert degrees.roads.n_edges == metres.roads.n_edges == 6
    assert degrees.sha256 == metres.sha256
    assert degrees.weighting == "between"
    assert metres.roads.length.sum() == pytest.approx(48_600, rel=0.01)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\0\0\0\x0d\x0a\x09OSMHeader\x18\x7c"])
def test_what_is_no_extract_is_refused_in_one_line(tmp_path, content):
    path = tmp_path / "bad.osm.pbf"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_network(path)

    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_extract_without_roads_is_refused(tmp_path):
    path = write(tmp_path / "paths.osm.pbf", [([1, 2], {"highway": "path"})])
    with pytest.raises(InputError, match="no lines of roads, and 1 that are no roads for cars"):
        read_network(path)
