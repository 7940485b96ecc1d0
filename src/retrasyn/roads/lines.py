"""Networks from lines: every vertex becomes a node, lines meet where they share one.

What is known of a line is what it is tagged with, in the words of OpenStreetMap: `highway`, or
`fclass` as extracts call it, and `oneway`; or a `class` from 0 to 6.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.errors import InputError
from retrasyn.roads.network import N_CLASSES, RoadNetwork, about

if TYPE_CHECKING:
    import numpy.typing as npt

CLASS_OF = {
    "motorway": 0,
    "motorway_link": 1,
    "trunk": 1,
    "trunk_link": 2,
    "primary": 2,
    "primary_link": 3,
    "secondary": 3,
    "secondary_link": 4,
    "tertiary": 4,
    "tertiary_link": 5,
    "unclassified": 5,
    "residential": 5,
    "road": 5,
    "living_street": 6,
    "service": 6,
}
"""Classes of the roads for cars of OpenStreetMap; ways of any other kind are left out."""
KINDS = ("class", "highway", "fclass")
"""Names of the tags that tell a class."""
_ONE_WAY = {"yes": 1, "true": 1, "1": 1, "f": 1, "-1": -1, "reverse": -1, "t": -1}
_RINGS = ("roundabout", "circular")
_VERTEX = 2


@dataclass(slots=True)
class Lines:
    """Lines collected one by one, and the network they make."""

    _places: list[npt.NDArray[np.float64]] = field(default_factory=list)  # each [n_vertices, 2]
    _classes: list[int | None] = field(default_factory=list)
    _ways: list[int] = field(default_factory=list)
    n_others: int = 0  # lines that are no roads for cars

    def add(self, places: npt.ArrayLike, tags: Mapping[str, Any]) -> None:
        """Add a line of vertices, unless its tags say that it is no road for cars."""
        line = np.asarray(places, np.float64)
        if line.ndim != _VERTEX or line.shape[1:] < (_VERTEX,) or line.shape[0] < _VERTEX:
            raise InputError("a line needs two vertices or more, each of two numbers or more")
        kind = next((name for name in KINDS if tags.get(name) not in (None, "")), None)
        road_class = None
        if kind is not None:
            road_class = class_of(kind, tags[kind])
            if road_class is None:
                self.n_others += 1
                return
        self._places.append(line[:, :_VERTEX])
        self._classes.append(road_class)
        self._ways.append(way_of(tags))

    def network(self, path: Path, crs: str | None) -> RoadNetwork:
        """Return the network of all lines; where some have a class, those without are no roads."""
        if any(road_class is not None for road_class in self._classes):
            self._drop_untagged()
        if not self._places:
            left = f", and {self.n_others:,} that are no roads for cars" if self.n_others else ""
            raise InputError(f"{path} has no lines of roads{left}")
        vertices = np.concatenate(self._places)  # [n_vertices, 2]
        sizes = np.array([line.shape[0] for line in self._places])
        unique, node = np.unique(vertices[:, 0] + 1j * vertices[:, 1], return_inverse=True)
        last = np.zeros(node.size, np.bool_)
        last[np.cumsum(sizes) - 1] = True
        begin = np.flatnonzero(~last)
        per_edge = sizes - 1
        classed = self._classes[0] is not None
        with about(path):
            network = RoadNetwork.from_edges(
                x=unique.real,
                y=unique.imag,
                tail=node[begin],
                head=node[begin + 1],
                road_class=np.repeat(np.array(self._classes), per_edge) if classed else None,
                one_way=np.repeat(self._ways, per_edge),
            )
        return dataclasses.replace(network, crs=crs, n_others=self.n_others)

    def _drop_untagged(self) -> None:
        """Leave out the lines that have no class."""
        kept = [row for row, value in enumerate(self._classes) if value is not None]
        self.n_others += len(self._classes) - len(kept)
        self._places = [self._places[row] for row in kept]
        self._classes = [self._classes[row] for row in kept]
        self._ways = [self._ways[row] for row in kept]


def class_of(kind: str, value: Any) -> int | None:
    """Return the class that a tag tells; None if it is no road for cars.

    >>> class_of("highway", "primary"), class_of("highway", "footway"), class_of("class", 3)
    (2, None, 3)
    """
    if kind != "class":
        return CLASS_OF.get(str(value))
    text = str(value).strip().removesuffix(".0")
    if not (text.isascii() and text.isdecimal() and int(text) < N_CLASSES):
        raise InputError(f"class is {str(value)[:40]!r}; it must be 0 (fastest) to {N_CLASSES - 1}")
    return int(text)


def way_of(tags: Mapping[str, Any]) -> int:
    """Return in which direction a line may be driven: 1 along it, -1 against it, 0 both.

    >>> way_of({"oneway": "yes"}), way_of({"oneway": "-1"}), way_of({"highway": "motorway"})
    (1, -1, 1)
    """
    said = tags.get("oneway")
    if said is None or said == "":
        rings = tags.get("junction") in _RINGS or tags.get("highway") == "motorway"
        return int(rings)
    return _ONE_WAY.get(str(said).strip().lower().removesuffix(".0"), 0)
