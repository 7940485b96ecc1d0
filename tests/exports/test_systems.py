"""Degrees and metres."""

import numpy as np
import pytest

from retrasyn.errors import OutputError
from retrasyn.exports.systems import in_degrees, in_metres, to_metres
from support.exported import DEGREES, METRES, city, plain
from support.exported import in_degrees as turned


def test_metres_become_degrees_and_degrees_metres_of_their_zone():
    real = city()

    degrees = in_degrees(real, "a map")

    assert degrees.crs == DEGREES
    assert np.allclose([degrees.x.mean(), degrees.y.mean()], [8.2, 53.1], atol=0.1)
    again = in_metres(degrees)
    assert again.crs == METRES
    assert np.allclose([again.x, again.y], [real.x, real.y], atol=1e-3)


def test_points_of_the_south_come_into_a_southern_zone():
    sydney = plain(x=[151.2, 151.21, 151.2], y=[-33.8, -33.81, -33.8], crs=DEGREES)
    assert in_metres(sydney).crs == "EPSG:32756"


@pytest.mark.parametrize("crs", ["EPSG:3857", "EPSG:2263"])  # stretched metres, and feet
def test_what_are_no_metres_on_the_ground_become_some(crs):
    real = plain(x=[1e6, 1e6 + 1000, 1e6], y=[2e5, 2e5, 2e5], crs=crs)
    assert in_metres(real).crs.startswith("EPSG:326")


def test_what_could_be_degrees_are_degrees_and_else_metres():
    assert in_degrees(plain(), "a map").crs == DEGREES
    far = plain(x=[1000.0, 2000.0, 5000.0])
    assert in_metres(far) is far
    assert to_metres(far)(far.x, far.y) == (far.x, far.y)


def test_points_without_a_place_on_earth_have_none_on_a_map():
    with pytest.raises(OutputError, match=r"a map needs longitude and latitude.*`crs`"):
        in_degrees(plain(x=[1000.0, 2000.0, 5000.0]), "a map")


@pytest.mark.parametrize("bring", [lambda data: in_degrees(data, "a map"), in_metres])
def test_degrees_that_are_none_are_refused(bring):
    with pytest.raises(OutputError, match=r"in EPSG:4326 reach a latitude of 5000, .* `crs`"):
        bring(plain(y=[1.0, 2.0, 5000.0], crs=DEGREES))


def test_a_system_that_cannot_be_theirs_is_named():
    with pytest.raises(OutputError, match="2 points in EPSG:32632 cannot be brought"):
        in_degrees(plain(x=[4e5, 1e300, 1e300], y=[5e6, 1e300, 1e300], crs=METRES), "a map")


def test_metres_of_one_point_and_of_all_are_the_same():
    real = turned(city())
    x, y = to_metres(real)(real.x[:1], real.y[:1])
    assert np.allclose([x[0], y[0]], [in_metres(real).x[0], in_metres(real).y[0]])
