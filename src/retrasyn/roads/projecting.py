"""Brings roads into the coordinates of the data."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.errors import InputError
from retrasyn.roads.coordinates import WGS84, great_circle, is_degrees
from retrasyn.space.projection import Projection

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.roads.network import RoadNetwork
    from retrasyn.space import Box


def in_system(network: RoadNetwork, crs: str | None, box: Box | None, name: str) -> RoadNetwork:
    """Return roads in the coordinate system of the data, as long as they are on the ground.

    Roads whose file says no system are in it already. Data that say none are in degrees if their
    box could be, else in the system of the roads.
    """
    if crs is None and box is not None and is_degrees(None, box):
        crs = WGS84
    if network.crs is None or crs is None or _same(network.crs, crs):
        return _on_ground(network) if is_degrees(network.crs) else network
    projection = Projection(network.crs, crs, names=(f"the system of {name},", "that of the data,"))
    x, y = projection(network.x, network.y)
    if not (np.isfinite(x) & np.isfinite(y)).all():
        raise InputError(f"roads of {name} are in {network.crs} and cannot be brought into {crs}")
    length = _detours(network) * _chords(network, x, y)
    network = dataclasses.replace(network, x=x, y=y, length=length, crs=crs)
    return _on_ground(network) if is_degrees(crs) else network


def _on_ground(network: RoadNetwork) -> RoadNetwork:
    """Return roads in degrees with lengths as on the ground, so that fastest ways are the fastest.

    The unit is the shortest degree of longitude there is, so none is below its straight line.
    """
    north = float(np.abs(network.y).max())
    unit = great_circle((np.zeros(1), np.array([north])), (np.ones(1), np.array([north])))
    here, there = ((network.x[ends], network.y[ends]) for ends in (network.tail, network.head))
    length = _detours(network) * np.maximum(
        great_circle(here, there) / np.maximum(unit, 1.0), _chords(network, network.x, network.y)
    )
    return dataclasses.replace(network, length=length)


def _detours(network: RoadNetwork) -> npt.NDArray[np.float64]:
    """Return how many times its straight line every edge is long."""
    chords = _chords(network, network.x, network.y)
    return np.divide(network.length, chords, out=np.ones_like(chords), where=chords > 0)


def _same(one: str, other: str) -> bool:
    """Tell whether two names mean the same system."""
    return one.upper() == other.upper() or (is_degrees(one) and is_degrees(other))


def _chords(
    network: RoadNetwork, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the straight length of every edge."""
    chords: npt.NDArray[np.float64] = np.hypot(
        x[network.tail] - x[network.head], y[network.tail] - y[network.head]
    )
    return chords
