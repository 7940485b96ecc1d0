"""Who is drawn among the available (population division). Draws are addressed by (seed, t, key)."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Roster
from retrasyn.randomness.addresses import address
from retrasyn.randomness.kernels import words_at


class Selection(Protocol):
    """Picks reporters."""

    def draw(
        self,
        roster: Roster,
        available: npt.NDArray[np.bool_],
        *,
        share: float,
        t: int,
        gap: int,
        seed: int,
    ) -> npt.NDArray[np.int64]:
        """Return the keys that report at t."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(frozen=True, slots=True)
class UniformDraw:
    """A share of the available users, each subset equally likely (Alg. 1, line 12)."""

    def draw(
        self,
        roster: Roster,
        available: npt.NDArray[np.bool_],
        *,
        share: float,
        t: int,
        gap: int,
        seed: int,
    ) -> npt.NDArray[np.int64]:
        """Return the keys with the smallest words."""
        del gap
        keys = roster.keys[available]
        n_drawn = min(int(share * keys.size + 1e-9), keys.size)  # 1/21 of 42 is 2, not 1.99...
        if n_drawn == 0:
            return keys[:0]
        words = words_at(np.uint64(address(seed, t, "draw")), roster.addresses[available])
        return np.sort(keys[np.argpartition(words, n_drawn - 1)[:n_drawn]])


@dataclass(frozen=True, slots=True)
class OwnSlot:
    """Everyone at a slot drawn on entering, and every `gap` after while a state exists."""

    def draw(
        self,
        roster: Roster,
        available: npt.NDArray[np.bool_],
        *,
        share: float,
        t: int,
        gap: int,
        seed: int,
    ) -> npt.NDArray[np.int64]:
        """Return the available keys whose slot is now."""
        del share, seed
        since = t - roster.slots
        due: npt.NDArray[np.bool_] = available & (since >= 0) & (since % gap == 0)
        return roster.keys[due]
