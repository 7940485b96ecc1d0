"""Who was heard in a round: one place per device, so that a whole batch is looked up at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.wire.frames import TAG_BYTES


def grown(array: npt.NDArray[np.int64], n: int, filler: int) -> npt.NDArray[np.int64]:
    """Return an array with room for n, twice as long as before at least."""
    if n <= len(array):
        return array
    longer = np.full((max(n, 2 * len(array)), *array.shape[1:]), filler, array.dtype)
    longer[: len(array)] = array
    return longer


@dataclass(slots=True)
class Marks:
    """The tag of each device that was heard, and how far back its bits look."""

    lookbacks: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    tags: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))

    def lookbacks_of(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how far back each device's bits look; 0 if it was not heard."""
        self._make_room(keys)
        return self.lookbacks[keys]

    def same(
        self, keys: npt.NDArray[np.int64], tags: npt.NDArray[np.uint8]
    ) -> npt.NDArray[np.bool_]:
        """Tell which tags are those that came first."""
        found: npt.NDArray[np.bool_] = (self.tags[keys] == _words(tags)).all(axis=1)
        return found

    def add(self, keys: npt.NDArray[np.int64], tags: npt.NDArray[np.uint8], lookback: int) -> None:
        """Mark devices as heard."""
        self._make_room(keys)
        self.lookbacks[keys] = lookback
        self.tags[keys] = _words(tags)

    def _make_room(self, keys: npt.NDArray[np.int64]) -> None:
        n = int(keys.max(initial=-1)) + 1
        self.lookbacks, self.tags = grown(self.lookbacks, n, 0), grown(self.tags, n, 0)


def _words(tags: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    return np.frombuffer(tags.tobytes(), np.int64).reshape(-1, TAG_BYTES // 8)
