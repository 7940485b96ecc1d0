"""Small public maps, and what methods that need one are given."""

import hashlib

import numpy as np

from retrasyn import METHODS
from retrasyn.data.writing_roads import write_roads
from retrasyn.roads.network import RoadNetwork
from retrasyn.roads.public_map import SIDE, PublicMap
from retrasyn.space import Box

N_STREETS = 5  # either way


def cross_of(box):
    """Return a network of two streets that meet in the middle of a box."""
    x0, y0, x1, y1 = box
    middle = (x0 + x1) / 2, (y0 + y1) / 2
    return RoadNetwork.from_edges(
        x=[x0, x1, middle[0], middle[0], middle[0]],
        y=[middle[1], middle[1], y0, y1, middle[1]],
        tail=[0, 1, 2, 3],
        head=[4, 4, 4, 4],
    )


def public_map(box, *, roads=False, seed=0):
    """Return a map of a box: random weights, and with `roads` blocks of streets of all classes."""
    random = np.random.default_rng(seed)
    return PublicMap.of(
        Box(*map(float, box)),
        random.random((SIDE, SIDE)),
        weighting="class" if roads else "made up",
        source=f"made up with seed {seed}",
        sha256=hashlib.sha256(b"%d" % seed).hexdigest(),
        roads=blocks(box, random) if roads else None,
    )


def blocks(box, random):
    """Return crooked streets on a grid, from wall to wall of a box, some of them one-way."""
    x0, y0, x1, y1 = box
    places = np.linspace(0, 1, N_STREETS)
    x, y = (axis.ravel() for axis in np.meshgrid(places, places))
    inside = np.isin(x, places[1:-1]) & np.isin(y, places[1:-1])
    x, y = (axis + inside * random.uniform(-0.09, 0.09, x.size) for axis in (x, y))
    nodes = np.arange(x.size).reshape(N_STREETS, N_STREETS)
    tail = np.concatenate([nodes[:, :-1].ravel(), nodes[:-1].ravel()])
    head = np.concatenate([nodes[:, 1:].ravel(), nodes[1:].ravel()])
    return RoadNetwork.from_edges(
        x=x0 + x * (x1 - x0),
        y=y0 + y * (y1 - y0),
        tail=tail,
        head=head,
        road_class=np.arange(tail.size) % 7,
        one_way=np.where(tail == nodes[2, 2], 1, 0),
    )


def map_for(method, box):
    """Return the options that a method needs beside its name: a public map, if any."""
    row = METHODS[method]
    return {"public_map": public_map(box, roads=row.roads)} if row.speeds else {}


def settings_for(method, box, folder):
    """Return the settings of a service that make `steered` of it a method with a public map."""
    row = METHODS[method]
    if not row.roads:
        return {"prior": "centre:{},{},3".format(*box[:2])} if row.speeds else {}
    write_roads(blocks(box, np.random.default_rng(0)), folder / "streets.geojson")
    return {"roads": str(folder / "streets.geojson")}


def flags_for(method, box, folder):
    """Return the flags that a method needs beside its name; a network is written for it."""
    row = METHODS[method]
    if not row.roads:
        return ["--prior", "centre:{},{},1".format(*box[:2])] if row.speeds else []
    write_roads(cross_of(box), folder / "cross.geojson")
    return ["--roads", folder / "cross.geojson"]
