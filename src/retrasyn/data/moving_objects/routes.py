"""Finds the fastest routes of many trips at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.data.moving_objects.kernels import count_hops, fill_routes

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.roads.network import Arcs

_ENTRIES_AT_ONCE = 4_000_000  # entries of shortest-path trees: about 50 MB


@dataclass(frozen=True, slots=True, eq=False)
class Routes:
    """The arcs of many trips, end to end; trip i drives arcs[begin[i]] to arcs[last[i]]."""

    arcs: npt.NDArray[np.int32]  # [sum of lengths]
    begin: npt.NDArray[np.int64]  # [n_trips]
    last: npt.NDArray[np.int64]  # [n_trips]


def find_routes(
    arcs: Arcs,
    origin: npt.NDArray[np.int64],
    destination: npt.NDArray[np.int64],
    *,
    lead: npt.NDArray[np.int32] | None = None,
    breathe: Callable[[], None] = lambda: None,
) -> Routes:
    """Find the fastest route of every trip on empty roads.

    Trips with the same destination share a shortest-path tree; trees are computed in batches.
    A lead arc, if given, comes first and ends at the trip's origin. `breathe` is called between
    batches and may raise to stop.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import, rarely needed
    from scipy.sparse.csgraph import dijkstra  # noqa: PLC0415 - the same

    n_nodes = arcs.begin.size - 1
    graph = csr_array((arcs.duration, arcs.head, arcs.begin), shape=(n_nodes, n_nodes))
    backwards = graph.T.tocsr()
    order = np.argsort(destination, kind="stable")  # trips by destination
    goals, first = np.unique(destination[order], return_index=True)
    first = np.append(first, order.size)
    begin = np.empty(origin.size, np.int64)
    hops = np.empty(origin.size, np.int64)
    pieces = [np.empty(0, np.int32)]
    n_written = 0
    n_at_once = max(1, _ENTRIES_AT_ONCE // n_nodes)
    for low in range(0, goals.size, n_at_once):
        breathe()
        batch = goals[low : low + n_at_once]
        # The tree of paths from a destination, every arc driven backwards, leads to it.
        towards = dijkstra(backwards, indices=batch, return_predecessors=True)[1]
        trips = order[first[low] : first[low + batch.size]]
        row = np.searchsorted(batch, destination[trips])
        ends = origin[trips], destination[trips]
        n_hops = np.empty(trips.size, np.int64)
        count_hops(towards, row, *ends, n_hops)
        n_lead = int(lead is not None)
        begins = np.cumsum(n_hops + n_lead) - (n_hops + n_lead)
        piece = np.empty(int((n_hops + n_lead).sum()), np.int32)
        if lead is not None:
            piece[begins] = lead[trips]
        fill_routes(towards, row, *ends, arcs.begin, arcs.head, begins + n_lead, piece)
        begin[trips] = n_written + begins
        hops[trips] = n_hops + n_lead
        pieces.append(piece)
        n_written += piece.size
    return Routes(np.concatenate(pieces), begin, begin + hops - 1)
