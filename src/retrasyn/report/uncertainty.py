"""Standard errors of the crowd in every cell, collected while a release is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.report.packing import pack

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.messages import Release
    from retrasyn.report.timeline import Timeline

_PARTS = 1_000  # of a point: errors are packed as whole numbers of these


@dataclass(slots=True)
class CellErrors:
    """Standard errors in points, by timestamp; `add` is made for `synthesize(on_release=...)`."""

    n_cells: int
    _by_time: dict[int, npt.NDArray[np.float64]] = field(default_factory=dict, repr=False)

    def add(self, release: Release) -> None:
        """Keep the standard errors of a release, if it has any."""
        if release.uncertainty is not None:
            self._by_time[release.t] = release.uncertainty.cell_errors * release.n_points

    def packed(self, first_t: int, timeline: Timeline) -> dict[str, Any] | None:
        """Return the mean error per frame and cell in thousandths of a point; 0 is unknown.

        None if no release had any. Neighbouring timestamps err alike, so a mean errs as each does.
        """
        if not self._by_time:
            return None
        unknown = np.full(self.n_cells, np.nan)
        table = np.array(
            [self._by_time.get(first_t + t, unknown) for t in range(timeline.n_timestamps)]
        )
        means = np.stack([timeline.means(column) for column in table.T], axis=1)
        return pack(np.rint(np.nan_to_num(means) * _PARTS).astype(np.int64))
