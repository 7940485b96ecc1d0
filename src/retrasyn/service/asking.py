"""What a round asks: decided when it opens, from the state as it is then, and recorded.

Slots ask the same of everybody at every round. Where users are divided, a round has a portion, or
a drawn subset; where epsilon is, a part of it. Rounds that are open and not yet folded count as
spent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from retrasyn.curator import Curator
from retrasyn.messages import Ask, Manifest, Roster
from retrasyn.privacy.division import Population
from retrasyn.privacy.ledger import RoundLedger, UserLedger
from retrasyn.randomness.addresses import address
from retrasyn.randomness.kernels import words_at
from retrasyn.service.store import RoundRow

EVERYBODY = 1 << 64
KEY = np.dtype("<u4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How much each reporter spends, and who is to report."""

    epsilon: int  # micro-nats; 0: nothing is asked
    portion: int  # 0..2^64
    drawn: npt.NDArray[np.int64] | None = None  # keys, ascending; None: anybody

    @property
    def drawn_bytes(self) -> bytes | None:
        """The drawn keys as they are recorded."""
        return None if self.drawn is None else self.drawn.astype(KEY).tobytes()


NOTHING = Asked(epsilon=0, portion=0)


def keys_in(drawn: bytes | None) -> npt.NDArray[np.int64]:
    """Return the recorded keys of those who were drawn."""
    return np.frombuffer(drawn or b"", KEY).astype(np.int64)


def decide(
    curator: Curator,
    manifest: Manifest,
    t: int,
    *,
    pending: Sequence[RoundRow],
    enrolled: npt.NDArray[np.int64],
    size: int,
) -> Asked:
    """Decide about round t; `pending` are the rounds that were opened and not folded."""
    if manifest.sampling == "phase":
        return Asked(epsilon=manifest.epsilon, portion=EVERYBODY)
    first_t = min([t, *(row.t for row in pending)])
    ask = _first_ask(curator, t, first_t=first_t, size=size, n_enrolled=enrolled.size)
    if ask is None:
        return NOTHING
    ledger = curator.state.ledger
    if isinstance(ledger, RoundLedger):
        return _part_of_epsilon(ask, t, ledger, pending)
    if manifest.sampling == "curator":
        return _drawn(curator, ledger, ask, t, pending, enrolled)
    portion = min(int(ask.share * EVERYBODY), EVERYBODY)
    return Asked(epsilon=manifest.epsilon, portion=portion) if portion else NOTHING


def _first_ask(curator: Curator, t: int, *, first_t: int, size: int, n_enrolled: int) -> Ask | None:
    """Return what the mechanism would ask for now; its memory is left as it is."""
    view = curator.view(t, size=size, n_enrolled=n_enrolled)
    if curator.state.first_t is None:  # the first rounds are open, and none is folded
        view = dataclasses.replace(view, first_t=first_t)
    return next(curator.method.mechanism.dialogue(view), None)


def _part_of_epsilon(ask: Ask, t: int, ledger: RoundLedger, pending: Sequence[RoundRow]) -> Asked:
    """Ask everybody for a part of what is left, once all open rounds are paid for."""
    waiting = sum(row.epsilon for row in pending if t - ledger.gap < row.t < t)
    remaining = ledger.remaining(t) - waiting
    whole = remaining if ask.of == "remaining" else ledger.epsilon
    epsilon = min(int(ask.share * whole), remaining)
    return Asked(epsilon=epsilon, portion=EVERYBODY) if epsilon > 0 else NOTHING


def _drawn(
    curator: Curator,
    ledger: UserLedger,
    ask: Ask,
    t: int,
    pending: Sequence[RoundRow],
    enrolled: npt.NDArray[np.int64],
) -> Asked:
    """Draw a subset of the enrolled who have rested; those drawn before may still report."""
    division = curator.method.division
    if not isinstance(division, Population):
        raise AssertionError("only a division of users draws anybody")  # noqa: TRY004 - our mistake
    waiting = [keys_in(row.drawn) for row in pending]
    available = ledger.available(t, enrolled) & ~np.isin(enrolled, np.concatenate([[], *waiting]))
    roster = Roster(
        keys=enrolled,
        addresses=words_at(
            np.uint64(address(curator.seed, 0, "device")), enrolled.astype(np.uint64)
        ),
        slots=np.zeros(enrolled.size, np.int64),
    )
    drawn = division.selection.draw(
        roster, available, ask=ask, t=t, gap=ledger.gap, seed=curator.seed
    )
    return Asked(epsilon=ledger.epsilon, portion=EVERYBODY, drawn=drawn) if drawn.size else NOTHING
