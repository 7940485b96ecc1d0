"""How many points lie in a box, timestamp by timestamp."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from retrasyn.service.viewing.source import Source
from retrasyn.space import Box


def box_counts(source: Source, box: Box, timestamps: Sequence[int]) -> tuple[list[int], list[int]]:
    """Count points in a box, edges included; return the timestamps that are there, and counts."""
    there, n = [], []
    for t in timestamps:
        places = source.places_at(t)
        if places is None:
            continue
        x, y = places
        inside = (x >= box.x0) & (x <= box.x1) & (y >= box.y0) & (y <= box.y1)  # [n_points]
        there.append(t)
        n.append(int(np.count_nonzero(inside)))
    return there, n
