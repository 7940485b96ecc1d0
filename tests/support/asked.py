"""Streams, zones and replicas that tests ask about, and an answer as a dictionary."""

import json
from itertools import pairwise

import numpy as np

from retrasyn import Trajectories
from retrasyn.data.metadata import Clock

CLOCK = Clock("2026-05-04T22:00:00+02:00", 3600.0)
"""Timestamp 0 is two hours before a midnight."""
RINGS = {
    "park": [[(1, 1), (5, 1), (5, 5), (1, 5), (1, 1)], [(2, 2), (2, 4), (4, 4), (4, 2), (2, 2)]],
    "centre": [[(0, 0), (6, 0), (6, 7.5), (0, 6), (0, 0)]],
    "harbour": [[(5.5, 2), (12, 2), (12, 9), (5.5, 2)]],
}
"""A park with a hole, a centre around it, and a harbour that overlaps it and leaves the box."""


def wanderers(n=300, *, n_timestamps=40, seed=1, **known):
    """Return people who wander in the box 0,0,10,10, and come and go."""
    rng = np.random.default_rng(seed)
    begins = rng.integers(0, n_timestamps, n)
    lengths = np.minimum(rng.integers(1, 12, n), n_timestamps - begins)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    steps = rng.normal(0, 0.8, (starts[-1], 2))
    steps[starts[:-1]] = rng.uniform(0, 10, (n, 2))
    x, y = np.concatenate([steps[a:b].cumsum(axis=0) for a, b in pairwise(starts)]).T
    return Trajectories(np.arange(n), begins, starts, np.clip(x, 0, 10), np.clip(y, 0, 10), **known)


def paths_of(data):
    """Return streams as the plain loops take them."""
    points = list(zip(data.x.tolist(), data.y.tolist(), strict=True))
    rows = zip(data.begins.tolist(), data.starts.tolist(), data.starts[1:].tolist(), strict=False)
    return [(begin, points[a:b]) for begin, a, b in rows]


def write_zones(path, rings=RINGS, *, named="name", crs=None):
    """Write polygons as GeoJSON; without degrees, no system is named."""
    features = [
        {
            "type": "Feature",
            "properties": {named: name, "size": 1.5},
            "geometry": {"type": "Polygon", "coordinates": outline},
        }
        for name, outline in rings.items()
    ]
    named_system = {} if crs is None else {"crs": {"type": "name", "properties": {"name": crs}}}
    path.write_text(json.dumps({"type": "FeatureCollection", **named_system, "features": features}))
    return path


def by_key(answer, *columns):
    """Return the values of an answer by some of its columns."""
    keys = zip(*(answer[column].tolist() for column in columns), strict=True)
    return dict(zip(keys, answer["value"].tolist(), strict=True))
