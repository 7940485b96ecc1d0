"""Demand for SUMO: trips between zones by the hour, and which edges are in each zone.

``od.xml`` is a file of ``tazRelation`` counts (SUMO's ``datamode_file.xsd``), ``taz.xml`` one of
zones (``taz_file.xsd``). Times are seconds after the midnight of the first day.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

import numpy as np

from retrasyn.errors import OutputError
from retrasyn.exports.sumo_roads import edges_of, write_lines
from retrasyn.exports.systems import named, to_metres
from retrasyn.exports.trip_ends import TripEnds

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from retrasyn.answers.zones import Zones
    from retrasyn.data.trajectories import Trajectories
    from retrasyn.exports.sumo_roads import SumoEdges
    from retrasyn.exports.systems import Moved

_HOUR = 3600


@dataclass(frozen=True, slots=True, eq=False)
class ZoneTrips:
    """Trips from zone to zone."""

    zones: Zones
    trips: TripEnds
    origins: npt.NDArray[np.int32]  # [n_trips]
    destinations: npt.NDArray[np.int32]  # [n_trips]
    n_outside: int  # trips that begin or end in no zone

    @classmethod
    def of(cls, data: Trajectories, zones: Zones) -> ZoneTrips:
        """Find the zones in which trips begin and end."""
        trips = TripEnds.of(data, "a matrix of SUMO")
        ends = [zones.locate(data.x[rows], data.y[rows]) for rows in (trips.first, trips.last)]
        inside = (ends[0] < zones.n_zones) & (ends[1] < zones.n_zones)
        if not inside.any():
            raise OutputError("no trip begins and ends in a zone; give zones of the same place")
        origins, destinations = (end[inside] for end in ends)
        return cls(zones, trips.where(inside), origins, destinations, int((~inside).sum()))


def write_demand(data: Trajectories, folder: Path, zones: Zones, roads: Path | None) -> ZoneTrips:
    """Write matrix and zones, and with a public map its roads; return what the matrix holds."""
    data = named(data)
    demand = ZoneTrips.of(data, zones)
    edges = None if roads is None else edges_of(roads, folder, data)
    names = _names(zones)
    write_lines(folder / "od.xml", "data", _intervals(demand, names))
    to_network = to_metres(data) if edges is None else edges.to_network
    shapes = _rings(zones, to_network)
    within = {} if edges is None else _edges_within(demand, edges, data)
    write_lines(folder / "taz.xml", "tazs", _zones(names, shapes, within))
    return demand


def _names(zones: Zones) -> list[str]:
    """Return names of zones with the letters that SUMO takes, each once."""
    plain = [re.sub(r"[^\w.:+-]", "_", name) or "_" for name in zones.names]
    if len(set(plain)) == len(plain):
        return plain
    return [f"{number}_{name}" for number, name in enumerate(plain)]


def _intervals(demand: ZoneTrips, names: list[str]) -> Iterator[str]:
    hours = (demand.trips.departures // _HOUR).astype(np.int64)
    n = np.int64(len(names))
    keys, counts = np.unique(
        (hours * n + demand.origins) * n + demand.destinations, return_counts=True
    )
    cells = zip(keys.tolist(), counts.tolist(), strict=True)
    for hour, found in groupby(cells, lambda cell: cell[0] // int(n * n)):
        yield f'<interval begin="{hour * _HOUR}" end="{(hour + 1) * _HOUR}">'
        for key, count in found:
            origin, destination = (names[code] for code in divmod(key % int(n * n), int(n)))
            yield f'<tazRelation from="{origin}" to="{destination}" count="{count}"/>'
        yield "</interval>"


def _rings(zones: Zones, to_network: Moved) -> list[str]:
    """Return the outer ring of each zone, of several the longest, in the network's coordinates."""
    rings = []
    for text in zones.outlines():
        shape = json.loads(text)
        parts = [shape["coordinates"]] if shape["type"] == "Polygon" else shape["coordinates"]
        ring = np.array(max((part[0] for part in parts), key=len), float)
        x, y = to_network(ring[:, 0], ring[:, 1])
        places = zip(x.tolist(), y.tolist(), strict=True)
        rings.append(" ".join(f"{x:.2f},{y:.2f}" for x, y in places))
    return rings


def _edges_within(
    demand: ZoneTrips, edges: SumoEdges, data: Trajectories
) -> dict[int, list[tuple[str, float]]]:
    """Return edges and their lengths by zone; where trips end but none is, the nearest edge."""
    codes = demand.zones.locate(edges.x, edges.y)
    members: dict[int, list[int]] = {}
    for edge, zone in enumerate(codes.tolist()):
        members.setdefault(zone, []).append(edge)
    rows = np.concatenate([demand.trips.first, demand.trips.last])
    there, first = np.unique(
        np.concatenate([demand.origins, demand.destinations]), return_index=True
    )
    for zone, row in zip(there.tolist(), rows[first].tolist(), strict=True):
        if zone not in members:
            far = np.hypot(edges.x - data.x[row], edges.y - data.y[row])
            members[zone] = [int(far.argmin())]
    return {
        zone: [(edges.names[edge], float(edges.length[edge])) for edge in found]
        for zone, found in members.items()
    }


def _zones(
    names: list[str], shapes: list[str], within: dict[int, list[tuple[str, float]]]
) -> Iterator[str]:
    for zone, (name, shape) in enumerate(zip(names, shapes, strict=True)):
        yield f'<taz id="{name}" shape="{shape}">'
        for edge, length in within.get(zone, []):
            likely = f'id={quoteattr(edge)} weight="{max(length, 0.01):.2f}"'
            yield f"<tazSource {likely}/><tazSink {likely}/>"
        yield "</taz>"
