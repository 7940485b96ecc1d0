"""How far the synthetic density is from the real one, timestamp by timestamp: simulations only."""

from __future__ import annotations

import math
from collections.abc import Sequence

from retrasyn.metrics.divergence import jsd
from retrasyn.service.viewing.source import Source


def density_errors(
    real: Source, synthetic: Source, timestamps: Sequence[int]
) -> list[float | None]:
    """Return the divergence of points per cell at each timestamp; None where nobody is."""
    found = [jsd(_cells(real, t), _cells(synthetic, t)) for t in timestamps]
    return [None if math.isnan(error) else error for error in found]


def _cells(source: Source, t: int) -> list[int]:
    """Return the points per cell; none where the timestamp is not there."""
    summary = source.summary(t)
    return [0] * source.grid.n_cells if summary is None else list(summary["cells"])
