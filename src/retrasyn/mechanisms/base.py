"""What a mechanism sees and remembers, and the loop that drives its dialogue."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from retrasyn.interpretation import Interpretation
from retrasyn.messages import MICRO, Ask, Estimate, Flags, Topic
from retrasyn.mobility.speeds import SpeedMemory
from retrasyn.space import StateSpace

MEMORY = 32
"""Number of past collections remembered; the lookback of a portion may not exceed it."""


class MechanismMemory(Protocol):
    """What a mechanism remembers between timestamps. A dialogue returns the next memory."""

    released: npt.NDArray[np.float64] | None

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the memory as plain arrays."""
        ...  # pragma: no cover - a protocol has no body

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore the memory from plain arrays."""
        ...  # pragma: no cover - a protocol has no body

    def replica(self, random: np.random.Generator) -> MechanismMemory:
        """Return the memory of a replica, before any report, of the mechanism that has this one."""
        ...  # pragma: no cover - a protocol has no body

    def follow(self, main: Any, random: np.random.Generator) -> npt.NDArray[np.float64] | None:
        """Prepare a replica's memory for a timestamp, after the mechanism it repeats has `main`.

        Returns the frequencies that its reports are drawn around; None: those that were reported.
        """
        ...  # pragma: no cover - a protocol has no body


Variances = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Of every move's share among all moves, [n_cells, 9], and of the arrivals in a cell, [n_cells]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a mechanism at one timestamp: the released frequencies (f-tilde)."""

    released: npt.NDArray[np.float64] | None  # [n_states], sums to 1; None before any report
    n_significant: int
    fresh: bool  # whether it uses reports of this timestamp
    memory: MechanismMemory  # for the next timestamp
    hazard: npt.NDArray[np.float64] | None = None  # of quitting, by age from 1 on
    size: int | None = None  # number of people present, where it had to be estimated
    variances: Variances | None = None  # of the shares of moves, where they are known
    belief: float = 0.0  # in a public map, as far as reports speak for it, 0 to 1
    alarm: float = 0.0  # how surely people do other things than they used to, 0 to 1
    speeds: SpeedMemory | None = None  # answers about the lengths of steps, where they are asked


Dialogue = Generator[Ask, Estimate | None, Outcome]


@dataclass(slots=True)
class ReleasedMemory:
    """The latest releases; it contains nothing that is not already public.

    Only timestamps with reports are included. If the others counted, a night without anyone would
    drive the deviation of Eq. 9 to zero, and with it the portion, for ever.
    """

    released: npt.NDArray[np.float64] | None = None
    history: deque[npt.NDArray[np.float64]] = field(default_factory=lambda: deque(maxlen=MEMORY))
    significant: deque[float] = field(default_factory=lambda: deque(maxlen=MEMORY))
    n_collections: int = 0
    last_t: int = 0  # of the last collection

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the memory as plain arrays."""
        return {
            "released": np.empty(0) if self.released is None else self.released,
            "history": np.array(self.history),
            "significant": np.array(self.significant, np.float64),
            "collections": np.array([self.n_collections, self.last_t], np.int64),
        }

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore the memory from plain arrays."""
        self.released = arrays["released"] if arrays["released"].size else None
        self.history = deque(list(arrays["history"]), maxlen=MEMORY)
        self.significant = deque(arrays["significant"].tolist(), maxlen=MEMORY)
        self.n_collections, self.last_t = arrays["collections"].tolist()

    def replica(self, random: np.random.Generator) -> ReleasedMemory:
        """Return this empty memory: nothing is known of what else may be true."""
        del random
        return self

    def follow(
        self, main: ReleasedMemory, random: np.random.Generator
    ) -> npt.NDArray[np.float64] | None:
        """Return the release, which is taken for the truth."""
        del random
        return main.released

    def unchanged(self) -> Outcome:
        """Return the outcome of a timestamp without new estimates: the last release is repeated."""
        return Outcome(released=self.released, n_significant=0, fresh=False, memory=self)

    def renewed(self, released: npt.NDArray[np.float64], n_significant: int, t: int) -> Outcome:
        """Return the outcome of a timestamp with a new release."""
        after = dataclasses.replace(
            self,
            released=released,
            history=deque([*self.history, released], maxlen=MEMORY),
            significant=deque([*self.significant, n_significant / released.size], maxlen=MEMORY),
            n_collections=self.n_collections + 1,
            last_t=t,
        )
        return Outcome(released=released, n_significant=n_significant, fresh=True, memory=after)


_M = TypeVar("_M")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything a mechanism may use for its decision: public settings and its own past."""

    t: int
    first_t: int
    window: int
    gap: int  # timestamps between two full-budget reports of one key
    reading: Interpretation
    memory: MechanismMemory  # made by the mechanism itself
    size: int = 0  # number of active users; unused where presence is hidden
    n_enrolled: int = 0  # ledger keys that could be asked
    epsilon: int = MICRO  # of a whole window, in micro-nats
    splits_users: bool = True  # whether a share is of the users, or of epsilon
    flags: Flags | None = None  # where starting and stopping are public

    def memory_as(self, kind: type[_M]) -> _M:
        """Return the memory as the class the mechanism opened."""
        if not isinstance(self.memory, kind):
            raise AssertionError(f"a mechanism is given {self.memory!r}, and opened a {kind}")  # noqa: TRY004 - our mistake
        return self.memory

    @property
    def past(self) -> ReleasedMemory:
        """The latest releases."""
        return self.memory_as(ReleasedMemory)

    @property
    def warming_up(self) -> bool:
        """Whether the model is still warming up."""
        return self.past.n_collections < self.reading.warm_up

    @property
    def silent(self) -> bool:
        """Whether a whole window has passed without a report."""
        return self.t - self.past.last_t >= self.gap


class Mechanism(Protocol):
    """Conducts the dialogue of each timestamp."""

    @property
    def asks_once(self) -> bool:
        """Whether the asks of a timestamp are known before its first answer."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def knows_errors(self) -> bool:
        """Whether it knows how far it may be off, so that its replicas differ as the truth may."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def unary_only(self) -> bool:
        """Whether decisions rest on the variance of unary encoding (Eq. 3)."""
        ...  # pragma: no cover - a protocol has no body

    def open_memory(
        self,
        states: StateSpace,
        gap: int,
        topics: Sequence[Topic],
        map_shares: npt.NDArray[np.float64] | None = None,
    ) -> MechanismMemory:
        """Return an empty memory; `topics` lists what the method's devices can be asked about.

        `map_shares` are those of the cells by a public map, if there is one: [n_cells].
        """
        ...  # pragma: no cover - a protocol has no body

    def dialogue(self, view: View) -> Dialogue:
        """Yield asks, receive estimates, return the outcome; never changes the view's memory."""
        ...  # pragma: no cover - a protocol has no body


def drive(dialogue: Dialogue, collect: Callable[[Ask], Estimate | None]) -> Outcome:
    """Run a dialogue to its end, answering every ask."""
    try:
        ask = next(dialogue)
        while True:
            ask = dialogue.send(collect(ask))
    except StopIteration as stop:
        outcome: Outcome = stop.value
        return outcome
