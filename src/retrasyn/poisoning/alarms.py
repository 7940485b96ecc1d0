"""What an inspection of one round found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


def nobody() -> npt.NDArray[np.int64]:
    """Return no report at all."""
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One thing honest devices would hardly do."""

    test: str  # duplicates, weights, bits or spectrum
    reason: str  # what was seen and what was to be expected, in a sentence
    suspects: npt.NDArray[np.int64]  # rows of the reports behind it, where they can be told apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """All alarms of one round, and which tests the round was too small for."""

    n: int
    alarms: tuple[Alarm, ...]
    not_tested: tuple[str, ...]  # a test and why, each

    @property
    def alarmed(self) -> bool:
        """Whether anything was implausible."""
        return bool(self.alarms)

    @property
    def suspects(self) -> npt.NDArray[np.int64]:
        """Rows that any alarm names, ascending."""
        return np.unique(np.concatenate([nobody(), *(alarm.suspects for alarm in self.alarms)]))
