"""An independent recount of every user's worst window, from the grants alone.

Nothing here reads a ledger. A `Replay` is told who reported when and with how much, and keeps the
exact sum of each key over the last `span` timestamps. It is run twice: in the declared unit and
ledger key, and per person and position, whatever was declared.
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.growing import grown
from retrasyn.privacy.kernels import add_spend, remove_spend


@dataclass(slots=True)
class Replay:
    """Running sums over the last `span` timestamps, and the highest ever seen, per key.

    >>> replay = Replay(span=3)
    >>> replay.observe(0, 5, np.array([1, 2]))
    >>> replay.observe(2, 5, np.array([2]))
    >>> replay.observe(3, 5, np.array([1]))
    >>> replay.worst_of(1), replay.worst_of(2), replay.worst
    (5, 10, 10)
    """

    span: int
    total: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    highest: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    recent: deque[tuple[int, int, npt.NDArray[np.int64]]] = field(default_factory=deque)
    n_reports: int = 0

    def observe(self, t: int, epsilon: int, keys: npt.NDArray[np.int64]) -> None:
        """Count one report of `epsilon` micro-nats by each key at t; a key may be listed twice."""
        while self.recent and self.recent[0][0] <= t - self.span:
            _, spend, gone = self.recent.popleft()
            remove_spend(self.total, gone, spend)
        if keys.size == 0:
            return
        n_keys = int(keys.max()) + 1
        self.total = grown(self.total, n_keys, 0)
        self.highest = grown(self.highest, n_keys, 0)
        add_spend(self.total, self.highest, keys, epsilon)
        self.recent.append((t, epsilon, keys))
        self.n_reports += keys.size

    @property
    def worst(self) -> int:
        """The most any key spent in any `span` consecutive timestamps, in micro-nats."""
        return int(self.highest.max(initial=0))

    def worst_of(self, key: int) -> int:
        """Return the most one key spent in any `span` consecutive timestamps."""
        return int(self.highest[key]) if key < self.highest.size else 0
