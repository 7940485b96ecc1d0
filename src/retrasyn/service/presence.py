"""Who shares, and since when: what heartbeats tell where starting and stopping are public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from retrasyn.growing import grown
from retrasyn.messages import ENTERING, QUITTING, Flags

_NOT_HERE = -1


@dataclass(frozen=True, slots=True)
class Heard:
    """The heartbeats of one round."""

    keys: npt.NDArray[np.int64]  # [n], ascending
    kinds: npt.NDArray[np.uint8]  # [n], ENTERING, MOVING or QUITTING

    @classmethod
    def nothing(cls) -> Heard:
        """Return the heartbeats of a round without any."""
        return cls(np.empty(0, np.int64), np.empty(0, np.uint8))

    @property
    def n_here(self) -> int:
        """How many share now."""
        return int(np.count_nonzero(self.kinds != QUITTING))

    @property
    def n_quitting(self) -> int:
        """How many have just stopped."""
        return self.kinds.size - self.n_here


@dataclass(slots=True)
class Presence:
    """Since when each device has been sharing.

    >>> presence = Presence()
    >>> presence.follow(3, Heard(np.array([0, 2]), np.array([0, 1], np.uint8)))
    >>> presence.flags(5, Heard(np.array([0]), np.array([2], np.uint8))).ages_of_quitters.tolist()
    [2]
    """

    entered: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def flags(self, t: int, heard: Heard) -> Flags:
        """Return who starts and how long those who stop were there.

        A device whose first heartbeats were lost counts as there from the first that was heard;
        one that was never heard before it stopped was there for one timestamp at least.
        """
        quitting = heard.keys[heard.kinds == QUITTING]
        self._make_room(quitting)
        since = self.entered[quitting]
        ages = np.where(since == _NOT_HERE, 1, np.maximum(t - since, 1))
        n_entering = int(np.count_nonzero(heard.kinds == ENTERING))
        return Flags(n_entering=n_entering, ages_of_quitters=ages)

    def changes(self, heard: Heard) -> Heard:
        """Return the heartbeats that change who is known to be here: all there is to remember."""
        self._make_room(heard.keys)
        unknown = self.entered[heard.keys] == _NOT_HERE
        told = unknown | (heard.kinds == ENTERING) | (heard.kinds == QUITTING)
        return Heard(heard.keys[told], heard.kinds[told])

    def follow(self, t: int, heard: Heard) -> None:
        """Remember what a round, or its changes alone, told."""
        self._make_room(heard.keys)
        begins = (heard.kinds == ENTERING) | (self.entered[heard.keys] == _NOT_HERE)
        self.entered[heard.keys[begins]] = t
        self.entered[heard.keys[heard.kinds == QUITTING]] = _NOT_HERE

    def _make_room(self, keys: npt.NDArray[np.int64]) -> None:
        self.entered = grown(self.entered, int(keys.max(initial=-1)) + 1, _NOT_HERE)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything as plain arrays."""
        return {"presence_entered": self.entered}

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take everything over from plain arrays."""
        self.entered = arrays["presence_entered"].copy()
