"""What a mechanism sees, what it remembers, and the loop that drives its dialogue."""

from collections import deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from retrasyn.interpretation import Interpretation
from retrasyn.messages import MICRO, Ask, Estimate, Flags, Outcome
from retrasyn.space import StateSpace

Dialogue = Generator[Ask, Estimate | None, Outcome]
MEMORY = 32
"""How many past collections are remembered; the lookback of a portion may not exceed it."""


@dataclass(slots=True)
class ReleasedMemory:
    """What a mechanism remembers between timestamps; everything in it was already released.

    Only timestamps with reports enter it. Were the others to count, a night with nobody would
    bring the deviation of Eq. 9 to zero, and with it the portion, for ever.
    """

    released: npt.NDArray[np.float64] | None = None
    history: deque[npt.NDArray[np.float64]] = field(default_factory=lambda: deque(maxlen=MEMORY))
    significant: deque[float] = field(default_factory=lambda: deque(maxlen=MEMORY))
    n_collections: int = 0
    last_t: int = 0  # of the last collection

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything as plain arrays."""
        return {
            "released": np.empty(0) if self.released is None else self.released,
            "history": np.array(self.history),
            "significant": np.array(self.significant, np.float64),
            "collections": np.array([self.n_collections, self.last_t], np.int64),
        }

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take everything over from plain arrays."""
        self.released = arrays["released"] if arrays["released"].size else None
        self.history = deque(list(arrays["history"]), maxlen=MEMORY)
        self.significant = deque(arrays["significant"].tolist(), maxlen=MEMORY)
        self.n_collections, self.last_t = arrays["collections"].tolist()

    def remember(self, outcome: Outcome, t: int) -> None:
        """Take in what timestamp t brought."""
        self.released = outcome.released
        if outcome.fresh and outcome.released is not None:
            self.history.append(outcome.released)
            self.significant.append(outcome.n_significant / outcome.released.size)
            self.n_collections += 1
            self.last_t = t


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All a mechanism may look at when it decides: public settings and its own past."""

    t: int
    first_t: int
    window: int
    reading: Interpretation
    memory: Any  # what the mechanism's own `open_memory` made
    size: int = 0  # of the active users; not looked at where presence is hidden
    n_enrolled: int = 0  # ledger keys that could be asked
    epsilon: int = MICRO  # of a whole window, in micro-nats
    splits_users: bool = True  # whether a share is of the users, or of epsilon
    flags: Flags | None = None  # where starting and stopping are public

    @property
    def gap(self) -> int:
        """Timestamps between two full-budget reports of one key."""
        return self.reading.gap(self.window)

    @property
    def warming_up(self) -> bool:
        """Whether the model is still being started."""
        return bool(self.memory.n_collections < self.reading.warm_up)

    @property
    def silent(self) -> bool:
        """Whether a whole window has passed without a report."""
        return bool(self.t - self.memory.last_t >= self.gap)


class Mechanism(Protocol):
    """One timestamp's dialogue."""

    def open_memory(self, states: StateSpace, gap: int) -> Any:
        """Return a memory of nothing, which knows `remember`, `to_arrays` and `load_arrays`."""
        ...  # pragma: no cover - a protocol has no body

    def furthest_lookback(self, gap: int) -> int:
        """Return how many timestamps back the furthest answer reaches."""
        ...  # pragma: no cover - a protocol has no body

    def dialogue(self, view: View) -> Dialogue:
        """Yield asks, be sent estimates, return the outcome."""
        ...  # pragma: no cover - a protocol has no body


def drive(dialogue: Dialogue, collect: Callable[[Ask], Estimate | None]) -> Outcome:
    """Answer every ask of a dialogue until it returns."""
    try:
        ask = next(dialogue)
        while True:
            ask = dialogue.send(collect(ask))
    except StopIteration as stop:
        outcome: Outcome = stop.value
        return outcome
