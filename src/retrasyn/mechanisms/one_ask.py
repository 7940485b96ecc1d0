"""One question per timestamp: ask for a portion, update the release (Alg. 1, lines 10 to 16)."""

from dataclasses import dataclass

from retrasyn.mechanisms.base import Dialogue, ReleasedMemory, View
from retrasyn.mechanisms.portions import Portion
from retrasyn.messages import Outcome
from retrasyn.mobility.updating import Update, normalised
from retrasyn.space import StateSpace


@dataclass(frozen=True, slots=True)
class OneAsk:
    """A portion and an update."""

    portion: Portion
    update: Update

    def open_memory(self, states: StateSpace, gap: int) -> ReleasedMemory:
        """Return a memory of nothing."""
        del states, gap
        return ReleasedMemory()

    def furthest_lookback(self, gap: int) -> int:
        """Transitions look back over one timestamp."""
        del gap
        return 1

    def dialogue(self, view: View) -> Dialogue:
        """Ask once; without reports the previous release stands."""
        ask = self.portion.ask(view)
        estimate = (yield ask) if ask is not None else None
        previous = view.memory.released
        if estimate is None:
            return Outcome(released=previous, n_significant=0, fresh=False)
        if previous is None or view.warming_up:
            first = normalised(estimate)
            released = previous if first is None else first
            return Outcome(released=released, n_significant=0, fresh=first is not None)
        renewed, n_significant = self.update(previous, estimate, view.reading)
        return Outcome(released=renewed, n_significant=n_significant, fresh=True)
