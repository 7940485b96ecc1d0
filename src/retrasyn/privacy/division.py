"""What is divided among timestamps: epsilon or the users (Sec. III-E).

A division is part of a method's row. The ledger it opens turns asks into grants.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

from retrasyn.privacy.ledger import Ledger, RoundLedger, TruthLedger, UserLedger
from retrasyn.privacy.selection import Sampling, Selection, UniformDraw


class Division(Protocol):
    """What is divided among timestamps, and the ledger that accounts for it."""

    @property
    def name(self) -> Literal["budget", "population", "none"]:
        """The name in receipts and manifests."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def private(self) -> bool:
        """Whether reports are perturbed and charged at all."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def splits_users(self) -> bool:
        """Whether users are divided; two grants of one timestamp then share no reporter."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def sampling(self) -> Sampling:
        """How real devices learn whether to report."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def other_shares(self) -> tuple[float, ...]:
        """Shares of the users who never report transitions, one for each thing asked instead."""
        ...  # pragma: no cover - a protocol has no body

    def open_ledger(self, *, epsilon: int, gap: int) -> Ledger:
        """Return an empty ledger for this division."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(frozen=True, slots=True)
class BudgetDivision:
    """Everyone with a state reports, each timestamp with a part of epsilon."""

    name: ClassVar[Literal["budget"]] = "budget"
    private: ClassVar[bool] = True
    splits_users: ClassVar[bool] = False
    sampling: ClassVar[Sampling] = "self"
    other_shares: ClassVar[tuple[float, ...]] = ()

    def open_ledger(self, *, epsilon: int, gap: int) -> RoundLedger:
        """Return an empty ledger of spending by timestamp."""
        return RoundLedger(epsilon=epsilon, gap=gap)


@dataclass(frozen=True, slots=True)
class UserDivision:
    """Few users report, each with all of epsilon, and then rest for a window."""

    selection: Selection = field(default_factory=UniformDraw)
    name: ClassVar[Literal["population"]] = "population"
    private: ClassVar[bool] = True
    splits_users: ClassVar[bool] = True

    @property
    def sampling(self) -> Sampling:
        """How real devices learn whether to report: set by the selection."""
        return self.selection.sampling

    @property
    def other_shares(self) -> tuple[float, ...]:
        """Shares of the users who are asked something other than transitions."""
        return self.selection.other_shares

    def open_ledger(self, *, epsilon: int, gap: int) -> UserLedger:
        """Return an empty ledger of reports by user."""
        return UserLedger(epsilon=epsilon, gap=gap, selection=self.selection)


@dataclass(frozen=True, slots=True)
class NoPrivacy:
    """Everyone tells the truth, in simulations only: an upper bound on utility."""

    name: ClassVar[Literal["none"]] = "none"
    private: ClassVar[bool] = False
    splits_users: ClassVar[bool] = False
    sampling: ClassVar[Sampling] = "self"
    other_shares: ClassVar[tuple[float, ...]] = ()

    def open_ledger(self, *, epsilon: int, gap: int) -> TruthLedger:
        """Return a ledger that grants without charging."""
        return TruthLedger(epsilon=epsilon, gap=gap)
