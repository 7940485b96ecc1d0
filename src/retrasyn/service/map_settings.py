"""How the map looks. None of it is a promise to anybody, so none of it stands in the manifest."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from retrasyn.service.table import AfterValidator, Field, Table
from retrasyn.service.viewing.travellers import MOST

Coordinates = Literal["plain", "degrees", "mercator"]
_ORIGIN = r"https?://(\*\.)?([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?"


def origin_of(address: str) -> str | None:
    """Return the part of an address that says whom it asks; None if it is no web address.

    >>> origin_of("https://tiles.example.org/v1/{z}"), origin_of("style.json")
    ('https://tiles.example.org', None)
    """
    found = re.match(rf"{_ORIGIN}(?=[/?#]|$)", address)
    return found[0] if found else None


def _check_origin(host: str) -> str:
    # It becomes a part of a header, so nothing but an origin may pass.
    if not re.fullmatch(_ORIGIN, host):
        raise ValueError("a host is written like https://tiles.example.org, without a path")
    return host


def _check_style(style: str) -> str:
    is_address = style.startswith(("http:", "https:"))
    if is_address and (origin_of(style) is None or re.search(r"[^!-~]", style)):
        raise ValueError(
            "a style is a JSON file, or an address like https://example.org/style.json"
        )
    return style


class MapSettings(Table):
    """What lies under the synthetic data."""

    style: Annotated[str, AfterValidator(_check_style)] | None = Field(
        default=None,
        description="Base map: a MapLibre style, as an address or a JSON file.",
    )
    tiles: Path | None = Field(
        default=None,
        description="Base map: a PMTiles file, raster or vector; a quiet style comes with it "
        "unless `style` names one.",
    )
    roads: Path | None = Field(
        default=None,
        description="GeoJSON file of lines to be drawn under the data, in its coordinates.",
    )
    coordinates: Literal["auto", "plain", "degrees", "mercator"] = Field(
        default="auto",
        description="What box and positions are measured in: any unit (plain), longitude and "
        "latitude (degrees), or metres of Web Mercator (mercator). auto: by the box.",
    )
    hosts: tuple[Annotated[str, AfterValidator(_check_origin)], ...] = Field(
        default=(),
        description="Other servers from which the page may fetch tiles, sprites and glyphs, such "
        "as https://tiles.example.org. They see who looks at the map.",
    )
    attribution: str = Field(
        default="", description="Whom to thank for the base map, in plain text.", max_length=500
    )
    travellers: int = Field(
        default=3000,
        description="Synthetic streams shown moving, about, unless the page asks otherwise.",
        ge=0,
        le=MOST,
    )
