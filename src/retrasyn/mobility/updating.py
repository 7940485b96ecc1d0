"""What changes in the model when new estimates arrive (Sec. III-C, Eq. 7)."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from retrasyn.interpretation import Interpretation
from retrasyn.messages import Estimate


class Update(Protocol):
    """Merges an estimate into the previous release."""

    def __call__(
        self, previous: npt.NDArray[np.float64], estimate: Estimate, reading: Interpretation
    ) -> tuple[npt.NDArray[np.float64], int]:
        """Return the new release and the number of states that were renewed."""
        ...  # pragma: no cover - a protocol has no body


def normalised(estimate: Estimate) -> npt.NDArray[np.float64] | None:
    """Clip negatives and scale to one; None when nothing positive is left."""
    clipped = np.maximum(estimate.frequencies, 0.0)
    total = clipped.sum()
    return clipped / total if total > 0 else None


def replace_all(
    previous: npt.NDArray[np.float64], estimate: Estimate, reading: Interpretation
) -> tuple[npt.NDArray[np.float64], int]:
    """Take the clipped estimate for everything; nothing positive leaves the previous release."""
    del reading
    fresh = normalised(estimate)
    return (previous, 0) if fresh is None else (fresh, fresh.size)


def select_significant(
    previous: npt.NDArray[np.float64], estimate: Estimate, reading: Interpretation
) -> tuple[npt.NDArray[np.float64], int]:
    """Renew only the states whose change exceeds the noise (dynamic mobility update, Eq. 7).

    The objective separates over states, so its minimum is a comparison per state: renew iff the
    squared gap between the previous release and the estimate exceeds the oracle's variance.
    """
    clipped = np.maximum(estimate.frequencies, 0.0)
    squared_gap = (previous - clipped) ** 2
    significant = squared_gap > estimate.variance
    scale = clipped.sum() if reading.unselected == "scaled" else 1.0
    merged = np.where(significant, clipped, previous * scale)
    total = merged.sum()
    n_significant = int(np.count_nonzero(significant))
    if total <= 0:
        return previous, n_significant
    return merged / total, n_significant
