"""How far people move in a timestamp: pooled noisy answers about a few distances."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from retrasyn.messages import Estimate


@dataclass(slots=True)
class SpeedMemory:
    """The answers so far to whether a step was longer than each threshold."""

    thresholds: tuple[int, ...]  # in thousandths of the longer side of the box, ascending
    answers: npt.NDArray[np.float64] = field(init=False)  # [n_thresholds, 2]: how many, sum of bits
    variance: float = 1.0  # of one answer; unused before the first

    def __post_init__(self) -> None:
        self.answers = np.zeros((len(self.thresholds), 2))

    def pool(self, which: int, estimate: Estimate) -> None:
        """Add the answers about one threshold."""
        self.variance = estimate.variance * estimate.n
        self.answers[which] += estimate.n, estimate.n * estimate.frequencies[0]

    def copied(self) -> SpeedMemory:
        """Return an independent copy."""
        twin = SpeedMemory(self.thresholds)
        twin.answers, twin.variance = self.answers.copy(), self.variance
        return twin

    def to_arrays(self) -> dict[str, npt.NDArray[np.float64]]:
        """Return the memory as plain arrays."""
        return {"answers": self.answers, "variance": np.array([self.variance])}

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[np.float64]]) -> None:
        """Restore the memory from plain arrays."""
        self.answers, self.variance = arrays["answers"].copy(), float(arrays["variance"][0])
