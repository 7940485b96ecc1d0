"""From a wish to a grant: what is split, epsilon or the users (Sec. III-E). Charges the ledger."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Ask, Grant, Roster
from retrasyn.privacy.ledger import RoundLedger, UserLedger
from retrasyn.privacy.selection import Selection, UniformDraw, can_answer


@dataclass(frozen=True, slots=True)
class BudgetDivision:
    """Everybody with a state reports, each timestamp with a part of epsilon."""

    name: ClassVar[str] = "budget"
    private: ClassVar[bool] = True
    splits_users: ClassVar[bool] = False  # two grants of a timestamp never name the same user

    def open_ledger(self, *, epsilon: int, gap: int) -> RoundLedger:
        """Return an empty ledger of the kind this division charges."""
        return RoundLedger(epsilon=epsilon, gap=gap)

    def grant(self, ask: Ask, *, t: int, roster: Roster, ledger: RoundLedger, seed: int) -> Grant:
        """Charge the asked share of epsilon and name everybody present."""
        del seed
        remaining = ledger.remaining(t)
        whole = remaining if ask.of == "remaining" else ledger.epsilon
        epsilon_t = min(int(ask.share * whole), remaining)
        if epsilon_t <= 0 or roster.keys.size == 0:
            return Grant(t=t, epsilon=0, reporters=roster.keys[:0], question=ask.question)
        ledger.charge(t, epsilon_t)
        return Grant(t=t, epsilon=epsilon_t, reporters=roster.keys, question=ask.question)

    def admit(
        self,
        ask: Ask,
        *,
        t: int,
        epsilon: int,
        reporters: npt.NDArray[np.int64],
        ledger: RoundLedger,
    ) -> Grant:
        """Charge what the round asked of everybody, whether or not anybody's report arrived."""
        if epsilon:
            ledger.charge(t, epsilon)
        return Grant(t=t, epsilon=epsilon, reporters=reporters, question=ask.question)


@dataclass(frozen=True, slots=True)
class UserDivision:
    """Few report, each with all of epsilon, and then rest for a window."""

    selection: Selection = field(default_factory=UniformDraw)
    name: ClassVar[str] = "population"
    private: ClassVar[bool] = True
    splits_users: ClassVar[bool] = True

    def open_ledger(self, *, epsilon: int, gap: int) -> UserLedger:
        """Return an empty ledger of the kind this division charges."""
        return UserLedger(epsilon=epsilon, gap=gap)

    def grant(self, ask: Ask, *, t: int, roster: Roster, ledger: UserLedger, seed: int) -> Grant:
        """Charge the drawn users."""
        lookback = ask.question.lookback
        available = ledger.available(t, roster.keys, lookback)
        drawn = self.selection.draw(roster, available, ask=ask, t=t, gap=ledger.gap, seed=seed)
        ledger.charge(t, drawn, lookback)
        return Grant(
            t=t,
            epsilon=ledger.epsilon if drawn.size else 0,
            reporters=drawn,
            question=ask.question,
        )

    def admit(
        self,
        ask: Ask,
        *,
        t: int,
        epsilon: int,
        reporters: npt.NDArray[np.int64],
        ledger: UserLedger,
    ) -> Grant:
        """Charge those who reported; each spends all of epsilon, whatever the round said."""
        ledger.charge(t, reporters, ask.question.lookback)
        return Grant(t=t, epsilon=epsilon, reporters=reporters, question=ask.question)


@dataclass(frozen=True, slots=True)
class NoPrivacy:
    """Everybody tells the truth. Simulation only: it shows the ceiling."""

    name: ClassVar[str] = "none"
    private: ClassVar[bool] = False
    splits_users: ClassVar[bool] = False

    def open_ledger(self, *, epsilon: int, gap: int) -> RoundLedger:
        """Return a ledger that is never charged."""
        return RoundLedger(epsilon=epsilon, gap=gap)

    def grant(self, ask: Ask, *, t: int, roster: Roster, ledger: RoundLedger, seed: int) -> Grant:
        """Name everybody present."""
        del ledger, seed
        keys = roster.keys[can_answer(roster, ask.question)]
        return Grant(t=t, epsilon=0, reporters=keys, private=False, question=ask.question)


Division = BudgetDivision | UserDivision | NoPrivacy
Ledger = RoundLedger | UserLedger
