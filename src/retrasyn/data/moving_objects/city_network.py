"""Generates a city's road network of any size: ring roads, arterials and local streets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from retrasyn.errors import SettingError
from retrasyn.randomness.kernels import words_at
from retrasyn.randomness.words import address
from retrasyn.roads.network import RoadNetwork

if TYPE_CHECKING:
    import numpy.typing as npt

N_ARTERIALS = 8
MAX_SIZE = 1_000_000
_SPACING = 100.0  # metres from ring to ring
_RING_ROAD_EVERY = 8  # rings; the others are local streets
_BEND = 0.2  # maximum displacement of a local crossing, in spacings
_MOTORWAY, _RING_ROAD, _ARTERIAL, _STREET, _LANE = 0, 1, 2, 3, 4


def city_network(size: int = 5_000) -> RoadNetwork:
    """Return the smallest city of whole rings with at least `size` crossings, in metres.

    Ring r has 8 crossings for r = 1, 16 for 2 and 3, 32 for 4 to 7 and so on, so that blocks keep
    their size. The outermost ring is a motorway (class 0), every eighth a ring road (1), eight
    arterials lead to the centre (2); other rings are streets (3), other radial roads lanes (4).

    >>> city = city_network(100)
    >>> city.n_nodes, city.n_edges
    (105, 184)
    """
    if not 2 <= size <= MAX_SIZE:  # noqa: PLR2004 - a road has two ends
        raise SettingError(f"size={size} of the city must be 2 to {MAX_SIZE:,} crossings")
    rings = np.arange(1, size + 1)
    n_crossings = N_ARTERIALS << np.log2(rings).astype(np.int64)  # [n_rings], of every ring
    n_rings = int(np.searchsorted(1 + np.cumsum(n_crossings), size)) + 1
    n_crossings = n_crossings[:n_rings]
    first = 1 + np.cumsum(n_crossings) - n_crossings  # [n_rings], node 0 is the centre
    ring = np.repeat(rings[:n_rings], n_crossings)  # [n_nodes - 1]
    node = np.arange(1, ring.size + 1)
    place = node - first[ring - 1]
    count = n_crossings[ring - 1]
    arterial = place % (count // N_ARTERIALS) == 0
    main_ring = (ring % _RING_ROAD_EVERY == 0) | (ring == n_rings)
    x, y = _points(node, ring, place / count, ~arterial & ~main_ring)
    around = first[ring - 1] + (place + 1) % count
    around_class = np.select([ring == n_rings, main_ring], [_MOTORWAY, _RING_ROAD], _STREET)
    # A crossing leads inwards if the next ring has one at the same angle.
    inner_count = np.where(ring > 1, n_crossings[ring - 2], 1)
    aligned = (place * inner_count % count == 0) | (ring == 1)
    inner = np.where(ring > 1, first[ring - 2] + place * inner_count // count, 0)
    inwards_class = np.where(arterial, _ARTERIAL, _LANE)
    centre = n_rings * _SPACING
    return RoadNetwork.from_edges(
        x=np.append(centre, centre + x),
        y=np.append(centre, centre + y),
        tail=np.concatenate([node, node[aligned]]),
        head=np.concatenate([around, inner[aligned]]),
        road_class=np.concatenate([around_class, inwards_class[aligned]]),
    )


def _points(
    node: npt.NDArray[np.int64],
    ring: npt.NDArray[np.int64],
    turn: npt.NDArray[np.float64],
    bent: npt.NDArray[np.bool_],
) -> npt.NDArray[np.float64]:
    """Place crossings around the centre, local ones slightly displaced: [2, n_nodes - 1]."""
    angle = 2 * np.pi * turn
    points: npt.NDArray[np.float64] = _SPACING * ring * np.stack([np.cos(angle), np.sin(angle)])
    for axis in (0, 1):
        key = np.uint64(address(0, axis, "city/bend"))
        off = words_at(key, node.astype(np.uint64)) / 2.0**63 - 1  # [n_nodes - 1], in [-1, 1]
        points[axis] += np.where(bent, _SPACING * _BEND * off, 0.0)
    return points
