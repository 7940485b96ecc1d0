"""Writes road networks as GeoJSON lines, for maps to show."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.data.writing_files import check_place
from retrasyn.errors import OutputError
from retrasyn.files import replacing

if TYPE_CHECKING:
    from retrasyn.roads.network import RoadNetwork

SUFFIXES = (".geojson", ".json")
_FINENESS = 1e-6  # relative to width plus height: finer than any screen


def road_lines(network: RoadNetwork) -> dict[str, Any]:
    """Return a GeoJSON collection with one feature per road class, fastest first.

    >>> from retrasyn.roads.network import RoadNetwork
    >>> corner = RoadNetwork.from_edges(
    ...     x=[0, 1, 1], y=[0, 0, 1], tail=[0, 1], head=[1, 2], road_class=[0, 3]
    ... )
    >>> [feature["properties"] for feature in road_lines(corner)["features"]]
    [{'class': 0}, {'class': 3}]
    >>> road_lines(corner)["features"][1]["geometry"]
    {'type': 'MultiLineString', 'coordinates': [[[1.0, 0.0], [1.0, 1.0]]]}
    """
    ends = np.stack([network.tail, network.head], axis=1)  # [n_edges, 2]
    places = np.stack([network.x[ends], network.y[ends]], axis=-1)  # [n_edges, 2, 2]
    places = np.round(places, -math.floor(math.log10(network.extent * _FINENESS)))
    return {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {"class": int(number)},
                "geometry": {
                    "type": "MultiLineString",
                    "coordinates": places[network.road_class == number].tolist(),
                },
            }
            for number in np.unique(network.road_class)
        ],
    }


def check_roads_place(path: Path) -> None:
    """Reject a path to which roads cannot be written."""
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(f"roads {path} end in {path.suffix or 'nothing'}; use .geojson")
    check_place(path)


def write_roads(network: RoadNetwork, path: Path) -> None:
    """Write the roads of a network atomically."""
    check_roads_place(path)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(road_lines(network), separators=(",", ":")) + "\n")
