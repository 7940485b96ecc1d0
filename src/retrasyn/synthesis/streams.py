"""The living synthetic streams as parallel arrays that grow."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.growing import grown


@dataclass(slots=True)
class Streams:
    """Living streams in ascending order of id; only the first `n` entries count."""

    ids: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    cells: npt.NDArray[np.uint16] = field(default_factory=lambda: np.empty(0, np.uint16))
    entered: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    n: int = 0
    next_id: int = 0
    x: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  # in cell widths;
    y: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  # empty: not followed

    def reserve(self, n: int) -> None:
        """Make room for n streams in all."""
        self.ids = grown(self.ids, n, 0)
        self.cells = grown(self.cells, n, 0)
        self.entered = grown(self.entered, n, 0)

    def follow_points(self) -> None:
        """Make room for a point per stream, so that steps can be continuous."""
        self.x = grown(self.x, self.ids.size, np.nan)
        self.y = grown(self.y, self.ids.size, np.nan)

    def living(
        self,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16], npt.NDArray[np.int32]]:
        """Return views of ids, cells and entering timestamps of the living."""
        return self.ids[: self.n], self.cells[: self.n], self.entered[: self.n]
