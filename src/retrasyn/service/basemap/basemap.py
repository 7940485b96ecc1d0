"""The base map as it was configured, checked and read at the start."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from retrasyn.service.basemap.coordinates import (
    check_coordinates,
    coordinates_under,
    guess_coordinates,
)
from retrasyn.service.basemap.roads import read_roads
from retrasyn.service.map_settings import Coordinates, MapSettings, origin_of
from retrasyn.space import Box

if TYPE_CHECKING:
    from retrasyn.service.basemap.style import Theme
    from retrasyn.service.basemap.tiles import Tiles

STYLE = "/v1/map/style.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseMap:
    """What lies under the data; without any of it there is the grid alone."""

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
        """Read all files that settings name, or say what is wrong with them."""
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
    """Return whom the makers of the tiles thank, without their HTML."""
    said = "" if tiles is None else tiles.metadata.get("attribution", "")
    return re.sub(r"<[^>]*>", "", said).strip()[:500] if isinstance(said, str) else ""
