"""Selects reporters among available users (population division); draws depend on (seed, t, key)."""

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from retrasyn.errors import SettingError
from retrasyn.messages import ABSENT, ENTERING, MOVING, QUITTING, SPEEDS, Ask, Question, Roster
from retrasyn.randomness.kernels import words_at
from retrasyn.randomness.words import address

Sampling = Literal["phase", "self"]
"""How real devices learn whether to report: each in its own phase, or by its own coin."""


class Selection(Protocol):
    """Selects the reporters of a timestamp."""

    @property
    def sampling(self) -> Sampling:
        """How real devices learn whether to report."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def other_shares(self) -> tuple[float, ...]:
        """Shares of the users who are asked something other than transitions."""
        ...  # pragma: no cover - a protocol has no body

    def draw(
        self,
        roster: Roster,
        available: npt.NDArray[np.bool_],
        *,
        ask: Ask,
        t: int,
        gap: int,
        seed: int,
    ) -> npt.NDArray[np.int64]:
        """Return the keys that report at t."""
        ...  # pragma: no cover - a protocol has no body


def n_users_of(share: float, n: int) -> int:
    """Return how many users a share of n is, rounded down.

    >>> n_users_of(1 / 21, 42), n_users_of(0.29, 100), n_users_of(0.5, 1)
    (2, 29, 0)
    """
    return int(share * n + 1e-9)  # 0.29 of 100 is 29, not 28.99...


@dataclass(frozen=True, slots=True)
class UniformDraw:
    """A share of the available users, each subset equally likely (Alg. 1, line 12)."""

    sampling: ClassVar[Sampling] = "self"
    other_shares: ClassVar[tuple[float, ...]] = ()

    def draw(
        self,
        roster: Roster,
        available: npt.NDArray[np.bool_],
        *,
        ask: Ask,
        t: int,
        gap: int,
        seed: int,
    ) -> npt.NDArray[np.int64]:
        """Return the available keys with the smallest addressed words."""
        del gap
        keys = roster.keys[available]
        whole = roster.keys.size if ask.of == "everybody" else keys.size
        n_drawn = min(n_users_of(ask.share, whole), keys.size)
        if n_drawn == 0:
            return keys[:0]
        words = words_at(np.uint64(address(seed, t, "draw")), roster.addresses[available])
        return np.sort(keys[np.argpartition(words, n_drawn - 1)[:n_drawn]])


@dataclass(frozen=True, slots=True)
class OwnSlot:
    """Everyone at a slot drawn on entering, and every `gap` timestamps later while in a state."""

    sampling: ClassVar[Sampling] = "phase"
    other_shares: ClassVar[tuple[float, ...]] = ()

    def draw(
        self,
        roster: Roster,
        available: npt.NDArray[np.bool_],
        *,
        ask: Ask,
        t: int,
        gap: int,
        seed: int,
    ) -> npt.NDArray[np.int64]:
        """Return the available keys whose slot is at t."""
        del ask, seed
        since = t - roster.slots
        due: npt.NDArray[np.bool_] = available & (since >= 0) & (since % gap == 0)
        return roster.keys[due]


_KIND = {"move": MOVING, "enter": ENTERING, "quit": QUITTING, "faster": MOVING}
_THRESHOLDS = (2, 6, 16)
_AGE_PERIOD = 3  # gaps between two age reports of the same person


def can_answer(roster: Roster, question: Question) -> npt.NDArray[np.bool_]:
    """Return which keys have an answer to a question: [n_roster]."""
    if roster.kinds is None or question.about in ("transition", "present"):
        return np.ones(roster.keys.size, np.bool_)
    if question.about in ("older", "cell"):
        return np.isin(roster.kinds, (QUITTING, ABSENT), invert=True)
    return np.equal(roster.kinds, _KIND[question.about])


def age_thresholds(gap: int) -> tuple[int, ...]:
    """Return the age thresholds asked about; the largest is what a rest of three gaps allows.

    >>> age_thresholds(21), age_thresholds(2)
    ((2, 6, 16, 42), (2, 4))
    """
    longest = (_AGE_PERIOD - 1) * gap
    return (*(age for age in _THRESHOLDS if age < longest), longest)


@dataclass(frozen=True, slots=True)
class PhaseSlots:
    """Everyone in a phase of their own, once per window; no central selection.

    Fixed shares of the persons answer about ages, presence, how far they moved or their cell
    instead of transitions; None if that is never asked. An age report looks back further, so it
    is made only every three gaps. A device that stops reports out of phase, if it has rested long
    enough. Nobody's role, phase or threshold depends on a place.
    """

    age_share: float | None = None
    presence_share: float | None = None
    cell_share: float | None = None
    speed_share: float | None = None
    sampling: ClassVar[Sampling] = "phase"

    def __post_init__(self) -> None:
        shares = self.other_shares
        if not (all(share >= 0 for share in shares) and sum(shares) < 1):
            names = ("age_share", "presence_share", "speed_share", "cell_share")
            given = [(name, getattr(self, name)) for name in names]
            said = " and ".join(f"{name}={share:g}" for name, share in given if share is not None)
            raise SettingError(f"{said} must be shares that leave somebody to report transitions")

    @property
    def other_shares(self) -> tuple[float, ...]:
        """Shares of the users who answer about ages, presence, speeds and cells, where asked."""
        shares = self.age_share, self.presence_share, self.speed_share, self.cell_share
        return tuple(share for share in shares if share is not None)

    def draw(
        self,
        roster: Roster,
        available: npt.NDArray[np.bool_],
        *,
        ask: Ask,
        t: int,
        gap: int,
        seed: int,
    ) -> npt.NDArray[np.int64]:
        """Return the available keys whose phase and role make them answer at t."""
        about = ask.question.about
        period = _AGE_PERIOD * gap if about == "older" else gap
        words = words_at(np.uint64(address(seed, 0, "phase")), roster.addresses)
        due: npt.NDArray[np.bool_] = words % np.uint64(period) == np.uint64(t % period)
        if about == "quit":
            due = np.ones(due.size, np.bool_)
        due &= available & can_answer(roster, ask.question) & self._in_role(roster, about, seed)
        if about in ("older", "faster"):
            thresholds = age_thresholds(gap) if about == "older" else SPEEDS
            choice = words_at(np.uint64(address(seed, t, "threshold")), roster.addresses)
            mine = thresholds.index(ask.question.threshold)
            due &= choice % np.uint64(len(thresholds)) == np.uint64(mine)
        return roster.keys[due]

    def _in_role(self, roster: Roster, about: str, seed: int) -> npt.NDArray[np.bool_]:
        """Return which keys answer this kind of question; roles are drawn once and kept."""
        words = words_at(np.uint64(address(seed, 0, "role")), roster.addresses)
        role = words * 2.0**-64
        ages = self.age_share or 0.0
        presence = ages + (self.presence_share or 0.0)
        speeds = presence + (self.speed_share or 0.0)
        cells = speeds + (self.cell_share or 0.0)
        bounds = {
            "older": (0.0, ages),
            "present": (ages, presence),
            "faster": (presence, speeds),
            "cell": (speeds, cells),
        }
        low, high = bounds.get(about, (cells, np.inf))
        return (role >= low) & (role < high)
