"""How a base map is drawn: a style of the operator's own, or a quiet one made for tiles.

The quiet one has no words, so it needs no glyphs, and colours that stay behind the data.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from retrasyn.bounded_json import parse_json
from retrasyn.errors import InputError
from retrasyn.service.basemap.tiles import Tiles
from retrasyn.service.settings import origin_of

MAX_BYTES = 64 << 20
"""Largest file that is sent to every page."""
Theme = Literal["light", "dark"]
TILES = "/v1/map/tiles/{z}/{x}/{y}"
_VERSION = 8
_SOURCE = "base"
_COLOURS: dict[Theme, dict[str, str]] = {
    "light": {
        "ground": "#f3f4f1",
        "land": "#eceee8",
        "water": "#d9e4e8",
        "building": "#e6e7e2",
        "border": "#c9ccc8",
        "road": "#d3d6d1",
    },
    "dark": {
        "ground": "#14191c",
        "land": "#192023",
        "water": "#0d2129",
        "building": "#1d2528",
        "border": "#374145",
        "road": "#2f383c",
    },
}
_KINDS = (  # in the order of drawing; words in the names of layers of the common schemes
    ("land", "fill", ("earth", "land", "park", "green", "wood", "forest", "site")),
    ("water", "fill", ("water", "ocean", "sea", "lake")),
    ("water", "line", ("water", "river", "stream")),
    ("building", "fill", ("building",)),
    ("border", "line", ("boundar", "admin", "border")),
    ("road", "line", ("road", "street", "transport", "highway", "rail", "transit", "bridge")),
)
_WORDS = ("label", "name", "place", "poi", "number")  # layers that are there to be read
_SHAPES = {"fill": "Polygon", "line": "LineString"}


def read_document(name: str, path: Path) -> dict[str, Any]:
    """Read the JSON object behind a setting."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{name} {path} is larger than {MAX_BYTES >> 20} MiB; simplify it")
        found = parse_json(path.read_bytes(), parse_constant=_refuse)
    except OSError as error:
        raise InputError(f"{name} {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{name} {path} is not JSON: {str(error)[:100]}") from None
    if not isinstance(found, dict):
        raise InputError(f"{name} {path} must hold a JSON object")
    return found


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is no number")


def read_style(path: Path, hosts: tuple[str, ...]) -> bytes:
    """Read an operator's style, and refuse one whose sources the page's policy would block."""
    style = read_document("map.style", path)
    if style.get("version") != _VERSION or not isinstance(style.get("layers"), list):
        raise InputError(f"map.style {path} is no MapLibre style; it needs version 8 and layers")
    for address in _addresses(style):
        if address.startswith("pmtiles:"):
            raise InputError(
                f"map.style {path} reads PMTiles in the browser; set map.tiles to the file, and "
                f'its source to "tiles": ["{TILES}"]'
            )
        origin = origin_of(address)
        if origin is not None and not any(_allows(host, origin) for host in hosts):
            raise InputError(
                f"map.style {path} fetches from {origin}, which would then see who looks at the "
                "map; add it to map.hosts if that is meant"
            )
    return json.dumps(style, separators=(",", ":")).encode()


def _addresses(style: dict[str, Any]) -> Iterator[str]:
    """Yield the URLs that a style makes a page fetch from."""
    sources = style.get("sources")
    known = list(sources.values()) if isinstance(sources, dict) else []
    sprites = style.get("sprite")
    found = [style.get("glyphs"), sprites]
    if isinstance(sprites, list):
        found += [sprite.get("url") for sprite in sprites if isinstance(sprite, dict)]
    for source in known:
        if isinstance(source, dict):
            tiles = source.get("tiles")
            found += [source.get("url"), source.get("data")]
            found += tiles if isinstance(tiles, list) else []
    return (address for address in found if isinstance(address, str))


def _allows(host: str, origin: str) -> bool:
    """Return whether a host, perhaps with a leading wildcard, covers an origin.

    >>> _allows("https://*.example.org", "https://a.example.org")
    True
    """
    scheme, star, rest = host.partition("*")
    return origin == host or (bool(star) and origin.startswith(scheme) and origin.endswith(rest))


def style_of(tiles: Tiles, theme: Theme) -> bytes:
    """Make a quiet style for tiles."""
    colours = _COLOURS[theme]
    layers = _vector_layers(tiles, colours) if tiles.vector else [_raster_layer(theme)]
    ground = {
        "id": "ground",
        "type": "background",
        "paint": {"background-color": colours["ground"]},
    }
    style = {
        "version": _VERSION,
        "name": "RetraSyn, quiet",
        "sources": {_SOURCE: _source(tiles)},
        "layers": [ground, *layers],
    }
    return json.dumps(style, separators=(",", ":")).encode()


def _source(tiles: Tiles) -> dict[str, Any]:
    header = tiles.header
    corners = ("min_lon_e7", "min_lat_e7", "max_lon_e7", "max_lat_e7")
    found: dict[str, Any] = {
        "type": "vector" if tiles.vector else "raster",
        "tiles": [TILES],
        "minzoom": header["min_zoom"],
        "maxzoom": header["max_zoom"],
        "bounds": [header[corner] / 1e7 for corner in corners],
    }
    return found if tiles.vector else found | {"tileSize": 256}


def _raster_layer(theme: Theme) -> dict[str, Any]:
    """Return a layer of pale, or dark, pictures that stay behind the data."""
    quiet: dict[Theme, dict[str, float]] = {
        "light": {"raster-saturation": -0.7, "raster-opacity": 0.55},
        "dark": {
            "raster-saturation": -0.8,
            "raster-opacity": 0.6,
            "raster-brightness-max": 0.35,
        },
    }
    return {"id": "pictures", "type": "raster", "source": _SOURCE, "paint": quiet[theme]}


def _vector_layers(tiles: Tiles, colours: dict[str, str]) -> list[dict[str, Any]]:
    """Return layers for the names we know; all layers as lines if we know none."""
    listed = tiles.metadata.get("vector_layers")
    names = [
        layer["id"]
        for layer in (listed if isinstance(listed, list) else [])
        if isinstance(layer, dict) and isinstance(layer.get("id"), str)
    ]
    shown = [name for name in names if not any(word in name.lower() for word in _WORDS)]
    known = [
        _layer(name, kind, shape, colours)
        for kind, shape, words in _KINDS
        for name in shown
        if any(word in name.lower() for word in words)
    ]
    return known or [_layer(name, "road", "line", colours) for name in shown]


def _layer(name: str, kind: str, shape: str, colours: dict[str, str]) -> dict[str, Any]:
    paint: dict[str, Any] = {f"{shape}-color": colours[kind]}
    if kind == "building":
        paint["fill-opacity"] = 0.6
    if shape == "line":
        # Thin from afar, and never so wide that a road hides a cell.
        paint["line-width"] = ["interpolate", ["exponential", 1.4], ["zoom"], 6, 0.3, 16, 3.5]
    return {
        "id": f"{name}-{kind}-{shape}",
        "type": shape,
        "source": _SOURCE,
        "source-layer": name,
        "filter": ["==", "$type", _SHAPES[shape]],
        "paint": paint,
    }
