"""Public streets: which are drawn, and which way a picture goes along them."""

import numpy as np
import pytest

from retrasyn.report import streets
from retrasyn.report.streets import Ways, street_lines
from retrasyn.roads.network import RoadNetwork
from retrasyn.space import Box
from support.report_pairs import content_of, make_pair, page_of, street_grid, unpack

BOX = Box(0, 0, 1, 1)


def ways_between(network, *points):
    x, y = np.array(points, float).T
    return Ways(network, BOX).between(x, y, np.arange(len(points)) > 0)


def square(**changes):
    """Four streets around a block: 0 lower left, 1 lower right, 2 upper right, 3 upper left."""
    edges = {"tail": [0, 1, 2, 3], "head": [1, 2, 3, 0], "road_class": [3, 3, 3, 3]}
    return RoadNetwork.from_edges(x=[0, 1, 1, 0], y=[0, 0, 1, 1], **edges | changes)


def test_the_way_around_a_corner_passes_the_corner():
    assert ways_between(square(), (0.6, 0), (1, 0.3)) == [[], [1]]
    assert ways_between(square(), (0.6, 0), (0.4, 1)) == [[], [1, 2]]


def test_the_fastest_way_is_taken_not_the_shortest():
    fast_left = square(road_class=[3, 6, 0, 0])
    assert ways_between(fast_left, (0.55, 0), (0.5, 1)) == [[], [0, 3]]


def test_a_one_way_street_is_not_driven_the_wrong_way():
    circle = square(one_way=[1, 1, 1, 1])
    assert ways_between(circle, (0.6, 0), (1, 0.3)) == [[], [1]]
    assert ways_between(circle, (1, 0.3), (0.6, 0)) == [[], [2, 3, 0]]


def test_along_one_street_and_off_the_streets_the_way_is_straight():
    assert ways_between(square(), (0.2, 0), (0.7, 0)) == [[], []]
    assert ways_between(square(), (0.2, 0), (0.5, 0.5), (1, 0.5)) == [[], [], []]


def test_another_stream_begins_where_it_begins():
    x, y = np.array([0.6, 1.0]), np.array([0.0, 0.3])
    assert Ways(square(), BOX).between(x, y, np.array([False, False])) == [[], []]


def test_a_search_that_takes_too_long_gives_a_straight_line(monkeypatch):
    monkeypatch.setattr(streets, "_MOST_VISITS", 1)
    assert ways_between(square(), (0.6, 0), (0.4, 1)) == [[], []]


def test_corners_are_put_before_the_point_they_lead_to():
    x, y, n_corners = Ways(square(), BOX).with_corners(
        np.array([0.6, 1.0]), np.array([0.0, 0.3]), np.array([False, True])
    )
    assert (x.tolist(), y.tolist()) == ([0.6, 1.0, 1.0], [0.0, 0.0, 0.3])
    assert n_corners.tolist() == [0, 1]


def test_a_large_network_is_drawn_by_its_main_streets(monkeypatch):
    monkeypatch.setattr(streets, "MOST_DRAWN", 3)
    lines = street_lines(square(road_class=[3, 0, 2, 5]), BOX)
    assert (lines["n"], lines["n_main"]) == (4, 2)
    ends = unpack(lines["ends"], 3, 4) / 65535
    assert ends.tolist() == [[1, 0, 1, 1], [1, 1, 0, 1], [0, 0, 1, 0]]


def test_trips_of_a_page_are_on_its_streets():
    pair, network = make_pair(), street_grid()
    told = content_of(pair, roads=network).data
    sample = told["sample"]["real"]
    assert told["streets"]["n"] == network.n_edges
    assert (
        unpack(sample["x"]).size
        == unpack(sample["n_points"]).sum() + unpack(sample["corners"]).sum()
    )


def test_a_page_with_many_streets_stays_small(tmp_path):
    page = page_of(
        make_pair(n=400, n_timestamps=900), tmp_path / "report.html", roads=street_grid(120)
    )
    assert len(page) < 2_000_000


@pytest.mark.parametrize("roads", [None, street_grid()], ids=["without", "with"])
def test_the_page_says_how_many_streets_it_has_if_any(tmp_path, roads):
    page = page_of(make_pair(), tmp_path / "report.html", roads=roads)
    assert ("streets of the public map" in page) == (roads is not None)
