"""How much a publication of LDP-IDS may use, as a share of the whole resource.

Half of the resource of any window is for probing, half for publishing. One *part* is what each
timestamp would get if the publishing half were cut evenly: 1 / (2 gap).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

HALF = 0.5


@dataclass(frozen=True, slots=True)
class Publication:
    """A share that was published at t."""

    t: int
    share: float


class Schedule(Protocol):
    """Decides how much a publication may use."""

    def share(self, t: int, first_t: int, gap: int, past: Sequence[Publication]) -> float:
        """Return the share for timestamp t, 0 for none; `past` reaches back over a window."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(frozen=True, slots=True)
class Distribution:
    """Half of what publications of the window have left: exponentially less (LBD, LPD).

    >>> schedule = Distribution()
    >>> schedule.share(0, 0, 20, []), schedule.share(1, 0, 20, [Publication(0, 0.25)])
    (0.25, 0.125)
    """

    def share(self, t: int, first_t: int, gap: int, past: Sequence[Publication]) -> float:
        """Halve what remains of the publishing half."""
        del first_t
        spent = sum(one.share for one in past if one.t > t - gap)
        return max(HALF - spent, 0.0) / 2


@dataclass(frozen=True, slots=True)
class Absorption:
    """An even part, together with the parts that were skipped before (LBA, LPA).

    A publication that absorbed k parts beside its own silences the k timestamps after it.

    >>> Absorption().share(2, 0, 5, [])
    0.30000000000000004
    >>> Absorption().share(3, 0, 5, [Publication(2, 0.3)])
    0.0
    """

    def share(self, t: int, first_t: int, gap: int, past: Sequence[Publication]) -> float:
        """Take the parts of the timestamps since the last publication that were not given away."""
        part = HALF / gap
        free_since = first_t
        if past:
            last = past[-1]
            free_since = last.t + max(round(last.share / part), 1)
        n_parts = min(t - free_since + 1, gap)
        return n_parts * part if n_parts > 0 else 0.0
