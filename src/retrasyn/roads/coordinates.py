"""Degrees or metres: what the coordinates of a box mean, and distances in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.space import Box

    Points = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]

WGS84 = "EPSG:4326"
_DEGREES = ("EPSG:4326", "OGC:CRS84", "CRS84", "WGS84")
_EARTH = 6_371_008.8  # mean radius, metres


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Whether coordinates are degrees, told by their system, or else by the box."""

    degrees: bool
    crs: str | None = None

    @classmethod
    def of(cls, box: Box, crs: str | None) -> Coordinates:
        """Return the coordinates of a box; without a system, what could be degrees are degrees.

        >>> from retrasyn.space import Box
        >>> Coordinates.of(Box(116.15, 39.75, 116.60, 40.10), None).degrees
        True
        """
        degrees = is_degrees(crs, box)
        return cls(degrees, WGS84 if degrees else crs)


def is_degrees(crs: str | None, box: Box | None = None) -> bool:
    """Tell whether coordinates are degrees: by their system, or else by what a box could be.

    >>> is_degrees("OGC:CRS84"), is_degrees(None)
    (True, False)
    """
    if crs is not None or box is None:
        return crs is not None and crs.upper() in _DEGREES
    return max(-box.x0, box.x1) <= 180 and max(-box.y0, box.y1) <= 90  # noqa: PLR2004


def straight(here: Points, there: Points) -> npt.NDArray[np.float64]:
    """Return distances in the unit of the coordinates."""
    far: npt.NDArray[np.float64] = np.hypot(here[0] - there[0], here[1] - there[1])
    return far


def great_circle(here: Points, there: Points) -> npt.NDArray[np.float64]:
    """Return distances in metres between points in degrees (haversine).

    >>> round(float(great_circle((np.array(0.0), np.array(0.0)), (np.array(0.0), np.array(1.0)))))
    111195
    """
    x, y, other_x, other_y = (np.radians(values) for values in (*here, *there))
    chord = (
        np.sin((y - other_y) / 2) ** 2
        + np.cos(y) * np.cos(other_y) * np.sin((x - other_x) / 2) ** 2
    )
    far: npt.NDArray[np.float64] = 2 * _EARTH * np.arcsin(np.sqrt(np.clip(chord, 0.0, 1.0)))
    return far
