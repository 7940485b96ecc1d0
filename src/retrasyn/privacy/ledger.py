"""The curator's ledgers: what was spent in any window, and a refusal to spend more.

Both divisions come down to one rule: over any `gap` consecutive timestamps nobody spends more
than epsilon, with gap = w + 1 when positions are protected (a window of w positions touches w + 1
transition states) and gap = w when transitions are. Budget division spends by timestamp, the same
for everybody; population division spends all of epsilon at once, user by user. Timestamps are
real ones: an empty timestamp still advances the window. Both ledgers are charged at the grant,
never refunded, and raise `BudgetExceeded` before anything is written.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.arrays import grown
from retrasyn.errors import BudgetExceeded
from retrasyn.messages import MICRO

NEVER = -(1 << 62)
"""Timestamp of a report that was never made."""


@dataclass(slots=True)
class RoundLedger:
    """Spend per timestamp (budget division), in micro-nats.

    >>> ledger = RoundLedger(epsilon=1_000_000, gap=2)
    >>> ledger.charge(7, 600_000)
    >>> ledger.remaining(8), ledger.remaining(9)
    (400000, 1000000)
    """

    epsilon: int
    gap: int
    spent: dict[int, int] = field(default_factory=dict)

    def remaining(self, t: int) -> int:
        """Return what timestamp t may still spend."""
        return self.epsilon - sum(
            spend for then, spend in self.spent.items() if t - self.gap < then <= t
        )

    def charge(self, t: int, epsilon_t: int) -> None:
        """Spend epsilon_t at t, or refuse."""
        newest = max(self.spent, default=t)
        if t < newest:
            raise BudgetExceeded(
                f"timestamp {t} comes after {newest} was charged; timestamps must not go back"
            )
        left = self.remaining(t)
        if epsilon_t < 0 or epsilon_t > left:
            raise BudgetExceeded(
                f"epsilon_t={epsilon_t / MICRO:.6g} at t={t} would exceed the {left / MICRO:.6g} "
                f"left of epsilon={self.epsilon / MICRO:.6g} over {self.gap} timestamps; "
                "skip this round or lower the portion"
            )
        self.spent = {then: spend for then, spend in self.spent.items() if then > t - self.gap}
        self.spent[t] = self.spent.get(t, 0) + epsilon_t


@dataclass(slots=True)
class UserLedger:
    """Last report per key (population division): each report spends all of epsilon.

    >>> ledger = UserLedger(epsilon=1_000_000, gap=3)
    >>> ledger.charge(0, np.array([4]))
    >>> ledger.available(2, np.array([4, 5])).tolist()
    [False, True]
    >>> ledger.available(3, np.array([4, 5])).tolist()
    [True, True]
    """

    epsilon: int
    gap: int
    last: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def available(
        self, t: int, keys: npt.NDArray[np.int64], lookback: int = 1
    ) -> npt.NDArray[np.bool_]:
        """Tell which keys have rested long enough for a report that looks back so far."""
        self.last = grown(self.last, int(keys.max(initial=-1)) + 1, NEVER)
        mask: npt.NDArray[np.bool_] = self.last[keys] <= t - self.rest(lookback)
        return mask

    def rest(self, lookback: int) -> int:
        """Return how many timestamps must pass since the last report, whatever that was.

        A transition looks back over one timestamp and needs `gap`; each further one needs one
        more, or a window could hold the last report and what this one looks back on. The argument
        is in `docs/proofs/lookback.md`.
        """
        return self.gap + lookback - 1

    def charge(self, t: int, keys: npt.NDArray[np.int64], lookback: int = 1) -> None:
        """Spend epsilon of every key at t, or refuse all of them."""
        early = int(keys.size - np.count_nonzero(self.available(t, keys, lookback)))
        ascending = bool(np.all(keys[1:] > keys[:-1]))
        twice = 0 if ascending else int(keys.size - np.unique(keys).size)
        if early or twice:
            raise BudgetExceeded(
                f"{early} of {keys.size} reporters at t={t} reported less than "
                f"{self.rest(lookback)} "
                f"timestamps ago and {twice} are listed twice; draw from the available ones only"
            )
        self.last[keys] = t
