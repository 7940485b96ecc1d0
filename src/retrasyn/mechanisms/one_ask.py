"""One ask per timestamp (Alg. 1, lines 10 to 16), for a portion of what is left (Eq. 9, 10).

First the portions, then the mechanism that asks for one and updates the release.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from retrasyn.errors import SettingError
from retrasyn.mechanisms.base import MEMORY, Dialogue, ReleasedMemory, View
from retrasyn.messages import Ask, Topic
from retrasyn.mobility.model import Update, normalised
from retrasyn.space import StateSpace

_T = TypeVar("_T")


class Portion(Protocol):
    """Decides how much to ask for."""

    def ask(self, view: View) -> Ask | None:
        """Return the ask of this timestamp; None to skip it."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive:
    """Portion of what remains that follows the stream's pace (Eq. 9, 10)."""

    gain: float = 8.0  # alpha
    lookback: int = 5  # kappa
    max_portion: float = 0.6  # p_max

    def __post_init__(self) -> None:
        if not (self.gain > 0 and math.isfinite(self.gain)):
            raise SettingError(f"alpha={self.gain} must be a positive number")
        if not 1 <= self.lookback < MEMORY:
            raise SettingError(f"kappa={self.lookback} is outside 1..{MEMORY - 1}")
        if not 0 < self.max_portion <= 1:
            raise SettingError(f"p_max={self.max_portion} is outside 0..1, zero excluded")

    def ask(self, view: View) -> Ask | None:
        """Ask for 1/w while warming up, then for p_t.

        A portion too small to draw anyone would be permanent: nothing is asked, so nothing changes,
        so the deviation stays small. After a whole window without reports, 1/w is asked for again.
        """
        starting = view.warming_up or view.silent
        share = 1.0 / view.window if starting else self.portion(view)
        return Ask(share=share) if share > 0 else None

    def portion(self, view: View) -> float:
        """Return p_t (Eq. 10)."""
        changing = sum(self._recent(list(view.past.significant), view)) / self._terms(view)
        calm = max(1.0 - changing, view.reading.ratio_floor)
        pace = math.log1p(max(self.deviation(view), 0.0))
        return min(self.gain / view.window * calm * pace, self.max_portion)

    def deviation(self, view: View) -> float:
        """Return how far the last release is from the recent mean (Eq. 9)."""
        recent = np.stack(self._recent(list(view.past.history), view))  # [terms, n_states]
        difference = recent[-1] - recent.sum(axis=0) / self._terms(view)
        if view.reading.deviation == "signed":
            return float(difference.sum())
        return float(np.abs(difference).sum())

    def _recent(self, past: list[_T], view: View) -> list[_T]:
        extra = view.reading.deviation_terms == "kappa-plus-one"
        return past[-(self.lookback + extra) :]

    def _terms(self, view: View) -> int:
        return min(self.lookback, len(view.past.history))


@dataclass(frozen=True, slots=True)
class Uniform:
    """The same at every timestamp: epsilon / gap, or one in `gap` of the available users."""

    def ask(self, view: View) -> Ask | None:
        """Ask for one part in `gap`."""
        return Ask(share=1.0 / view.gap, of="whole")


@dataclass(frozen=True, slots=True)
class Sample:
    """Everything at every `gap`-th timestamp, nothing in between."""

    def ask(self, view: View) -> Ask | None:
        """Ask for everything or nothing."""
        return Ask(share=1.0) if (view.t - view.first_t) % view.gap == 0 else None


@dataclass(frozen=True, slots=True)
class Everything:
    """Everything available: devices decide for themselves when to report."""

    def ask(self, view: View) -> Ask | None:
        """Ask for everything."""
        del view
        return Ask(share=1.0)


@dataclass(frozen=True, slots=True)
class OneAsk:
    """Asks for a portion, and applies an update rule to the estimate."""

    portion: Portion
    update: Update
    asks_once: ClassVar[bool] = True
    knows_errors: ClassVar[bool] = False
    unary_only: ClassVar[bool] = False

    def open_memory(
        self,
        states: StateSpace,
        gap: int,
        topics: Sequence[Topic],
        map_shares: npt.NDArray[np.float64] | None = None,
    ) -> ReleasedMemory:
        """Return a memory without releases."""
        del states, gap, topics, map_shares
        return ReleasedMemory()

    def dialogue(self, view: View) -> Dialogue:
        """Ask once; without reports the previous release is repeated."""
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
