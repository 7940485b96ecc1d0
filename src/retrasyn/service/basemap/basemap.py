"""The base map as it was configured, checked and read at the start."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.errors import InputError, SettingError
from retrasyn.roads.network import N_CLASSES
from retrasyn.service.basemap.style import read_document
from retrasyn.service.settings import Coordinates, MapSettings, origin_of
from retrasyn.space import Box
from retrasyn.space.grid import format_box

if TYPE_CHECKING:
    from retrasyn.roads.network import RoadNetwork
    from retrasyn.service.basemap.style import Theme
    from retrasyn.service.basemap.tiles import Tiles

_DEGREES = Box(-180.0, -85.06, 180.0, 85.06)  # the square of Web Mercator
_METRES = Box(-20_037_509.0, -20_037_509.0, 20_037_509.0, 20_037_509.0)
_WIDEST = 20.0  # degrees: whoever looks at more than a country has to say so
Line = list[list[float]]
Kept = tuple[tuple[str, int | str], ...]
"""Properties of a road that a page is told, and their values."""
_OF_EDGES = ("tail", "head", "length", "road_class", "one_way")
_MOST_ROADS = 200_000  # that a page draws
_DIGITS = 7  # after the point in degrees: a centimetre
STYLE = "/v1/map/style.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseMap:
    """What is drawn under the data; without any of it, the grid alone."""

    coordinates: Coordinates
    style: str | None  # its address, here or elsewhere
    styles: dict[Theme, bytes]  # those that are served here
    tiles: Tiles | None
    roads: bytes | None
    origins: tuple[str, ...]  # other servers that the page may ask
    attribution: str
    travellers: int

    @classmethod
    def open(cls, settings: MapSettings, box: Box) -> BaseMap:
        """Read all files that the settings name; an error says what is wrong with one."""
        tiles = None if settings.tiles is None else _open_tiles(settings.tiles)
        styles = _styles(settings, tiles)
        elsewhere = None if settings.style is None else origin_of(settings.style)
        style = settings.style if elsewhere else STYLE if styles else None
        own = () if elsewhere is None else (elsewhere,)
        return cls(
            coordinates=_coordinates(settings, box, based=style is not None),
            style=style,
            styles=styles,
            tiles=tiles,
            roads=None if settings.roads is None else read_roads(settings.roads, box),
            origins=tuple(dict.fromkeys((*own, *settings.hosts))) if style else (),
            attribution=settings.attribution or _thanks(tiles),
            travellers=settings.travellers,
        )

    def with_roads(self, network: RoadNetwork | None) -> BaseMap:
        """Return a map with these roads, if it has none of its own; of many, the fastest."""
        if network is None or self.roads is not None:
            return self
        from retrasyn.data.writing_roads import road_lines  # noqa: PLC0415 - few have roads

        counts = np.bincount(network.road_class, minlength=N_CLASSES).cumsum()
        drawn = network.road_class < np.count_nonzero(counts <= _MOST_ROADS)
        if not drawn.any():
            return self
        edges = {name: getattr(network, name)[drawn] for name in _OF_EDGES}
        lines = road_lines(dataclasses.replace(network, **edges))
        return dataclasses.replace(self, roads=json.dumps(lines, separators=(",", ":")).encode())


def _open_tiles(path: Path) -> Tiles:
    from retrasyn.service.basemap.tiles import Tiles  # noqa: PLC0415 - few have tiles

    return Tiles.open(path)


def _styles(settings: MapSettings, tiles: Tiles | None) -> dict[Theme, bytes]:
    """Return the styles that are served here; there are none for a style from elsewhere."""
    from retrasyn.service.basemap.style import read_style, style_of  # noqa: PLC0415 - as above

    if settings.style is not None:
        if origin_of(settings.style) is not None:
            return {}
        own = read_style(Path(settings.style), settings.hosts)
        return {"light": own, "dark": own}
    if tiles is None:
        return {}
    return {"light": style_of(tiles, "light"), "dark": style_of(tiles, "dark")}


def _coordinates(settings: MapSettings, box: Box, *, based: bool) -> Coordinates:
    if settings.coordinates == "auto":
        return coordinates_under(box) if based else guess_coordinates(box)
    return check_coordinates(settings.coordinates, box, based=based)


def _thanks(tiles: Tiles | None) -> str:
    """Return the attribution of the tiles, without HTML."""
    said = "" if tiles is None else tiles.metadata.get("attribution", "")
    return re.sub(r"<[^>]*>", "", said).strip()[:500] if isinstance(said, str) else ""


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


def read_roads(path: Path, box: Box) -> bytes:
    """Return the roads as GeoJSON, with class and direction; other properties stay behind."""
    lines: dict[Kept, list[Line]] = {}
    try:
        for kept, line in _lines(read_document("map.roads", path)):
            if _touches(line, box):
                lines.setdefault(kept, []).append(line)
    except (KeyError, TypeError, ValueError, RecursionError):
        raise InputError(
            f"map.roads {path} is not GeoJSON of LineString and MultiLineString; convert it"
        ) from None
    if not lines:
        raise InputError(
            f"map.roads {path} has no line in the box {format_box(box)}; give it in the "
            "coordinates of the data"
        )
    features = [
        {
            "type": "Feature",
            "properties": dict(kept),
            "geometry": {"type": "MultiLineString", "coordinates": found},
        }
        for kept, found in lines.items()
    ]
    whole = {"type": "FeatureCollection", "features": features}
    return json.dumps(whole, separators=(",", ":")).encode()


def _lines(thing: dict[str, Any], kept: Kept = ()) -> Iterator[tuple[Kept, Line]]:
    """Yield all lines of a GeoJSON object, each with those of its properties that are kept."""
    match thing["type"]:
        case "FeatureCollection":
            for feature in thing["features"]:
                yield from _lines(feature)
        case "Feature":
            if thing["geometry"] is not None:
                yield from _lines(thing["geometry"], _kept(thing.get("properties") or {}))
        case "GeometryCollection":
            for geometry in thing["geometries"]:
                yield from _lines(geometry, kept)
        case "LineString":
            yield kept, _line(thing["coordinates"])
        case "MultiLineString":
            for line in thing["coordinates"]:
                yield kept, _line(line)
        case other:
            raise ValueError(other)


def _kept(properties: dict[str, Any]) -> Kept:
    """Return the class of a road network, and whether the road is driven in one direction only."""
    given = properties.get("class")
    road_class = (("class", given),) if type(given) is int and 0 <= given < N_CLASSES else ()
    return (*road_class, *((("oneway", "yes"),) if properties.get("oneway") == "yes" else ()))


def _line(positions: list[list[float]]) -> Line:
    """Return a line without heights, rounded to a centimetre."""
    line = [[round(float(part), _DIGITS) for part in position[:2]] for position in positions]
    if len(line) < 2 or any(len(place) != 2 or not _finite(place) for place in line):  # noqa: PLR2004 - two ends, two coordinates
        raise ValueError("a line needs two places of two numbers")
    return line


def _finite(place: list[float]) -> bool:
    return all(map(math.isfinite, place))


def _touches(line: Line, box: Box) -> bool:
    """Return whether the rectangle around a line meets the box."""
    xs, ys = zip(*line, strict=True)
    apart = max(xs) < box.x0 or min(xs) > box.x1 or max(ys) < box.y0 or min(ys) > box.y1
    return not apart
