"""Pictures of trajectories: what is counted, what is drawn, and whom a map asks."""

import math
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest

from retrasyn.data.pictures import N_LEVELS, Picture
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import InputError, MissingExtra, SettingError
from retrasyn.space import Box, Grid

UNIT = (0, 0, 1, 1)
LEAFLET = {
    f"https://cdn.jsdelivr.net/npm/leaflet@1.9.3/dist/leaflet.{end}" for end in ("js", "css")
}


@pytest.fixture
def walks():
    """Three walks of two points and one that stays a moment, in a box of four cells."""
    return Trajectories.from_columns(
        traj_id=[1, 1, 2, 2, 3, 3, 4],
        t=[0, 1, 0, 1, 5, 6, 3],
        x=[0.1, 0.2, 0.1, 0.7, 0.3, 0.4, 0.9],
        y=[0.1, 0.1, 0.2, 0.2, 0.9, 0.8, 0.9],
        crs="EPSG:4326",
    )


@pytest.fixture
def nobody():
    nothing = np.empty(0, np.int64)
    return Trajectories(nothing, nothing, np.zeros(1, np.int64), np.empty(0), np.empty(0))


def test_shares_are_of_all_points_from_the_lowest_row_up(walks):
    picture = Picture.of(walks, grid=2, box=UNIT)
    assert (7 * picture.shares).round(9).tolist() == [[3, 1], [2, 1]]
    assert picture.grid == Grid(Box(*UNIT), 2)


def test_points_outside_the_box_lie_in_no_cell(walks):
    shares = Picture.of(walks, grid=1, box=(0, 0, 0.5, 0.5)).shares
    assert shares.tolist() == [[pytest.approx(3 / 7)]]


def test_of_very_many_points_only_some_are_counted(walks, monkeypatch):
    monkeypatch.setattr("retrasyn.data.pictures._MOST", 4)
    assert (4 * Picture.of(walks, grid=2, box=UNIT).shares).tolist() == [[2, 0], [1, 1]]


def test_the_paths_are_whole_streams_evenly_chosen_among_those_that_have_two_points(walks):
    every = Picture.of(walks, n_paths=60).paths
    assert [path.tolist() for path in every] == [
        [[0.1, 0.1], [0.2, 0.1]],
        [[0.1, 0.2], [0.7, 0.2]],
        [[0.3, 0.9], [0.4, 0.8]],
    ]
    assert [path[0, 0] for path in Picture.of(walks, n_paths=2).paths] == [0.1, 0.3]
    assert Picture.of(walks, n_paths=0).paths == []


def test_the_densest_cell_is_darkest_and_only_an_empty_one_is_blank(walks):
    levels = Picture.of(walks, grid=3, box=UNIT).levels()
    assert levels.max() == N_LEVELS
    assert np.array_equal(levels == 0, Picture.of(walks, grid=3, box=UNIT).shares == 0)
    assert not Picture.of(walks, grid=2, box=(5, 5, 6, 6)).levels().any()


def test_what_has_no_points_is_not_drawn(nobody):
    for draw in (nobody.plot, nobody.explore):
        with pytest.raises(InputError, match=r"no points to draw; .* in its folder"):
            draw()


def test_a_whole_grid_has_its_box(walks):
    with pytest.raises(SettingError, match="a whole grid, which has its box"):
        walks.plot(grid=Grid(Box(*UNIT), 2), box=UNIT)


def test_a_plot_shows_the_box_the_shares_and_the_paths(walks):
    ax = walks.plot(grid=2, box=(0, 0, 1, 60))
    try:
        image, (lines,) = ax.images[0], ax.collections
        assert (7 * image.get_array()).round(9).tolist() == [[5, 2], [0, 0]]
        assert image.get_extent() == [0, 1, 0, 60]
        assert [len(path.vertices) for path in lines.get_paths()] == [2, 2, 2]
        assert (ax.get_xlim(), ax.get_ylim()) == ((0, 1), (0, 60))
        assert ax.get_aspect() == pytest.approx(1 / np.cos(np.pi / 6))  # degrees, half way up
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("longitude", "latitude")
        assert ax.get_title() == "7 points in 4 streams, 3 of them as lines"
    finally:
        plt.close(ax.figure)


def test_a_plot_is_drawn_on_the_axes_that_are_given(walks):
    figure, (left, right) = plt.subplots(1, 2)
    try:
        assert walks.plot(ax=right) is right
        assert (len(left.images), len(right.images)) == (0, 1)
    finally:
        plt.close(figure)


def test_without_matplotlib_or_folium_it_is_said_what_to_type(walks, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(__import__("sys").modules, "folium", None)
    with pytest.raises(MissingExtra, match=r'pip install "retrasyn\[report\]"'):
        walks.plot()
    with pytest.raises(MissingExtra, match=r'pip install "retrasyn\[geo\]"'):
        walks.explore()


def page_of(shown):
    return shown.get_root().render()


def addresses_in(page):
    return set(re.findall(r"""https?://[^"' )]+""", page))


def test_a_map_asks_for_leaflet_and_for_nothing_else(walks):
    assert addresses_in(page_of(walks.explore())) == LEAFLET


def test_streets_are_asked_for_only_by_those_who_want_them(walks):
    asked = addresses_in(page_of(walks.explore(tiles="OpenStreetMap"))) - LEAFLET
    assert any("tile.openstreetmap.org" in one for one in asked)


def test_a_map_has_the_cells_and_paths_in_degrees(walks):
    page = page_of(walks.explore(grid=2, box=UNIT, n_paths=1))
    assert "42.86% of the points" in page
    assert "[[0.1, 0.1], [0.2, 0.1]]" in page
    assert "1 of 4 paths" in page
    assert "fitBounds" in page


def test_projected_coordinates_are_turned_into_degrees():
    metres = Trajectories.from_columns(
        traj_id=[1, 1],
        t=[0, 1],
        x=[12_947_000.0, 12_958_100.0],
        y=[4_852_800.0] * 2,
        crs="EPSG:3857",
    )
    west = math.degrees(12_947_000 / 6_378_137)  # how the Mercator of the web is defined
    assert f"[[{west:.5f}" in page_of(metres.explore())


def test_metres_of_an_unknown_system_have_no_place_on_a_map():
    metres = Trajectories.from_columns(traj_id=[1, 1], t=[0, 1], x=[500.0, 900.0], y=[0.0, 9.0])
    with pytest.raises(InputError, match=r"not known.*crs='EPSG:3857', or use plot\(\)"):
        metres.explore()
