"""Brings roads into the coordinates of the data."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.errors import InputError
from retrasyn.roads.coordinates import WGS84, is_degrees
from retrasyn.space.projection import Projection

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.roads.network import RoadNetwork
    from retrasyn.space import Box


def in_system(network: RoadNetwork, crs: str | None, box: Box | None, name: str) -> RoadNetwork:
    """Return roads in the coordinate system of the data.

    Roads whose file says no system are in it already. Data that say none are in degrees if their
    box could be, else in the system of the roads.
    """
    if crs is None and box is not None and is_degrees(None, box):
        crs = WGS84
    if network.crs is None or crs is None or _same(network.crs, crs):
        return network
    projection = Projection(network.crs, crs, names=(f"the system of {name},", "that of the data,"))
    x, y = projection(network.x, network.y)
    if not (np.isfinite(x) & np.isfinite(y)).all():
        raise InputError(f"roads of {name} are in {network.crs} and cannot be brought into {crs}")
    before = _chords(network, network.x, network.y)
    detours = np.divide(network.length, before, out=np.ones_like(before), where=before > 0)
    length = detours * _chords(network, x, y)
    return dataclasses.replace(network, x=x, y=y, length=length, crs=crs)


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
