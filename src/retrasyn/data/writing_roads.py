"""Writes road networks as GeoJSON lines, to be shown, and to be read as a public map."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.data.writing_files import check_place
from retrasyn.errors import OutputError
from retrasyn.files import replacing

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.roads.network import RoadNetwork

SUFFIXES = (".geojson", ".json")


def roads_beside(path: Path) -> Path:
    """Return where the network of generated data lies.

    >>> roads_beside(Path("city.parquet")).name
    'city.roads.geojson'
    """
    return path.with_name(f"{path.stem}.roads.geojson")


def road_lines(network: RoadNetwork) -> dict[str, Any]:
    """Return a GeoJSON collection with one feature per road class, fastest first.

    One-way roads of a class are a feature of their own, each drawn in its direction. `crs` is null
    where the network does not say its system: by the older form of GeoJSON, none is to be assumed.

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
    ends = np.where(network.one_way[:, None] < 0, ends[:, ::-1], ends)
    places = np.stack([network.x[ends], network.y[ends]], axis=-1)  # [n_edges, 2, 2]
    features = []
    for number in np.unique(network.road_class).tolist():
        for one_way, more in ((False, {}), (True, {"oneway": "yes"})):
            chosen = (network.road_class == number) & ((network.one_way != 0) == one_way)
            if chosen.any():
                features.append(_feature({"class": number} | more, places[chosen]))
    crs = None if network.crs is None else {"type": "name", "properties": {"name": network.crs}}
    return {"type": "FeatureCollection", "crs": crs, "features": features}


def _feature(properties: dict[str, Any], places: npt.NDArray[np.float64]) -> dict[str, Any]:
    lines = {"type": "MultiLineString", "coordinates": places.tolist()}
    return {"type": "Feature", "properties": properties, "geometry": lines}


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
