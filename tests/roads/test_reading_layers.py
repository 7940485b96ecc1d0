"""GeoPackages and Shapefiles become roads, whatever their layers are called."""

import numpy as np
import pytest

from retrasyn.errors import InputError, MissingExtra
from retrasyn.roads.network import RoadNetwork
from retrasyn.roads.reading_networks import network_files, read_network

pyogrio = pytest.importorskip("pyogrio")
shapely = pytest.importorskip("shapely")

STREETS = [[(8.1, 53.1), (8.2, 53.1)], [(8.2, 53.1), (8.2, 53.2)], [(8.2, 53.2), (8.1, 53.1)]]


def write(path, lines=STREETS, *, kind="LineString", crs="EPSG:4326", layer=None, **columns):
    made = {
        "LineString": shapely.LineString,
        "MultiLineString": lambda x: shapely.MultiLineString([x]),
    }
    made["Point"] = lambda places: shapely.Point(places[0])
    pyogrio.raw.write(
        path,
        shapely.to_wkb(np.array([made[kind](line) for line in lines])),
        [np.array(values, object) for values in columns.values()],
        list(columns),
        geometry_type=kind,
        crs=crs,
        layer=layer,
        append=layer is not None and path.exists(),
    )
    return path


@pytest.mark.parametrize("name", ["town.gpkg", "town.shp"])
def test_lines_classes_and_one_ways_are_read(tmp_path, name):
    tags = {"fclass": ["primary", "residential", "footway"], "oneway": ["B", "F", "B"]}
    path = write(tmp_path / name, [*STREETS[:2], STREETS[2]], **tags)
    path = write(
        tmp_path / f"ring-{name}",
        fclass=["primary", "residential", "tertiary"],
        oneway=["F", "F", "F"],
    )
    network = read_network(path)

    assert (network.n_nodes, network.n_edges, network.crs) == (3, 3, "EPSG:4326")
    assert network.road_class.tolist() == [2, 5, 4]
    assert sorted(network.one_way.tolist()) == [-1, 1, 1]


def test_lines_of_every_layer_are_read_and_what_is_no_road_is_left(tmp_path):
    path = tmp_path / "region.gpkg"
    write(path, layer="roads", fclass=["trunk", "trunk", None])
    write(path, layer="rails", fclass=["rail", "rail", "rail"])
    write(path, layer="places", kind="Point", fclass=["city", "town", "village"])
    write(
        path, [[(8.2, 53.2), (8.3, 53.3)]], layer="more", kind="MultiLineString", highway=["road"]
    )
    network = read_network(path)

    assert network.n_edges == 3
    assert network.n_others == 4
    assert network.x.max() == 8.3


def test_all_files_of_a_shapefile_belong_to_it(tmp_path):
    path = write(tmp_path / "town.shp")

    assert [file.suffix for file in network_files(path)] == [".shp", ".dbf", ".prj", ".shx"]
    assert isinstance(read_network(path), RoadNetwork)
    assert not read_network(path).classed


def test_layers_in_two_systems_are_refused(tmp_path):
    path = tmp_path / "two.gpkg"
    write(path, layer="a")
    write(path, layer="b", crs="EPSG:25832")
    with pytest.raises(InputError, match="in 2 coordinate systems"):
        read_network(path)


def test_points_alone_are_no_roads(tmp_path):
    path = write(tmp_path / "points.gpkg", kind="Point")
    with pytest.raises(InputError, match=r"points\.gpkg has no lines of roads"):
        read_network(path)


@pytest.mark.parametrize("name", ["town.gpkg", "town.shp"])
@pytest.mark.parametrize("content", [b"", b"nonsense", b"SQLite format 3\0" + bytes(100)])
def test_what_is_no_such_file_is_refused_in_one_line(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_network(path)

    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "library"),
    [("a.gpkg", "pyogrio"), ("a.shp", "pyogrio"), ("a.osm.pbf", "osmium")],
)
def test_without_the_extra_the_command_to_install_it_is_said(tmp_path, monkeypatch, name, library):
    import sys

    monkeypatch.setitem(sys.modules, library, None)
    (tmp_path / name).write_bytes(b"something")
    with pytest.raises(MissingExtra, match=rf"{library} is not installed: pip install .*geo"):
        read_network(tmp_path / name)
