"""Roads as SUMO has them: edges of a network that is there, or plain ones made of a public map."""

from __future__ import annotations

import gzip
import math
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from xml.etree.ElementTree import ParseError, iterparse
from xml.sax.saxutils import quoteattr

import numpy as np

from retrasyn.errors import InputError
from retrasyn.exports.systems import metric, to_metres
from retrasyn.roads.extras import load
from retrasyn.roads.network import CLASS_RATIO, RoadNetwork
from retrasyn.roads.projecting import in_system
from retrasyn.roads.reading_networks import read_network
from retrasyn.space import Box
from retrasyn.space.projection import Projection

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories
    from retrasyn.exports.systems import Moved, Points

_FASTEST = 33.3  # metres per second on class 0, 120 km/h; each further class is CLASS_RATIO slower
_WIDE = 2  # classes below this one have a second lane
_CARS = {"passenger", "all"}


@dataclass(frozen=True, slots=True, eq=False)
class SumoEdges:
    """The edges that cars may drive on."""

    names: list[str]  # [n_edges]
    x: npt.NDArray[np.float64]  # [n_edges], their middles, in the coordinates of the data
    y: npt.NDArray[np.float64]  # [n_edges]
    length: npt.NDArray[np.float64]  # [n_edges], metres
    to_network: Moved  # from the coordinates of the data


def is_sumo_network(path: Path) -> bool:
    """Whether a file is a network of SUMO, by its name."""
    return path.name.lower().endswith((".net.xml", ".net.xml.gz"))


def edges_of(path: Path, folder: Path, data: Trajectories) -> SumoEdges:
    """Read a network of SUMO, or write one of another file's roads into the folder."""
    return _read(path, data) if is_sumo_network(path) else _write_plain(path, folder, data)


def _read(path: Path, data: Trajectories) -> SumoEdges:
    try:
        with _opened(path) as file:
            names, shapes, location = _scan(file)
        middles = np.array([_middle(shape) for shape in shapes])  # [n_edges, 3]
        there, back = _location(location, data)
    except (OSError, EOFError, zlib.error, ParseError, KeyError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise InputError(
            f"{path} cannot be read as a SUMO network ({said}); name one that netconvert made"
        ) from None
    if not names:
        raise InputError(f"{path} has no edge for cars; name another network")
    x, y = back(middles[:, 0], middles[:, 1])
    return SumoEdges(names, x, y, middles[:, 2], there)


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _scan(file: IO[bytes]) -> tuple[list[str], list[str], dict[str, str]]:
    """Return names and shapes of edges, and what is said of the location."""
    names, shapes = [], []
    location: dict[str, str] = {}
    for _, element in iterparse(file, events=("end",)):  # noqa: S314 - expat bounds entities
        if element.tag == "location":
            location = dict(element.attrib)
        elif element.tag == "edge":
            lanes = [lane for lane in element.iter("lane") if _for_cars(lane.attrib)]
            if element.get("function", "normal") == "normal" and lanes:
                names.append(element.attrib["id"])
                shapes.append(lanes[0].attrib["shape"])
            element.clear()
    return names, shapes, location


def _for_cars(lane: dict[str, str]) -> bool:
    allowed, not_allowed = (set(lane.get(name, "").split()) for name in ("allow", "disallow"))
    return bool(allowed & _CARS) if allowed else not not_allowed & _CARS


def _middle(shape: str) -> tuple[float, float, float]:
    """Return the middle of a line, and its length."""
    places = np.array([place.split(",")[:2] for place in shape.split()], float)
    steps = np.hypot(*np.diff(places, axis=0).T)
    along = np.append(0.0, np.cumsum(steps))
    half = along[-1] / 2
    x, y = (float(np.interp(half, along, axis)) for axis in places.T)
    return x, y, float(along[-1])


def _location(location: dict[str, str], data: Trajectories) -> tuple[Moved, Moved]:
    """Return the ways from the coordinates of the data to those of a network, and back."""
    off_x, off_y = (float(part) for part in location["netOffset"].split(","))
    system = location["projParameter"]

    def shifted(x: Any, y: Any) -> Points:
        return x + off_x, y + off_y

    def unshifted(x: Any, y: Any) -> Points:
        return x - off_x, y - off_y

    if system in {"!", "-", "."} or data.crs is None:
        return shifted, unshifted
    names = ("the system of the points,", "that of the network,")
    there = Projection(data.crs, system, names=names)
    back = Projection(system, data.crs, names=names[::-1])
    return (lambda x, y: shifted(*there(x, y))), (lambda x, y: back(*unshifted(x, y)))


def _write_plain(path: Path, folder: Path, data: Trajectories) -> SumoEdges:
    """Write the roads of a public map for netconvert, as roads.nod.xml and roads.edg.xml."""
    network = in_system(read_network(path), data.crs, Box.around(data.x, data.y), path.name)
    metres, system = to_metres(data), metric(data)
    x, y = metres(network.x, network.y)
    west, south = math.floor(x.min()), math.floor(y.min())  # the window of SUMO flickers far off
    x, y = x - west, y - south
    location = _told_location(system, (west, south), (float(x.max()), float(y.max())))
    write_lines(folder / "roads.nod.xml", "nodes", chain([location], _nodes(x, y)))
    write_lines(folder / "roads.edg.xml", "edges", _edges(network))
    ways = np.concatenate([network.one_way >= 0, network.one_way <= 0])  # [2 * n_edges]
    names = np.array([f"{sign}{edge}" for sign in ("", "-") for edge in range(network.n_edges)])
    middle_x, middle_y = (
        np.tile((column[network.tail] + column[network.head]) / 2, 2)[ways]
        for column in (network.x, network.y)
    )
    chord = np.hypot(x[network.tail] - x[network.head], y[network.tail] - y[network.head])
    length = np.tile(chord, 2)[ways]

    def to_network(x: Any, y: Any) -> Points:
        there = metres(x, y)
        return there[0] - west, there[1] - south

    return SumoEdges(names[ways].tolist(), middle_x, middle_y, length, to_network)


def _told_location(system: str | None, corner: tuple[int, int], size: tuple[float, float]) -> str:
    """Return what a network says of where it lies, from which it can be read again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the form that SUMO reads says less than others
        told = "!" if system is None else load("pyproj").CRS(system).to_proj4()
    boundary = f"0,0,{size[0]:.2f},{size[1]:.2f}"
    return (
        f'<location netOffset="{-corner[0]},{-corner[1]}" convBoundary="{boundary}" '
        f'origBoundary="{boundary}" projParameter={quoteattr(told)}/>'
    )


def _nodes(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> Iterator[str]:
    for node, place in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        yield f'<node id="{node}" x="{place[0]:.2f}" y="{place[1]:.2f}"/>'


def _edges(network: RoadNetwork) -> Iterator[str]:
    columns = (network.tail, network.head, network.road_class, network.one_way)
    for edge, (tail, head, number, way) in enumerate(np.stack(columns, axis=1).tolist()):
        road = (
            f'speed="{_FASTEST / CLASS_RATIO**number:.2f}" numLanes="{2 if number < _WIDE else 1}"'
        )
        if way >= 0:
            yield f'<edge id="{edge}" from="{tail}" to="{head}" {road}/>'
        if way <= 0:
            yield f'<edge id="-{edge}" from="{head}" to="{tail}" {road}/>'


def write_lines(path: Path, root: str, lines: Iterator[str]) -> None:
    """Write a file of XML, an element to a line."""
    with path.open("w") as file:
        file.write(f"<{root}>\n")
        file.writelines(f"{line}\n" for line in lines)
        file.write(f"</{root}>\n")
