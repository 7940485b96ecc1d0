"""Reads road networks from files of many forms; the ending of its name says which."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from retrasyn.errors import InputError
from retrasyn.roads.network import RoadNetwork
from retrasyn.roads.reading_geojson import read_geojson
from retrasyn.roads.reading_layers import layer_files, read_layers
from retrasyn.roads.reading_openstreetmap import read_openstreetmap
from retrasyn.roads.reading_pairs import FORMS, check_file, pair_files, read_pair


@dataclass(frozen=True, slots=True)
class _Format:
    """How files with certain endings are read, and which files belong together."""

    endings: tuple[str, ...]
    read: Callable[[Path], RoadNetwork]
    files: Callable[[Path], tuple[Path, ...]] = lambda path: (path,)


_PAIRS = tuple(ending for form in FORMS for ending in (form.node_ending, form.edge_ending))
_FORMATS = (
    _Format(_PAIRS, read_pair, pair_files),
    _Format((".geojson", ".json"), read_geojson),
    _Format((".osm.pbf", ".osm"), read_openstreetmap),
    _Format((".gpkg", ".shp"), read_layers, layer_files),
)
ENDINGS = tuple(ending for row in _FORMATS for ending in row.endings)
"""Endings of the files that a network may be read from."""


def read_network(path: str | os.PathLike[str]) -> RoadNetwork:
    """Read a road network in its own coordinates; of a pair of files, name either.

    Pairs of the generator and GeoJSON are read as they are; `.osm.pbf`, `.gpkg` and `.shp` need
    the extra [geo].
    """
    path = Path(path)
    return _format_of(path).read(path)


def network_files(path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Return the files that a network is read from."""
    path = Path(path)
    return _format_of(path).files(path)


def _format_of(path: Path) -> _Format:
    """Return the format of a file that is there and not empty."""
    name = path.name.lower()
    for row in _FORMATS:
        if name.endswith(row.endings):
            check_file(path)
            return row
    raise InputError(
        f"network {path} is in no known form; use a file ending in {', '.join(ENDINGS)}"
    )
