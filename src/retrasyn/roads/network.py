"""A road network: nodes, straight edges, a class for every edge (Brinkhoff 2002, Sec. 3)."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt


N_CLASSES = 7
CLASS_NAMES = ("motorway", "trunk", "primary", "secondary", "tertiary", "residential", "smaller")
CLASS_RATIO = 1.5
"""Each class is this much slower than the one before it; class 0 is the motorway."""
_LONG = (0.99, 0.90, 0.82)  # quantiles of length above which a street is class 0, 1, 2
_SHORT = 0.25  # quantile of length up to which a street is an alley
_FARTHEST = 1e100  # squared distances overflow beyond it
_JUNCTION = 3  # roads that meet at a true junction


class DisconnectedNetworkWarning(UserWarning):
    """Warns that an unreachable part of a network was dropped."""


@contextlib.contextmanager
def about(path: Path) -> Iterator[None]:
    """Name a file in what is refused or warned of while its network is built."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
    for warning in caught:
        warnings.warn(f"{path}: {warning.message}", warning.category, stacklevel=3)


@dataclass(frozen=True, slots=True, eq=False)
class RoadNetwork:
    """Roads on which there is a way from every node to every other; `from_edges` builds one.

    >>> corner = RoadNetwork.from_edges(x=[0, 1, 1], y=[0, 0, 1], tail=[0, 1], head=[1, 2])
    >>> corner.n_nodes, corner.n_edges, corner.extent
    (3, 2, 2.0)
    """

    x: npt.NDArray[np.float64]  # [n_nodes]
    y: npt.NDArray[np.float64]  # [n_nodes]
    tail: npt.NDArray[np.int32]  # [n_edges], tail < head, no pair twice
    head: npt.NDArray[np.int32]  # [n_edges]
    length: npt.NDArray[np.float64]  # [n_edges], never shorter than the straight line
    road_class: npt.NDArray[np.int8]  # [n_edges], 0 (fastest) to 6
    one_way: npt.NDArray[np.int8]  # [n_edges], 1: from tail to head only, -1: back only, 0: both
    classed: bool = True  # whether classes were given, not guessed
    crs: str | None = None  # the system of the coordinates; None: that of the data
    n_doubled: int = 0  # loops, and edges beside a faster one, that were dropped
    n_left_out: int = 0  # nodes dropped since there was no way to the others and back
    n_cut: int = 0  # roads cut at the walls of a box
    n_others: int = 0  # lines of the file that are no roads for cars

    @classmethod
    def from_edges(
        cls,
        *,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        tail: npt.ArrayLike,
        head: npt.ArrayLike,
        length: npt.ArrayLike | None = None,
        road_class: npt.ArrayLike | None = None,
        one_way: npt.ArrayLike | None = None,
    ) -> RoadNetwork:
        """Build a network from the largest connected part, the fastest parallel edges and no loops.

        With one-way roads, connected means that there is a way there and a way back. `one_way`
        speaks of the edge as it is given: 1 from tail to head only, -1 back only, 0 both.
        A length below the straight line is raised to it, since objects move on the straight line;
        edges without a class are classified by `classify`.
        """
        nodes = np.asarray(x, np.float64), np.asarray(y, np.float64)
        given = np.stack([np.asarray(tail, np.int64), np.asarray(head, np.int64)])  # [2, n_edges]
        ends = np.sort(given, axis=0)
        _check_nodes(*nodes, ends)
        chord = np.hypot(*(node[ends[0]] - node[ends[1]] for node in nodes))  # [n_edges]
        lengths = chord if length is None else np.asarray(length, np.float64)
        _check_lengths(lengths, chord.size)
        classes = classify(lengths, ends, nodes[0].size)
        if road_class is not None:
            classes = _checked_classes(np.asarray(road_class, np.int64), chord.size)
        ways = _checked_ways(np.zeros(chord.size) if one_way is None else one_way, chord.size)
        ways = np.where(given[0] > given[1], -ways, ways).astype(np.int8)
        lengths = np.maximum(lengths, chord)
        kept, ways = _simple(ends, ways, lengths * CLASS_RATIO ** classes.astype(np.float64))
        network = _largest_part(
            *nodes, ends[:, kept].astype(np.int32), lengths[kept], classes[kept], ways
        )
        return dataclasses.replace(
            network, classed=road_class is not None, n_doubled=chord.size - kept.size
        )

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.x.size

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return self.tail.size

    @property
    def extent(self) -> float:
        """Width plus height, the unit of speeds and trip lengths."""
        return float(np.ptp(self.x) + np.ptp(self.y))

    def __repr__(self) -> str:
        return f"RoadNetwork({self.n_nodes:,} nodes, {self.n_edges:,} edges)"


def classify(
    length: npt.NDArray[np.float64], ends: npt.NDArray[np.int64], n_nodes: int
) -> npt.NDArray[np.int8]:
    """Give every edge a class by its length and the degrees of its ends.

    Long edges are fast roads: those above the 99 % quantile are class 0, above 90 % class 1, above
    82 % class 2. Dead ends are class 5, short ones 6; a short edge between two junctions is 4.
    Everything else is class 3. Short means up to the 25 % quantile.
    """
    road_class = np.full(length.size, 3, np.int8)
    if not length.size:
        return road_class
    degree = np.bincount(ends.ravel(), minlength=n_nodes)
    fewest = degree[ends].min(axis=0)  # [n_edges]
    *long, short = np.quantile(length, [*_LONG, _SHORT])
    for faster in (2, 1, 0):
        road_class[length > long[faster]] = faster
    is_short = length <= short
    road_class[is_short & (fewest >= _JUNCTION)] = 4
    road_class[fewest == 1] = 5
    road_class[is_short & (fewest == 1)] = 6
    return road_class


def _check_nodes(x: npt.NDArray[Any], y: npt.NDArray[Any], ends: npt.NDArray[Any]) -> None:
    """Reject nodes without finite coordinates and edges between unknown nodes."""
    if x.ndim != 1 or x.shape != y.shape:
        raise InputError(f"x has shape {x.shape}, y {y.shape}; one of each per node is needed")
    if ends.size and not 0 <= ends.min() <= ends.max() < x.size:
        wrong = ends.min() if ends.min() < 0 else ends.max()
        raise InputError(f"edges must join nodes 0 to {x.size - 1}; one joins {wrong}")
    for name, column in (("x", x), ("y", y)):
        bad = np.flatnonzero(~(np.abs(column) < _FARTHEST))
        if bad.size:
            raise InputError(
                f"{name} of node {bad[0]} is {column[bad[0]]}; "
                f"coordinates must be finite and below {_FARTHEST:g}"
            )


def _check_lengths(length: npt.NDArray[np.float64], n_edges: int) -> None:
    """Reject invalid road lengths."""
    if length.shape != (n_edges,):
        raise InputError(f"length has shape {length.shape}; one entry per edge is needed")
    bad = np.flatnonzero(~((length >= 0) & (length < _FARTHEST)))
    if bad.size:
        raise InputError(
            f"edge {bad[0]} is {length[bad[0]]} long; lengths must be 0 to {_FARTHEST:g}"
        )


def _checked_classes(road_class: npt.NDArray[np.int64], n_edges: int) -> npt.NDArray[np.int8]:
    """Return road classes, rejecting unknown ones."""
    if road_class.shape != (n_edges,):
        raise InputError(f"road_class has shape {road_class.shape}; one entry per edge is needed")
    if n_edges and not 0 <= road_class.min() <= road_class.max() < N_CLASSES:
        raise InputError(f"road classes must be 0 to {N_CLASSES - 1}, 0 the fastest")
    return road_class.astype(np.int8)


def _checked_ways(one_way: npt.ArrayLike, n_edges: int) -> npt.NDArray[np.int8]:
    """Return the directions of edges, rejecting unknown ones."""
    ways = np.asarray(one_way, np.float64)
    if ways.shape != (n_edges,):
        raise InputError(f"one_way has shape {ways.shape}; one entry per edge is needed")
    if not np.isin(ways, (-1, 0, 1)).all():
        raise InputError("one_way must be 1 (tail to head only), -1 (back only) or 0 (both)")
    return ways.astype(np.int8)


def _simple(
    ends: npt.NDArray[np.int64], one_way: npt.NDArray[np.int8], slowness: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int8]]:
    """Return the edges to keep and their directions: no loops, of parallel edges the fastest.

    The one that is kept may be driven in every direction in which one of them may.
    """
    order = np.lexsort((slowness, ends[1], ends[0]))
    order = order[ends[0, order] != ends[1, order]]
    if not order.size:
        return order, one_way[order]
    first = np.ones(order.size, np.bool_)
    first[1:] = (np.diff(ends[:, order], axis=1) != 0).any(axis=0)
    begins = np.flatnonzero(first)
    there, back = (
        np.logical_or.reduceat(one_way[order] * sign >= 0, begins).astype(np.int8)
        for sign in (1, -1)
    )
    kept = order[first]
    sequence = np.argsort(kept)
    return kept[sequence], (there - back)[sequence]


def _largest_part(
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    ends: npt.NDArray[np.int32],
    length: npt.NDArray[np.float64],
    road_class: npt.NDArray[np.int8],
    one_way: npt.NDArray[np.int8],
) -> RoadNetwork:
    """Drop nodes without a way to the largest part and back, with one warning."""
    from scipy.sparse import coo_array  # noqa: PLC0415 - slow to import, rarely needed
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 - the same

    tails, heads = (np.concatenate([ends[i], ends[1 - i]]) for i in (0, 1))
    may = np.concatenate([one_way >= 0, one_way <= 0])  # [2 * n_edges]
    there = tails[may], heads[may]
    links = coo_array((np.ones(there[0].size, np.int8), there), shape=(x.size, x.size))
    part = np.zeros(0, np.int32)
    if x.size:
        part = connected_components(links, connection="strong")[1]
    sizes = np.bincount(part, minlength=1)
    reached = part == sizes.argmax()  # [n_nodes]
    n_left_out = int(x.size - sizes.max())
    if sizes.max() < 2:  # noqa: PLR2004 - a road has two ends
        raise InputError(
            f"the network has {x.size} nodes and no edge between two of them; "
            "at least 2 connected nodes are needed"
        )
    number = (np.cumsum(reached) - 1).astype(np.int32)  # [n_nodes]
    kept = reached[ends].all(axis=0)  # [n_edges]
    tail, head = number[ends[:, kept]]
    network = RoadNetwork(
        x[reached],
        y[reached],
        tail,
        head,
        length[kept],
        road_class[kept],
        one_way[kept],
        n_left_out=n_left_out,
    )
    if network.extent == 0:
        raise InputError("all connected nodes of the network lie at one place; nothing can move")
    if n_left_out:
        warnings.warn(
            f"the network is disconnected: {n_left_out:,} of {x.size:,} nodes have no way to its "
            f"largest part and back and are left out",
            DisconnectedNetworkWarning,
            stacklevel=3,
        )
    return network


@dataclass(frozen=True, slots=True, eq=False)
class Arcs:
    """Every edge in each direction it may be driven, grouped by the node it leaves."""

    begin: npt.NDArray[np.int32]  # [n_nodes + 1], first arc of every node
    tail: npt.NDArray[np.int32]  # [n_arcs]
    head: npt.NDArray[np.int32]  # [n_arcs]
    edge: npt.NDArray[np.int32]  # [n_arcs]
    duration: npt.NDArray[np.float64]  # [n_arcs], on an empty road, in units of the fastest class

    @classmethod
    def of(cls, network: RoadNetwork) -> Arcs:
        """Build the arcs of a network."""
        tail = np.concatenate([network.tail, network.head])
        head = np.concatenate([network.head, network.tail])
        may = np.concatenate([network.one_way >= 0, network.one_way <= 0])
        order = np.lexsort((head, tail))
        order = order[may[order]]
        edge = (order % network.n_edges).astype(np.int32)
        begin = np.searchsorted(tail[order], np.arange(network.n_nodes + 1)).astype(np.int32)
        duration = network.length[edge] * CLASS_RATIO ** network.road_class[edge].astype(float)
        # scipy treats zero as "no arc", and two nodes may share one position.
        duration = np.maximum(duration, np.finfo(float).tiny)
        return cls(begin, tail[order], head[order], edge, duration)
