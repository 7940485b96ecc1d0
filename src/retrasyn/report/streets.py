"""Public streets in a report: lines under its maps, and the ways between points on them.

A stream has one point per timestamp, and a car may pass several crossings between two of them.
Pictures show the fastest way along the streets; the points themselves stay where they are.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.report.packing import levels, pack
from retrasyn.roads.network import CLASS_RATIO, Arcs

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.roads.network import RoadNetwork
    from retrasyn.space import Box

    Vector = npt.NDArray[np.float64]
    Edges = npt.NDArray[np.int64]

MOST_DRAWN = 8_000
"""Streets in a page: those of the fastest classes, and of one class the longest."""
_MAIN = 2  # classes up to this one are drawn bolder
_NEAR = 1 / 200  # of the box: a point farther from every street is on none
_CANDIDATES = 6  # places on streets that are looked at for one point
_MOST_VISITS = 2_000  # crossings looked at for one way; beyond, it is drawn straight
_MOST_VISITS_IN_ALL = 500_000  # for one data set: about two seconds


def street_lines(network: RoadNetwork, box: Box) -> dict[str, Any]:
    """Return the streets of a page, main ones first, each by the levels of its two ends."""
    order = np.lexsort((-network.length, network.road_class))[:MOST_DRAWN]
    ends = np.stack([network.tail[order], network.head[order]], axis=1)  # [n_drawn, 2]
    places = [levels(place[ends], box, axis) for axis, place in enumerate((network.x, network.y))]
    return {
        "n": network.n_edges,
        "n_main": np.count_nonzero(network.road_class[order] <= _MAIN),
        "ends": pack(np.stack(places, axis=-1).ravel()),
    }


class Ways:
    """Finds the fastest ways between points on the streets of a network.

    >>> from retrasyn.roads.network import RoadNetwork
    >>> from retrasyn.space import Box
    >>> corner = RoadNetwork.from_edges(x=[0, 1, 1], y=[0, 0, 1], tail=[0, 1], head=[1, 2])
    >>> x, y = np.array([0.5, 1.0]), np.array([0.0, 0.5])
    >>> Ways(corner, Box(0, 0, 1, 1)).between(x, y, np.array([False, True]))
    [[], [1]]
    """

    def __init__(self, network: RoadNetwork, box: Box) -> None:
        arcs = Arcs.of(network)
        self._network = network
        self._near = _NEAR * max(box.x1 - box.x0, box.y1 - box.y0)
        self._begin, self._head = arcs.begin.tolist(), arcs.head.tolist()
        self._duration = arcs.duration.tolist()
        self._visits_left = _MOST_VISITS_IN_ALL

    def between(self, x: Vector, y: Vector, follows: npt.NDArray[np.bool_]) -> list[list[int]]:
        """Return the crossings on the way to every point from the one before it, if it `follows`.

        There are none where one of the two is on no street, or the way is too long to be found.
        """
        edges, shares = self._snap(np.stack([x, y], axis=1))
        passed: list[list[int]] = [[] for _ in range(x.size)]
        for i in np.flatnonzero(follows[1:]).tolist():
            here, there = int(edges[i]), int(edges[i + 1])
            if min(here, there) >= 0 and here != there:
                passed[i + 1] = self._way((here, shares[i]), (there, shares[i + 1]))
        return passed

    def with_corners(
        self, x: Vector, y: Vector, follows: npt.NDArray[np.bool_]
    ) -> tuple[Vector, Vector, Edges]:
        """Return points with the crossings passed before each of them, and how many these are."""
        passed = self.between(x, y, follows)
        n_passed = np.array([len(way) for way in passed], np.int64)
        crossings = np.array([node for way in passed for node in way], np.int64)
        places = np.repeat(np.arange(x.size), n_passed)
        return (
            np.insert(x, places, self._network.x[crossings]),
            np.insert(y, places, self._network.y[crossings]),
            n_passed,
        )

    def _snap(self, points: Vector) -> tuple[Edges, Vector]:
        """Return the street of every point [n_points], -1 for none, and the share left behind."""
        from scipy.spatial import cKDTree  # noqa: PLC0415 - slow to import, rarely needed

        network = self._network
        nodes = np.stack([network.x, network.y], axis=1)
        begin, way = nodes[network.tail], nodes[network.head] - nodes[network.tail]
        n_marks = 2 + (np.hypot(*way.T) / self._near).astype(np.int64)  # [n_edges]
        edges = np.repeat(np.arange(n_marks.size), n_marks)
        rank = np.arange(edges.size) - np.repeat(np.cumsum(n_marks) - n_marks, n_marks)
        marks = begin[edges] + (rank / (n_marks - 1)[edges])[:, None] * way[edges]
        found = cKDTree(marks).query(points, min(_CANDIDATES, edges.size))[1]
        candidates = edges[found.reshape(len(points), -1)]  # [n_points, n_candidates]
        along, off = way[candidates], points[:, None] - begin[candidates]
        squares = np.maximum((along**2).sum(axis=2), np.finfo(float).tiny)
        shares = np.clip((off * along).sum(axis=2) / squares, 0.0, 1.0)
        gaps = np.linalg.norm(off - shares[..., None] * along, axis=2)
        best = gaps.argmin(axis=1)[:, None]
        edge, share, gap = (
            np.take_along_axis(table, best, axis=1)[:, 0] for table in (candidates, shares, gaps)
        )
        return np.where(gap <= self._near, edge, -1), share

    def _way(self, here: tuple[int, float], there: tuple[int, float]) -> list[int]:
        """Return the crossings of the fastest way between two places, each an edge and a share."""
        goals = {node: time for node, time, ahead in self._ends(*there) if not ahead}
        came_from: dict[int, int] = {}
        waiting = [(time, node, -1) for node, time, ahead in self._ends(*here) if ahead]
        waiting.sort()
        best, last = np.inf, -1
        for _ in range(min(_MOST_VISITS, self._visits_left)):
            if not waiting or waiting[0][0] >= best:
                return _walk_back(came_from, last)
            self._visits_left -= 1
            time, node, before = heappop(waiting)
            if node in came_from:
                continue
            came_from[node] = before
            if node in goals and time + goals[node] < best:
                best, last = time + goals[node], node
            for arc in range(self._begin[node], self._begin[node + 1]):
                heappush(waiting, (time + self._duration[arc], self._head[arc], node))
        return []

    def _ends(self, edge: int, share: float) -> list[tuple[int, float, bool]]:
        """Return the ends of an edge, the time to drive there, and whether one may leave by it.

        The ends by which one may come are those with False.
        """
        network = self._network
        time = float(network.length[edge] * CLASS_RATIO ** float(network.road_class[edge]))
        tail, head, way = network.tail[edge], network.head[edge], network.one_way[edge]
        ends = [(int(head), (1.0 - share) * time, True), (int(tail), share * time, False)]
        back = [(int(head), (1.0 - share) * time, False), (int(tail), share * time, True)]
        return (ends if way >= 0 else []) + (back if way <= 0 else [])


def _walk_back(came_from: dict[int, int], last: int) -> list[int]:
    """Return the crossings that led to the last one, in the order of the way."""
    passed = []
    while last >= 0:
        passed.append(last)
        last = came_from[last]
    return passed[::-1]
