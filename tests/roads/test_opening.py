"""What may be named as a public map, what it becomes, and what is refused."""

import hashlib
import math

import numpy as np
import pytest

from retrasyn.errors import InputError, SettingError
from retrasyn.roads import rasters
from retrasyn.roads.network import RoadNetwork
from retrasyn.roads.opening import open_map
from retrasyn.roads.public_map import SIDE
from retrasyn.roads.summary import RoadSummary
from retrasyn.space import Box
from retrasyn.space.grid import Grid

BOX = Box(0.0, 0.0, 2.0, 2.0)
BEIJING = Box(116.15, 39.75, 116.60, 40.10)


@pytest.fixture
def roads(tmp_path):
    nodes, edges = tmp_path / "town.cnode", tmp_path / "town.cedge"
    nodes.write_text("0 0 0\n1 1 0\n2 2 2\n3 3 2\n")
    edges.write_text("0 0 1 1\n1 1 2 3\n2 2 3 1\n")
    return edges


def test_roads_become_a_map_of_the_box(roads):
    known = open_map(BOX, roads=roads)

    assert known.weighting == "length"  # its roads have no classes
    assert known.source == "roads of town.cedge"
    assert (
        known.sha256
        == hashlib.sha256(roads.with_suffix(".cnode").read_bytes() + roads.read_bytes()).hexdigest()
    )
    assert known.raster.shape == (SIDE, SIDE)
    assert known.raster.sum() == pytest.approx(1)
    assert known.raster.min() == pytest.approx(0.002 / SIDE**2)
    assert known.roads.x.max() == 2
    assert known.roads.n_left_out == 0
    assert known.shares(Grid(BOX, 6)).sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("prior", "made"), [("class", rasters.by_class), ("length", rasters.by_length)]
)
def test_the_prior_says_what_roads_weigh(roads, prior, made):
    known = open_map(BOX, roads=roads, prior=prior)
    weights = made(known.roads, BOX)

    assert known.raster == pytest.approx(0.998 * weights / weights.sum() + 0.002 / SIDE**2)
    assert known.weighting == prior


def test_the_same_files_make_the_same_map(roads):
    first, again = open_map(BOX, roads=roads), open_map(BOX, roads=str(roads))

    assert first == again
    assert first.raster.tobytes() == again.raster.tobytes()
    assert first != open_map(BOX, roads=roads, prior="between")


def test_a_network_may_be_given_itself():
    network = RoadNetwork.from_edges(x=[0, 1], y=[0, 1], tail=[0], head=[1])
    other = RoadNetwork.from_edges(x=[0, 1], y=[0, 2], tail=[0], head=[1])

    assert open_map(BOX, roads=network).roads is network
    assert open_map(BOX, roads=network).sha256 == open_map(BOX, roads=network).sha256
    assert open_map(BOX, roads=network).sha256 != open_map(BOX, roads=other).sha256


def test_a_centre_is_in_the_unit_of_the_data_or_in_its_own():
    plain = open_map(BOX, prior="centre:0.5,0.5,0.7")
    metres = open_map(BOX, prior="centre:0.5,0.5,0.7m", crs="EPSG:3857")
    degrees = open_map(BEIJING, prior="centre:116.397,39.908,7km")

    assert plain.roads is None
    assert plain.raster == pytest.approx(metres.raster)
    ratio = degrees.raster[0, 26] / degrees.raster[47, 26]
    x = BEIJING.x0 + 26.5 / SIDE * 0.45
    near, far = (
        6371.0088
        * math.acos(
            math.sin(math.radians(39.908)) * math.sin(math.radians(y))
            + math.cos(math.radians(39.908))
            * math.cos(math.radians(y))
            * math.cos(math.radians(x - 116.397))
        )
        for y in (BEIJING.y0 + 0.5 / SIDE * 0.35, BEIJING.y1 - 0.5 / SIDE * 0.35)
    )
    assert ratio == pytest.approx(math.exp((far - near) / 7), rel=0.02)


def test_population_is_summed_over_the_squares(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("weight,x,y\n3,0.01,0.01\n1,1.99,1.99\n5,7,7\n")
    known = open_map(BOX, prior=path)

    assert known.weighting == "people.csv"
    assert known.source == "population of people.csv"
    assert known.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert known.raster[0, 0] - known.raster[1, 1] == pytest.approx(0.998 * 0.75)


def test_population_may_come_with_roads(roads, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("lon,lat,population\n1,1,3\n")
    known = open_map(BOX, roads=roads, prior=path)

    assert known.roads is not None
    assert known.source == "roads of town.cedge, population of people.csv"


@pytest.mark.parametrize(
    ("prior", "named"),
    [
        ("betwen", "prior 'betwen' is not known .* did you mean between"),
        ("clas", "did you mean class"),
        ("people.csv", "no such file"),
        ("between", "made of roads; give roads as well"),
        ("centre:1,2", "does not read centre:x,y,scale"),
        ("centre:1,2,3miles", "does not read centre:x,y,scale"),
        ("centre:1,2,-3", "the scale above 0"),
        ("centre:nan,2,3", "finite"),
        ("centre:one,2,3", "finite"),
        ("x" * 5000, "is not known"),
        (None, "needs roads, a prior or both"),
    ],
)
def test_a_prior_that_means_nothing_is_refused_in_one_line(prior, named):
    with pytest.raises(SettingError, match=named) as caught:
        open_map(BOX, prior=prior)

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "has the columns ''"),
        ("x,y\n1,2\n", "it needs x,y,weight or x,y,people or lon,lat,population"),
        ("x,y,weight\n", "no rows"),
        ("x,y,weight\n1,nan,3\n", "line 2: x,y,weight is '1,nan,3'"),
        ("x,y,weight\n1,2,3\n1,2,-3\n", "line 3.*not below 0"),
        ("x,y,weight\n1,2\n", "line 2"),
        ("x,y,weight\n100,100,3\n", "nobody of .* box 0,0,2,2; its own is"),
        ("x,y,weight\n1,1,0\n", "nobody"),
    ],
)
def test_a_population_that_cannot_be_used_is_refused(tmp_path, text, named):
    path = tmp_path / "people.csv"
    path.write_text(text)

    with pytest.raises(InputError, match=named):
        open_map(BOX, prior=path)


def test_bytes_are_no_population(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(InputError, match="not a table of plain text"):
        open_map(BOX, prior=path)
    other = tmp_path / "people.xyz"
    other.write_text("1")
    with pytest.raises(InputError, match="ends in none of"):
        open_map(BOX, prior=other)


def test_a_map_of_another_place_is_refused(roads):
    with pytest.raises(InputError, match=r"town.cedge lie inside the box 50,50,60,60; .* 0,0,3,2"):
        open_map(Box(50, 50, 60, 60), roads=roads)


def test_a_summary_counts_what_was_understood(roads):
    summary = RoadSummary.of(open_map(BOX, roads=roads).roads)

    assert (summary.n_nodes, summary.n_edges, summary.n_stubs) == (3, 2, 2)
    assert summary.by_class is None
    assert summary.length == pytest.approx(4)
    assert np.isclose(summary.box.y1, 2)
    assert summary.to_dict()["n_cut"] == 0
