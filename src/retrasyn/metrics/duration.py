"""Duration error: how many timestamps streams last.

Not in the paper: travelled length is mostly jitter inside cells, time is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from retrasyn.metrics.divergence import jsd
from retrasyn.metrics.pair import Pair

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories
    from retrasyn.space.grid import Grid


def duration_error(real: Trajectories, synthetic: Trajectories, grid: Grid) -> float:
    """Return the divergence between the distributions of stream durations."""
    return duration_divergence(Pair.of(real, synthetic, grid))


def duration_divergence(pair: Pair) -> float:
    """Return the divergence between the stream durations of a pair."""
    return jsd(*duration_counts(pair))


def duration_counts(pair: Pair) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Count streams by duration in timestamps (0, 1, 2, ...), real and synthetic: [longest + 1]."""
    real, synthetic = pair.real.lengths, pair.synthetic.lengths
    size = int(max(real.max(), synthetic.max())) + 1
    return np.bincount(real, minlength=size), np.bincount(synthetic, minlength=size)
