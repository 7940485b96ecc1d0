"""Zones from grids, hexagons and files of polygons find the points that are theirs."""

import json

import numpy as np
import pytest

import naive
from retrasyn import Box, Grid
from retrasyn.answers.zones import open_zones
from retrasyn.errors import InputError, MissingExtra, SettingError
from support.asked import RINGS, write_zones

pyogrio = pytest.importorskip("pyogrio")
shapely = pytest.importorskip("shapely")

BOX = Box(0, 0, 10, 10)
TOWN = Box(8.1, 53.0, 8.4, 53.3)


def points(box, n=20_000, seed=3):
    rng = np.random.default_rng(seed)
    wide = 0.1 * (box.x1 - box.x0)
    return rng.uniform(box.x0 - wide, box.x1 + wide, n), rng.uniform(box.y0 - wide, box.y1, n)


@pytest.fixture(params=["compared", "by raster"])
def raster(request, monkeypatch):
    """Few points are compared with the shapes, many looked up in a raster."""
    few = 0 if request.param == "by raster" else 1 << 40
    monkeypatch.setattr("retrasyn.answers.shapes._FEW", few)


def names_of(zones, x, y):
    return np.array([*zones.names, "-"])[zones.locate(x, y)].tolist()


def test_polygons_have_holes_overlap_and_leave_the_box(tmp_path, raster):
    zones = open_zones(write_zones(tmp_path / "zones.geojson"), box=BOX)
    x, y = points(BOX)

    expected = [naive.zone_of(*place, RINGS) for place in zip(x.tolist(), y.tolist(), strict=True)]

    assert zones.names == ["park", "centre", "harbour"]
    assert names_of(zones, x, y) == expected
    assert set(expected) == {"park", "centre", "harbour", "-"}


def test_a_point_on_a_border_is_in_the_first_zone_that_it_bounds(tmp_path, raster):
    squares = {
        f"{column}{row}": [
            [
                (column, row),
                (column + 1, row),
                (column + 1, row + 1),
                (column, row + 1),
                (column, row),
            ]
        ]
        for row in range(4)
        for column in range(4)
    }
    zones = open_zones(write_zones(tmp_path / "zones.geojson", squares), box=BOX)
    x, y = (
        each.ravel() for each in np.meshgrid(np.arange(0, 4.25, 0.25), np.arange(0, 4.25, 0.25))
    )

    expected = [
        f"{max(int(np.ceil(a)) - 1, 0)}{max(int(np.ceil(b)) - 1, 0)}"
        for a, b in zip(x, y, strict=True)
    ]

    assert names_of(zones, x, y) == expected


@pytest.mark.parametrize("resolution", [5, 8])
@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:25832", None])
def test_hexagons_are_those_of_h3(raster, resolution, crs):
    h3 = pytest.importorskip("h3")
    to_degrees, box = None, TOWN
    if crs == "EPSG:25832":
        from retrasyn.space.projection import Projection

        to_degrees = Projection(crs, "EPSG:4326")
        box = Box(440_000, 5_872_000, 460_000, 5_905_000)
    zones = open_zones(f"h3:{resolution}", box=box, crs=crs)
    x, y = points(box, 5000)

    found = names_of(zones, x, y)

    longitude, latitude = (x, y) if to_degrees is None else to_degrees(x, y)
    exact = [
        h3.latlng_to_cell(*place, resolution) for place in zip(latitude, longitude, strict=True)
    ]
    assert found == [cell if cell in set(zones.names) else "-" for cell in exact]
    inside = (x >= box.x0) & (x <= box.x1) & (y >= box.y0) & (y <= box.y1)
    assert "-" not in np.array(found)[inside]


def test_cells_of_a_grid_are_zones_and_what_is_outside_is_none():
    zones = open_zones("grid:3", box=Box(0, 0, 3, 3))

    found = zones.locate(np.array([0.5, 2.5, 3, 3.1]), np.array([0.5, 1.5, 3, 1]))

    assert found.tolist() == [0, 5, 8, 9]
    ring = json.loads(zones.outlines()[5])["coordinates"][0]
    assert ring == [[2, 1], [3, 1], [3, 2], [2, 2], [2, 1]]
    assert open_zones(Grid(BOX, 2), box=BOX).names == ["0", "1", "2", "3"]
    assert open_zones(zones, box=BOX) is zones


def write_layer(path, shapes, *, crs="EPSG:4326", kind="Polygon", layer=None, **columns):
    pyogrio.raw.write(
        path,
        shapely.to_wkb(np.array(shapes, object)),
        [
            np.array(values, object if isinstance(values[0], str) else float)
            for values in columns.values()
        ],
        list(columns),
        geometry_type=kind,
        crs=crs,
        layer=layer,
        append=layer is not None and path.exists(),
    )
    return path


@pytest.mark.parametrize("name", ["wards.gpkg", "wards.shp", "wards.geojson", "wards.fgb"])
def test_files_of_all_kinds_are_read_and_zones_of_one_name_are_one(tmp_path, name):
    shapes = [shapely.box(8.1, 53.0, 8.2, 53.1), shapely.box(8.2, 53.0, 8.3, 53.1)]
    path = write_layer(
        tmp_path / name, [*shapes, shapely.box(8.3, 53.2, 8.4, 53.3)], NAME=["a", "b", "a"]
    )

    zones = open_zones(path, box=TOWN, crs="EPSG:4326")

    order = dict(zip(zones.names, range(2), strict=True))
    assert sorted(order) == ["a", "b"]
    found = zones.locate(np.array([8.15, 8.25, 8.35, 8.35]), np.array([53.05, 53.05, 53.25, 53.05]))
    assert found.tolist() == [order["a"], order["b"], order["a"], 2]
    kinds = {json.loads(outline)["type"] for outline in zones.outlines()}
    assert kinds == {"Polygon", "MultiPolygon"}


def test_zones_are_brought_into_the_coordinates_of_the_data(tmp_path):
    path = write_layer(tmp_path / "ward.gpkg", [shapely.box(*TOWN)], name=["town"])

    zones = open_zones(path, box=Box(440_000, 5_872_000, 460_000, 5_905_000), crs="EPSG:25832")

    x0, y0, x1, y1 = shapely.total_bounds(zones.shapes)
    assert 439_000 < x0 < 441_000
    assert 459_000 < x1 < 461_000
    assert 5_871_000 < y0 < y1 < 5_907_000


def test_names_come_from_a_property_or_are_numbers(tmp_path):
    square = shapely.box(0, 0, 1, 1)
    shapes = [shapely.affinity.translate(square, 2 * k) for k in range(3)]
    numbered = write_layer(tmp_path / "a.gpkg", shapes, size=[1.5, 2.5, 3.5])
    named = write_layer(tmp_path / "b.gpkg", shapes, ID=[7.0, 8.0, np.nan], size=[1.5, 2.5, 3.5])

    assert open_zones(numbered, box=BOX).names == ["1", "2", "3"]
    assert open_zones(named, box=BOX).names == ["7", "8", "zone 3"]
    assert open_zones(named, box=BOX, named_by="size").names == ["1.5", "2.5", "3.5"]


def test_polygons_that_cross_themselves_are_mended_and_other_shapes_left_out(tmp_path):
    bow = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
    path = write_layer(
        tmp_path / "zones.gpkg", [bow, shapely.Point(5, 5)], kind="Unknown", name=["bow", "dot"]
    )

    zones = open_zones(path, box=BOX)

    assert zones.names == ["bow"]
    assert [note.partition(": ")[2] for note in zones.notes] == [
        "1 shapes that are no polygons were left out",
        "1 polygons crossed themselves and were mended",
    ]
    assert zones.locate(np.array([0.1, 1.0, 1.9]), np.array([1.0, 0.1, 1.0])).tolist() == [0, 1, 0]


def test_files_that_are_no_zones_are_refused(tmp_path):
    far = write_layer(tmp_path / "far.gpkg", [shapely.box(50, 50, 51, 51)], name=["x"])
    two = write_layer(tmp_path / "two.gpkg", [shapely.box(0, 0, 1, 1)], layer="one", name=["x"])
    write_layer(two, [shapely.box(0, 0, 1, 1)], layer="two", name=["x"])
    dots = write_layer(tmp_path / "dots.gpkg", [shapely.Point(1, 1)], kind="Point", name=["x"])
    taken = write_layer(tmp_path / "taken.gpkg", [shapely.box(0, 0, 1, 1)], name=["outside"])
    broken = tmp_path / "broken.geojson"
    broken.write_text('{"type": "FeatureColl')
    for path, message in {
        far: "lie in 50,50,51,51, the data in 0,0,10,10: are they of another place",
        two: "has 2 layers of shapes",
        dots: "has no polygons",
        taken: "has a zone named 'outside'",
        broken: "cannot be read as geojson",
        tmp_path / "none.shp": "do not exist",
    }.items():
        with pytest.raises(InputError, match=message):
            open_zones(path, box=BOX)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("wards", r"zones 'wards' are not known; choose grid:K, h3:RES or a file ending in \.geo"),
        ("grid:", "need a whole number after the colon"),
        ("h3:nine", "need a whole number after the colon"),
        ("grid:65", r"grid side 65 is outside 1\.\.64"),
        ("h3:16", "resolutions are 0 to 15"),
        ("h3:11", r"more than 100,000; choose a lower resolution"),
    ],
)
def test_unknown_zones_are_refused(asked, message):
    if asked[:4] == "h3:1":
        pytest.importorskip("h3")
    with pytest.raises(SettingError, match=message):
        open_zones(asked, box=TOWN)


def test_hexagons_need_degrees():
    pytest.importorskip("h3")
    with pytest.raises(SettingError, match="h3:8 needs degrees, and the box"):
        open_zones("h3:8", box=Box(281, 3935, 23854, 30851))


def test_only_polygons_are_named_by_a_property():
    with pytest.raises(SettingError, match="`named_by` is a property of polygons"):
        open_zones("grid:3", box=BOX, named_by="name")


def test_a_missing_library_says_what_to_type(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "h3", None)
    with pytest.raises(MissingExtra, match=r'h3 is not installed: pip install "retrasyn\[geo\]"'):
        open_zones("h3:8", box=TOWN)
