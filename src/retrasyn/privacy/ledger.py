"""The curator's ledgers: they track spending in any window and refuse to exceed epsilon.

Both divisions come down to one rule: over any `gap` consecutive timestamps nobody spends more
than epsilon, with gap = w + 1 when positions are protected (a window of w positions touches w + 1
transition states) and gap = w when transitions are. Budget division spends by timestamp, the same
for everybody; population division spends all of epsilon at once, user by user. Timestamps are
real ones: an empty timestamp still advances the window. Both ledgers are charged at the grant,
never refunded, and raise `BudgetExceeded` before anything is written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from retrasyn.arrays import grown
from retrasyn.errors import BudgetExceeded
from retrasyn.messages import MICRO, Ask, Grant, Roster
from retrasyn.privacy.selection import Selection, UniformDraw, can_answer

NEVER = -(1 << 62)
"""Timestamp of the last report of a key that has never reported."""

Keys = npt.NDArray[np.int64]


class Ledger(Protocol):
    """Turns asks into grants and charges for them."""

    epsilon: int  # micro-nats of any window
    gap: int

    def offer(
        self, ask: Ask, *, t: int, roster: Roster, seed: int, unpaid: Sequence[Grant] = ()
    ) -> Grant:
        """Return what an ask would be granted once the unpaid grants have been charged."""
        ...  # pragma: no cover - a protocol has no body

    def grant(self, ask: Ask, *, t: int, roster: Roster, seed: int) -> Grant:
        """Charge for an ask and return who reports."""
        ...  # pragma: no cover - a protocol has no body

    def admit(self, ask: Ask, *, t: int, epsilon: int, reporters: Keys) -> Grant:
        """Charge for reports that devices decided to make themselves."""
        ...  # pragma: no cover - a protocol has no body

    def available(self, t: int, keys: Keys, lookback: int = 1) -> npt.NDArray[np.bool_]:
        """Return which keys may report at t, regardless of the other keys."""
        ...  # pragma: no cover - a protocol has no body

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the ledger as plain arrays."""
        ...  # pragma: no cover - a protocol has no body

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore the ledger from plain arrays."""
        ...  # pragma: no cover - a protocol has no body


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
        """Return how much may still be spent at timestamp t."""
        return self.epsilon - sum(
            spend for then, spend in self.spent.items() if t - self.gap < then <= t
        )

    def charge(self, t: int, epsilon_t: int) -> None:
        """Spend epsilon_t at t, or raise `BudgetExceeded`."""
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

    def offer(
        self, ask: Ask, *, t: int, roster: Roster, seed: int, unpaid: Sequence[Grant] = ()
    ) -> Grant:
        """Return a grant of the asked share of epsilon, for everybody."""
        del seed
        waiting = sum(grant.epsilon for grant in unpaid if t - self.gap < grant.t < t)
        remaining = self.remaining(t) - waiting
        whole = remaining if ask.of == "remaining" else self.epsilon
        epsilon_t = max(min(int(ask.share * whole), remaining), 0)
        return Grant(t=t, epsilon=epsilon_t, reporters=roster.keys, question=ask.question)

    def grant(self, ask: Ask, *, t: int, roster: Roster, seed: int) -> Grant:
        """Charge the asked share of epsilon and name everybody present as reporters."""
        offered = self.offer(ask, t=t, roster=roster, seed=seed)
        if offered.epsilon == 0 or roster.keys.size == 0:
            return Grant(t=t, epsilon=0, reporters=roster.keys[:0], question=ask.question)
        self.charge(t, offered.epsilon)
        return offered

    def admit(self, ask: Ask, *, t: int, epsilon: int, reporters: Keys) -> Grant:
        """Charge what the round asked of everyone, whether or not any report arrived."""
        if epsilon:
            self.charge(t, epsilon)
        return Grant(t=t, epsilon=epsilon, reporters=reporters, question=ask.question)

    def available(self, t: int, keys: Keys, lookback: int = 1) -> npt.NDArray[np.bool_]:
        """All keys: the remaining budget is the same for everyone."""
        del t, lookback
        return np.ones(keys.size, np.bool_)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the ledger as plain arrays."""
        return {"spent": np.array(list(self.spent.items()), np.int64).reshape(-1, 2)}

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore the ledger from plain arrays."""
        self.spent = {int(t): int(spend) for t, spend in arrays["spent"]}


@dataclass(slots=True)
class TruthLedger(RoundLedger):
    """A ledger that is never charged: everyone tells the truth (simulation only)."""

    def grant(self, ask: Ask, *, t: int, roster: Roster, seed: int) -> Grant:
        """Name everyone who has an answer as a reporter."""
        del seed
        keys = roster.keys[can_answer(roster, ask.question)]
        return Grant(t=t, epsilon=0, reporters=keys, private=False, question=ask.question)


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
    selection: Selection = field(default_factory=UniformDraw)
    last: Keys = field(default_factory=lambda: np.empty(0, np.int64))

    def available(self, t: int, keys: Keys, lookback: int = 1) -> npt.NDArray[np.bool_]:
        """Return which keys have rested long enough for a report with this lookback."""
        self.last = grown(self.last, int(keys.max(initial=-1)) + 1, NEVER)
        mask: npt.NDArray[np.bool_] = self.last[keys] <= t - self.rest(lookback)
        return mask

    def rest(self, lookback: int) -> int:
        """Return how many timestamps must pass since the last report, whatever that one was.

        A transition looks back over one timestamp and needs `gap`; each further one needs one
        more, or a window could contain the last report and what this one looks back on. The proof
        is in `docs/proofs/lookback.md`.
        """
        return self.gap + lookback - 1

    def charge(self, t: int, keys: Keys, lookback: int = 1) -> None:
        """Spend epsilon of every key at t, or raise `BudgetExceeded` and charge none."""
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

    def offer(
        self, ask: Ask, *, t: int, roster: Roster, seed: int, unpaid: Sequence[Grant] = ()
    ) -> Grant:
        """Draw among the keys that have rested and are not in an unpaid grant."""
        available = self.available(t, roster.keys, ask.question.lookback)
        for grant in unpaid:
            available &= ~np.isin(roster.keys, grant.reporters)
        drawn = self.selection.draw(roster, available, ask=ask, t=t, gap=self.gap, seed=seed)
        epsilon = self.epsilon if drawn.size else 0
        return Grant(t=t, epsilon=epsilon, reporters=drawn, question=ask.question)

    def grant(self, ask: Ask, *, t: int, roster: Roster, seed: int) -> Grant:
        """Draw reporters and charge them."""
        offered = self.offer(ask, t=t, roster=roster, seed=seed)
        self.charge(t, offered.reporters, ask.question.lookback)
        return offered

    def admit(self, ask: Ask, *, t: int, epsilon: int, reporters: Keys) -> Grant:
        """Charge those who reported; each spends all of epsilon, whatever the round asked."""
        self.charge(t, reporters, ask.question.lookback)
        return Grant(t=t, epsilon=epsilon, reporters=reporters, question=ask.question)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the ledger as plain arrays."""
        return {"last": self.last}

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore the ledger from plain arrays."""
        self.last = arrays["last"].copy()
