"""Reads road networks from extracts of OpenStreetMap (extra [geo])."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from retrasyn.errors import InputError
from retrasyn.roads.coordinates import WGS84
from retrasyn.roads.extras import load, reason
from retrasyn.roads.lines import CLASS_OF, Lines
from retrasyn.roads.network import RoadNetwork

_TAGS = ("highway", "oneway", "junction")
_WAY = 2


def read_openstreetmap(path: Path) -> RoadNetwork:
    """Read the roads for cars; a way that an extract cuts ends where its nodes do."""
    osmium = load("osmium")
    lines = Lines()
    try:
        for way in _ways(osmium, path):
            tags = {name: way.tags.get(name) for name in _TAGS}
            if tags["highway"] not in CLASS_OF:
                lines.n_others += 1
                continue
            for places in _pieces(way):
                lines.add(places, tags)
    except (RuntimeError, ValueError, OSError) as error:
        raise InputError(
            f"{path} cannot be read as an extract of OpenStreetMap: {reason(error)}"
        ) from None
    return lines.network(path, WGS84)


def _ways(osmium: Any, path: Path) -> Any:
    """Return an iterator over ways that have a kind of road; their nodes know where they are."""
    return (
        osmium.FileProcessor(str(path))
        .with_locations()
        .with_filter(osmium.filter.EntityFilter(osmium.osm.WAY))
        .with_filter(osmium.filter.KeyFilter("highway"))
    )


def _pieces(way: Any) -> list[list[tuple[float, float]]]:
    """Return the parts of a way whose nodes are in the extract."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for node in way.nodes:
        if node.location.valid():
            pieces[-1].append((node.location.lon, node.location.lat))
        else:
            pieces.append([])
    return [piece for piece in pieces if len(piece) >= _WAY]
