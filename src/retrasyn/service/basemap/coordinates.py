"""What the numbers of a box mean, so that it can be laid on a map of the world."""

from __future__ import annotations

from retrasyn.errors import SettingError
from retrasyn.service.map_settings import Coordinates
from retrasyn.space import Box
from retrasyn.space.grid import format_box

_DEGREES = Box(-180.0, -85.06, 180.0, 85.06)  # the square of Web Mercator
_METRES = Box(-20_037_509.0, -20_037_509.0, 20_037_509.0, 20_037_509.0)
_WIDEST = 20.0  # degrees: whoever looks at more than a country has to say so


def guess_coordinates(box: Box) -> Coordinates:
    """Guess from a box alone, for a page without a base map, where little depends on it.

    Nobody's city begins where the equator meets the zero meridian: such a box is made up.

    >>> guess_coordinates(Box(116.15, 39.75, 116.60, 40.10)), guess_coordinates(Box(0, 0, 10, 10))
    ('degrees', 'plain')
    """
    small = max(box.x1 - box.x0, box.y1 - box.y0) <= _WIDEST
    made_up = (box.x0, box.y0) == (0.0, 0.0)
    return "degrees" if _holds(_DEGREES, box) and small and not made_up else "plain"


def coordinates_under(box: Box) -> Coordinates:
    """Decide what a box above a base map is measured in.

    >>> coordinates_under(Box(0, 0, 10, 10)), coordinates_under(Box(12.9e6, 4.8e6, 13e6, 4.9e6))
    ('degrees', 'mercator')
    """
    if _holds(_DEGREES, box):
        return "degrees"
    if _holds(_METRES, box):
        return "mercator"
    raise SettingError(
        f"box {format_box(box)} is neither in degrees nor in metres of Web Mercator, so no base "
        "map fits under it; remove map.style and map.tiles"
    )


def check_coordinates(coordinates: Coordinates, box: Box, *, based: bool) -> Coordinates:
    """Refuse coordinates that a box does not have, or that no base map fits under."""
    if coordinates == "plain" and based:
        raise SettingError(
            "map.coordinates='plain' has no place on a base map; set degrees or mercator, or "
            "remove map.style and map.tiles"
        )
    whole = {"degrees": _DEGREES, "mercator": _METRES}.get(coordinates)
    if whole is not None and not _holds(whole, box):
        raise SettingError(
            f"map.coordinates={coordinates!r} goes from {format_box(whole)}, and box "
            f"{format_box(box)} beyond; set plain or auto"
        )
    return coordinates


def _holds(whole: Box, part: Box) -> bool:
    x_fits = whole.x0 <= part.x0 and part.x1 <= whole.x1
    return x_fits and whole.y0 <= part.y0 and part.y1 <= whole.y1
