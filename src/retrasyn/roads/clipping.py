"""Cuts a road network at the walls of a box."""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.errors import InputError
from retrasyn.roads.network import DisconnectedNetworkWarning, RoadNetwork
from retrasyn.space import Box
from retrasyn.space.grid import format_box

if TYPE_CHECKING:
    import numpy.typing as npt


def clip(network: RoadNetwork, box: Box, name: str = "the road network") -> RoadNetwork:
    """Return what lies inside a box; a road that crosses a wall ends at the wall."""
    low, high = np.array(box[:2]), np.array(box[2:])
    places = np.stack([network.x, network.y], axis=1)  # [n_nodes, 2]
    if ((places >= low) & (places <= high)).all():
        return network
    begin = places[network.tail]  # [n_edges, 2]
    enters, leaves = _shares_inside(begin, places[network.head] - begin, low, high)
    kept = enters < leaves  # [n_edges]
    edges = np.flatnonzero(kept)
    enters, leaves = enters[kept], leaves[kept]
    tail, head = (ends[kept].astype(np.int64) for ends in (network.tail, network.head))
    way = places[head] - places[tail]  # [n_kept, 2]
    cut_tail, cut_head = enters > 0, leaves < 1
    added = np.concatenate(
        [
            places[tail[cut_tail]] + enters[cut_tail, None] * way[cut_tail],
            places[tail[cut_head]] + leaves[cut_head, None] * way[cut_head],
        ]
    )
    places = np.concatenate([places, np.clip(added, low, high)])
    n_cut_tails = int(cut_tail.sum())
    tail[cut_tail] = network.n_nodes + np.arange(n_cut_tails)
    head[cut_head] = network.n_nodes + n_cut_tails + np.arange(int(cut_head.sum()))
    used, ends = np.unique(np.concatenate([tail, head]), return_inverse=True)
    tail, head = ends.reshape(2, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisconnectedNetworkWarning)  # counted instead
        try:
            inside = RoadNetwork.from_edges(
                x=places[used, 0],
                y=places[used, 1],
                tail=tail,
                head=head,
                length=network.length[edges] * (leaves - enters),
                road_class=network.road_class[edges],
                one_way=network.one_way[edges],
            )
        except InputError:
            raise _elsewhere(network, box, name) from None
    return dataclasses.replace(
        inside,
        classed=network.classed,
        crs=network.crs,
        n_doubled=network.n_doubled,
        n_others=network.n_others,
        n_left_out=network.n_left_out + inside.n_left_out,
        n_cut=int((cut_tail | cut_head).sum()),
    )


def _shares_inside(
    begin: npt.NDArray[np.float64],
    way: npt.NDArray[np.float64],
    low: npt.NDArray[np.float64],
    high: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the shares of every road at which it enters and leaves a box (Liang and Barsky).

    One that never is inside enters after it has left.
    """
    flat = way == 0  # [n_edges, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        at_low, at_high = (low - begin) / way, (high - begin) / way
    outside = flat & ((begin < low) | (begin > high))
    enters = np.where(flat, 0.0, np.minimum(at_low, at_high))
    enters = np.where(outside, 2.0, enters).max(axis=1)
    leaves = np.where(flat, 1.0, np.maximum(at_low, at_high)).min(axis=1)
    return np.maximum(enters, 0.0), np.minimum(leaves, 1.0)


def _elsewhere(network: RoadNetwork, box: Box, name: str) -> InputError:
    own = Box.around(network.x, network.y)
    return InputError(
        f"no roads of {name} lie inside the box {format_box(box)}; the roads' own is "
        f"{format_box(own)}: is it a map of another place, or in other coordinates?"
    )
