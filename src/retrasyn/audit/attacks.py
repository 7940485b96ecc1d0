"""What a malicious curator tries against one device, round after round.

Real rounds are counted from 0. A person's whereabouts are known but for one window of positions,
the first of which is taken in real round `FIRST_AT`. The curator signs what it likes, and may set
the device's wall clock, restart it, wipe its ledger or have its owner agree to another manifest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Trouble = Literal["none", "restart", "wipe", "another campaign"]
FIRST_AT = 2
"""Real round of the first position of the window. The two before are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One way to put the round of a timestamp."""

    share: Fraction = Fraction(1)  # of the manifest's epsilon
    grace: int = 5


HONEST = Version()


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What the curator does in one real round."""

    sends: tuple[Version, ...] = ()
    shift: int = 0  # rounds by which the device's wall clock is ahead
    trouble: Trouble = "none"  # what happens to the device before anything is sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """A name, a sentence, and what is done in each real round, given the window."""

    name: str
    about: str
    move: Callable[[int, int], Move]


def _every_round(*sends: Version) -> Callable[[int, int], Move]:
    """Send the same in every round whose state depends on the window."""
    return lambda real, window: Move(sends=sends * _depends(real, window))


def _edges(real: int, window: int) -> Move:
    return Move(sends=(HONEST,) * (real in (FIRST_AT, FIRST_AT + window)))


def _small_coin(real: int, window: int) -> Move:
    return Move(sends=(Version(share=Fraction(1, window)),) * _depends(real, window))


def _clock(real: int, window: int) -> Move:
    ahead = (window + 2) * max(real - FIRST_AT, 0)
    return Move(sends=(HONEST,) * _depends(real, window), shift=ahead)


def _after(trouble: Trouble) -> Callable[[int, int], Move]:
    """Let something happen to the device once it has reported, and go on asking."""

    def move(real: int, window: int) -> Move:
        happens = trouble if real == FIRST_AT + 1 else "none"
        return Move(sends=(HONEST,) * _depends(real, window), trouble=happens)

    return move


def _depends(real: int, window: int) -> bool:
    """Tell whether the state of a real round depends on the window: w + 1 of them do."""
    return FIRST_AT <= real <= FIRST_AT + window


_TOO_MUCH = Version(share=Fraction(2))
_OTHERWISE = Version(grace=6)
ATTACKS = (
    Attack(name="edges", about="asks at both ends of the window", move=_edges),
    Attack(name="always", about="asks in every round", move=_every_round(HONEST)),
    Attack(name="repeats", about="sends every round twice", move=_every_round(HONEST, HONEST)),
    Attack(name="versions", about="sends two versions", move=_every_round(HONEST, _OTHERWISE)),
    Attack(name="ceiling", about="tries twice epsilon", move=_every_round(_TOO_MUCH, HONEST)),
    Attack(name="small coin", about="asks for a part of epsilon each time", move=_small_coin),
    Attack(name="clock", about="sets the wall clock forward by windows", move=_clock),
    Attack(name="restart", about="restarts the device", move=_after("restart")),
    Attack(name="wipe", about="wipes the ledger", move=_after("wipe")),
    Attack(name="campaign", about="begins another campaign", move=_after("another campaign")),
)
