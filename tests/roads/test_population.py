"""Rasters and tables of population become weights of squares."""

import sys

import numpy as np
import pytest

from retrasyn.errors import InputError, MissingExtra
from retrasyn.roads.opening import open_map
from retrasyn.roads.public_map import SIDE
from retrasyn.space import Box

rasterio = pytest.importorskip("rasterio")

BOX = Box(8.0, 53.0, 8.48, 53.48)


def write(path, people, *, corner=(8.0, 53.48), pixel=0.01, crs="EPSG:4326", **more):
    transform = rasterio.Affine(pixel, 0, corner[0], 0, -pixel, corner[1])
    height, width = people.shape
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        height=height,
        width=width,
        count=1,
        dtype="float32",
        crs=crs,
        transform=transform,
        **more,
    ) as raster:
        raster.write(people.astype(np.float32), 1)
    return path


def weights(known):
    """Return the raster of a map without what was spread evenly."""
    return (known.raster - 0.002 / SIDE**2) / 0.998


def test_pixels_fall_into_squares_from_the_lower_left(tmp_path):
    people = np.zeros((48, 48))
    people[0, 47], people[47, 0] = 3, 1  # upper right, lower left
    people[5, 5] = -9999
    known = open_map(BOX, prior=write(tmp_path / "people.tif", people, nodata=-9999))

    assert known.weighting == "people.tif"
    found = weights(known)
    assert (found[-1, -1], found[0, 0]) == pytest.approx((0.75, 0.25))
    assert found.sum() == pytest.approx(1)


def test_coarse_pixels_are_divided_and_what_lies_outside_is_cut_off(tmp_path):
    people = np.array([[1.0, 1.0], [1.0, 5.0]])
    path = write(tmp_path / "coarse.tiff", people, corner=(7.76, 53.48), pixel=0.48)
    found = weights(open_map(BOX, prior=path))

    left, right = found[:, : SIDE // 2].sum(), found[:, SIDE // 2 :].sum()
    assert (left, right) == pytest.approx((0.5, 0.5), abs=1e-6)
    assert found.min() == pytest.approx(found.max(), rel=0.5)


def test_a_raster_comes_into_the_coordinates_of_the_data(tmp_path):
    pytest.importorskip("pyproj")
    people = np.zeros((48, 48))
    people[20:28, 20:28] = 1
    path = write(tmp_path / "people.tif", people)
    box = Box(433_000, 5_873_000, 466_000, 5_926_000)
    found = weights(open_map(box, prior=path, crs="EPSG:25832"))

    row, column = np.nonzero(found > 1e-9)
    assert 18 < row.mean() < 29
    assert 18 < column.mean() < 29


def test_a_table_in_degrees_comes_into_the_coordinates_of_the_data(tmp_path):
    pytest.importorskip("pyproj")
    path = tmp_path / "people.csv"
    path.write_text("lon,lat,population\n8.24,53.24,7\n")
    box = Box(433_000, 5_873_000, 466_000, 5_926_000)
    found = weights(open_map(box, prior=path, crs="EPSG:25832"))

    assert np.count_nonzero(found > 1e-9) == 1
    assert found[20:28, 20:28].sum() == pytest.approx(1)


def test_a_table_may_say_people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("x,y,people\n8.1,53.1,7\n")
    assert weights(open_map(BOX, prior=path)).max() == pytest.approx(1)


def test_a_raster_of_another_place_or_of_nobody_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"nobody of far\.tif is inside the box"):
        open_map(BOX, prior=write(tmp_path / "far.tif", np.ones((4, 4)), corner=(100, 10)))
    with pytest.raises(InputError, match="nobody of empty"):
        open_map(BOX, prior=write(tmp_path / "empty.tif", np.zeros((48, 48))))


@pytest.mark.parametrize("content", [b"", b"nonsense", b"II*\0\x08\0\0\0"])
def test_what_is_no_raster_is_refused_in_one_line(tmp_path, content):
    path = tmp_path / "bad.tif"
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as a GeoTIFF") as caught:
        open_map(BOX, prior=path)

    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_raster_that_is_nowhere_is_refused(tmp_path):
    path = write(tmp_path / "nowhere.tif", np.ones((4, 4)), pixel=0)
    with pytest.raises(InputError, match=r"nowhere\.tif does not say where its pixels are"):
        open_map(BOX, prior=path)


def test_without_the_extra_the_command_to_install_it_is_said(tmp_path, monkeypatch):
    path = write(tmp_path / "people.tif", np.ones((4, 4)))
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(MissingExtra, match="rasterio is not installed"):
        open_map(BOX, prior=path)
