"""Opens public maps: roads, a prior, or both, over the box of the data.

A map is public if it could have been drawn without the people whose movements are protected. One
that was drawn from participants' traces is not, and using it costs privacy that nobody counts.
"""

from __future__ import annotations

import difflib
import hashlib
import math
import os
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.errors import InputError, SettingError
from retrasyn.files import is_there
from retrasyn.roads import rasters
from retrasyn.roads.clipping import clip
from retrasyn.roads.coordinates import Coordinates, great_circle, straight
from retrasyn.roads.network import RoadNetwork
from retrasyn.roads.population import ENDINGS, read_population
from retrasyn.roads.projecting import in_system
from retrasyn.roads.public_map import PublicMap
from retrasyn.roads.reading_networks import network_files, read_network
from retrasyn.space import Box

if TYPE_CHECKING:
    import numpy.typing as npt

    FilePath = str | os.PathLike[str]

BY_ROADS: dict[str, Callable[[RoadNetwork, Box], npt.NDArray[np.float64]]] = {
    "between": rasters.between,
    "class": rasters.by_class,
    "length": rasters.by_length,
}
_CENTRE = "centre:x,y,scale"
_UNITS = {"m": 1.0, "km": 1000.0}


def open_map(
    box: Box | tuple[float, float, float, float] | None,
    *,
    roads: FilePath | RoadNetwork | None = None,
    prior: FilePath | None = None,
    crs: str | None = None,
) -> PublicMap:
    """Open a public map of a box.

    Args:
        box: The public box of the data, in its coordinates; that of the roads if none is given.
        roads: A road network, or a file of one; what lies outside the box is cut off.
        prior: Where people are likely to be: between (the default with roads that have classes:
            half class, half traffic on fastest ways), class, length (the default with other
            roads), ``centre:x,y,scale``, or a file of public population: .csv with the columns
            x,y,weight or lon,lat,population. The scale is in the unit of the data, or has one:
            7km, 500m.
        crs: The coordinate system of the data; what could be degrees are degrees without it.

    >>> from retrasyn.space import Box
    >>> open_map(Box(116.15, 39.75, 116.60, 40.10), prior="centre:116.397,39.908,7km").weighting
    'centre:116.397,39.908,7km'
    """
    if roads is None and prior is None:
        raise SettingError("a public map needs roads, a prior or both")
    if roads is None and box is None:
        raise SettingError("a public map without roads needs the box of the data")
    box = None if box is None else Box(*box)
    digest = hashlib.sha256()
    sources, network = [], None
    if roads is not None:
        found, name = _roads(roads, digest)
        sources.append(f"roads of {name}")
        network = in_system(found, crs, box, name)
        box = Box.around(network.x, network.y) if box is None else box
        network = clip(network, box, name)
    assert box is not None  # noqa: S101 - there are roads, or it was refused above
    coordinates = Coordinates.of(box, crs)
    weighting = _usual(network) if prior is None else os.fspath(prior)
    if weighting in BY_ROADS:
        if network is None:
            raise SettingError(f"the prior {weighting} is made of roads; give roads as well")
        weights = BY_ROADS[weighting](network, box)
    elif weighting.startswith("centre:"):
        digest.update(weighting.encode())
        sources.append("a centre")
        weights = _around(weighting, box, coordinates)
    else:
        path = _population_file(weighting)
        weighting = path.name
        sources.append(f"population of {path.name}")
        weights = read_population(path, box, coordinates)
        _add_file(digest, path)
    return PublicMap.of(
        box,
        weights,
        weighting=weighting,
        source=", ".join(sources),
        sha256=digest.hexdigest(),
        roads=network,
    )


def _usual(network: RoadNetwork | None) -> str:
    """Return what is made of roads unless it is said: their length, if classes are not known."""
    return "length" if network is not None and not network.classed else "between"


def _roads(roads: FilePath | RoadNetwork, digest: hashlib._Hash) -> tuple[RoadNetwork, str]:
    """Return roads and their name; their files, or else their arrays, are added to the digest."""
    if not isinstance(roads, RoadNetwork):
        found = read_network(roads)
        for path in network_files(roads):
            _add_file(digest, path)
        return found, Path(roads).name
    for member in fields(roads):
        values = getattr(roads, member.name)
        digest.update(values.tobytes() if isinstance(values, np.ndarray) else str(values).encode())
    return roads, "a network"


def _add_file(digest: hashlib._Hash, path: Path) -> None:
    """Add the bytes of a file to a digest."""
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from None


def _around(text: str, box: Box, coordinates: Coordinates) -> npt.NDArray[np.float64]:
    """Read ``centre:x,y,scale`` and return its raster."""
    match = re.fullmatch(r"centre:([^,]+),([^,]+),([^,a-z]+)\s*([a-z]*)", text)
    if match is None or (match[4] and match[4] not in _UNITS):
        raise SettingError(
            f"prior {text!r} does not read {_CENTRE}; for example centre:116.397,39.908,7km"
        )
    try:
        x, y, scale = (float(part) for part in match.groups()[:3])
    except ValueError:
        x = math.nan
    if not (math.isfinite(x) and math.isfinite(y) and 0 < scale < math.inf):
        raise SettingError(f"prior {text!r} needs three finite numbers, the scale above 0")
    if match[4] and coordinates.degrees:
        return rasters.around(box, (x, y), scale * _UNITS[match[4]], great_circle)
    return rasters.around(box, (x, y), scale * _UNITS.get(match[4], 1.0), straight)


def _population_file(text: str) -> Path:
    """Return the file that a prior names, rejecting other words."""
    path = Path(text)
    try:
        there = is_there(path)
    except OSError:  # a name too long for a file
        there = False
    if not there:
        close = difflib.get_close_matches(text, [*BY_ROADS, _CENTRE], n=1)
        choice = f"{', '.join(BY_ROADS)}, {_CENTRE} or a file ending in {' or '.join(ENDINGS)}"
        hint = f"did you mean {close[0]}?" if close else f"choose from {choice}"
        raise SettingError(f"prior {text[:80]!r} is not known and no such file exists; {hint}")
    return path
