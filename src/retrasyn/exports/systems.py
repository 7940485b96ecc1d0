"""Brings points into the system that a tool takes: degrees, or metres on the ground."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.errors import OutputError
from retrasyn.roads.coordinates import WGS84, is_degrees
from retrasyn.roads.extras import load
from retrasyn.space import Box
from retrasyn.space.projection import Projection

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories

    Points = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
    Moved = Callable[[npt.NDArray[np.float64], npt.NDArray[np.float64]], Points]

_POLE = 90  # degrees of latitude
_ZONE = 6  # degrees of longitude in a zone of UTM
_STRETCHED = ("EPSG:3857", "EPSG:900913", "EPSG:3785")  # web maps, whose metres are none


def named(data: Trajectories) -> Trajectories:
    """Return data that say degrees where they say nothing and could be degrees."""
    degrees = is_degrees(data.crs, Box.around(data.x, data.y))
    return replace(data, crs=WGS84) if data.crs is None and degrees else data


def in_degrees(data: Trajectories, what: str) -> Trajectories:
    """Return points by longitude and latitude, which `what` needs."""
    data = named(data)
    if data.crs is None:
        raise OutputError(
            f"{what} needs longitude and latitude, and the coordinate system of these points is "
            "not known; say it by `crs`, for example `crs=EPSG:3857`"
        )
    if not is_degrees(data.crs):
        return _projected(data, data.crs, WGS84)
    farthest = float(np.abs(data.y).max())
    if farthest > _POLE:
        raise OutputError(
            f"points in {data.crs} reach a latitude of {farthest:g}, and there are 90 degrees; "
            "say their right system by `crs`"
        )
    return data


def in_metres(data: Trajectories) -> Trajectories:
    """Return points in metres: of their own system, or else of their zone of UTM.

    Points of an unknown system that could not be degrees are taken to be in metres.
    """
    data = named(data)
    system = metric(data)
    if data.crs is None or system == data.crs:
        return data
    assert system is not None  # noqa: S101 - so has the data
    return _projected(data, data.crs, system)


def to_metres(data: Trajectories) -> Moved:
    """Return the way from the coordinates of the data to metres."""
    data = named(data)
    system = metric(data)
    if data.crs is None or system is None or system == data.crs:
        return lambda x, y: (x, y)
    return Projection(data.crs, system)


def metric(data: Trajectories) -> str | None:
    """Return a system in metres that suits the data; None if theirs is not known."""
    if data.crs is None or _has_metres(data.crs):
        return data.crs
    degrees = in_degrees(data, "metres")
    longitude, latitude = (float(column.mean()) for column in (degrees.x, degrees.y))
    zone = int((longitude + 180) % 360 // _ZONE) + 1
    return f"EPSG:{(32600 if latitude >= 0 else 32700) + zone}"


def _has_metres(crs: str) -> bool:
    if is_degrees(crs) or crs.upper() in _STRETCHED:
        return False
    system = load("pyproj").CRS.from_user_input(crs)
    return bool(system.is_projected and system.axis_info[0].unit_conversion_factor == 1)


def _projected(data: Trajectories, from_crs: str, to_crs: str) -> Trajectories:
    names = ("the system of the points,", "that of the tool,")
    x, y = Projection(from_crs, to_crs, names=names)(data.x, data.y)
    n_lost = int((~(np.isfinite(x) & np.isfinite(y))).sum())
    if n_lost:
        raise OutputError(
            f"{n_lost:,} points in {from_crs} cannot be brought into {to_crs}; "
            "say the right system by `crs`"
        )
    return replace(data, x=x, y=y, crs=to_crs)
