"""Roads come into the coordinates of the data."""

from dataclasses import replace

import numpy as np
import pytest

from retrasyn.errors import InputError, SettingError
from retrasyn.roads.network import RoadNetwork
from retrasyn.roads.projecting import in_system
from retrasyn.space import Box

TOWN = Box(8.1, 53.0, 8.3, 53.2)


def town(**more):
    return RoadNetwork.from_edges(
        x=[8.15, 8.2, 8.25], y=[53.1, 53.1, 53.15], tail=[0, 1], head=[1, 2], **more
    )


def test_degrees_become_metres_and_detours_stay_detours():
    pytest.importorskip("pyproj")
    network = town(length=[0.1, 0])
    there = in_system(replace(network, crs="EPSG:4326"), "EPSG:25832", None, "town")

    assert 440_000 < there.x.min() < there.x.max() < 460_000
    chord = np.hypot(np.diff(there.x), np.diff(there.y))
    assert there.length == pytest.approx([2 * chord[0], chord[1]])
    back = in_system(there, None, TOWN, "town")  # data in degrees
    assert back.x == pytest.approx(network.x)


@pytest.mark.parametrize(
    ("own", "crs"), [(None, "EPSG:3857"), ("EPSG:25832", None), ("EPSG:3857", "epsg:3857")]
)
def test_nothing_is_done_where_nothing_is_to_do(own, crs):
    network = replace(town(), crs=own)

    assert in_system(network, crs, Box(400_000, 0, 500_000, 1), "town") is network


def test_systems_that_mean_nothing_are_refused():
    pytest.importorskip("pyproj")
    with pytest.raises(SettingError, match=r"the system of town, 'EPSG:0' is not a coordinate"):
        in_system(replace(town(), crs="EPSG:0"), "EPSG:4326", None, "town")
    poles = RoadNetwork.from_edges(x=[0, 0], y=[89, 95], tail=[0], head=[1])
    with pytest.raises(InputError, match="cannot be brought into EPSG:3857"):
        in_system(replace(poles, crs="EPSG:4326"), "EPSG:3857", None, "town")


def test_roads_in_degrees_are_as_long_as_on_the_ground():
    network = RoadNetwork.from_edges(x=[8.0, 8.1, 8.1], y=[60, 60, 60.1], tail=[0, 1], head=[1, 2])
    there = in_system(replace(network, crs="OGC:CRS84"), None, Box(8, 60, 9, 61), "town")

    east, north = there.length
    assert north / east == pytest.approx(2, rel=0.01)  # a degree of longitude is half as long
    assert (there.length >= network.length).all()
    assert in_system(network, None, Box(8, 60, 9, 61), "town") is network  # who knows what it is in
