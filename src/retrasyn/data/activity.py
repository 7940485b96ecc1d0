"""How many people are active at a time: the figure that accuracy depends on most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories


@dataclass(frozen=True, slots=True)
class Activity:
    """People active at a time, over all timestamps from the first to the last.

    >>> Activity.of_counts(np.array([3, 0, 1]))
    Activity(n_timestamps=3, n_empty=1, mean=1.3333333333333333, median=1.0, least=0)
    """

    n_timestamps: int
    n_empty: int
    mean: float
    median: float
    least: int

    @classmethod
    def of_counts(cls, counts: npt.NDArray[np.int64]) -> Activity:
        """Sum up the number of people at every timestamp: [n_timestamps], at least one."""
        return cls(
            n_timestamps=counts.size,
            n_empty=int(np.count_nonzero(counts == 0)),
            mean=float(counts.mean()),
            median=float(np.median(counts)),
            least=int(counts.min()),
        )

    @classmethod
    def of(cls, real: Trajectories) -> Activity:
        """Count the people of recorded data; who has several streams at a time counts once."""
        n_timestamps, begins = real.last_t - real.first_t + 1, real.begins - real.first_t
        if real.fold is None:  # nobody is in two places, so streams can be counted
            changes = np.bincount(begins, minlength=n_timestamps + 1)
            changes -= np.bincount(begins + real.lengths, minlength=n_timestamps + 1)
            return cls.of_counts(np.cumsum(changes[:-1]))
        people = np.unique(real.fold.keys, return_inverse=True)[1]  # [n_streams]
        at = np.repeat(people * n_timestamps, real.lengths) + real.t - real.first_t
        return cls.of_counts(np.bincount(np.unique(at) % n_timestamps, minlength=n_timestamps))

    @property
    def words(self) -> str:
        """The counts in a line."""
        return (
            f"{_short(self.mean)} people active at a time (median {self.median:,.0f}, least "
            f"{self.least:,}); {self.n_empty:,} of {self.n_timestamps:,} timestamps are empty"
        )


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"  # noqa: PLR2004 - two digits
