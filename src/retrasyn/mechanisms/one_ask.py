"""One question per timestamp: ask for a portion, update the release (Alg. 1, lines 10 to 16)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from retrasyn.mechanisms.base import Dialogue, ReleasedMemory, View
from retrasyn.mechanisms.portions import Portion
from retrasyn.messages import Topic
from retrasyn.mobility.updating import Update, normalised
from retrasyn.space import StateSpace


@dataclass(frozen=True, slots=True)
class OneAsk:
    """A portion and an update."""

    portion: Portion
    update: Update
    asks_once: ClassVar[bool] = True
    unary_only: ClassVar[bool] = False

    def open_memory(self, states: StateSpace, gap: int, topics: Sequence[Topic]) -> ReleasedMemory:
        """Return a memory without releases."""
        del states, gap, topics
        return ReleasedMemory()

    def dialogue(self, view: View) -> Dialogue:
        """Ask once; without reports the previous release stands."""
        ask = self.portion.ask(view)
        estimate = (yield ask) if ask is not None else None
        past = view.past
        if estimate is None:
            return past.unchanged()
        if past.released is None or view.warming_up:
            first = normalised(estimate)
            return past.unchanged() if first is None else past.renewed(first, 0, view.t)
        renewed, n_significant = self.update(past.released, estimate, view.reading)
        return past.renewed(renewed, n_significant, view.t)
