"""LDP-IDS: ask how much has changed, and publish only when that pays.

Two asks per timestamp. The *probe* spends 1 / (2 gap) of the resource and estimates the
dissimilarity, the mean squared distance of the truth from the last release. Only if it exceeds the
*publication error*, the variance that a publication would have now, is the second ask made.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.mechanisms.base import ReleasedMemory
from retrasyn.mechanisms.schedules import HALF, Publication, Schedule
from retrasyn.messages import Ask, Estimate, Outcome
from retrasyn.mobility.updating import normalised
from retrasyn.oracles.oue import OUE
from retrasyn.privacy.selection import n_users_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from retrasyn.mechanisms.base import Dialogue, View
    from retrasyn.space import StateSpace


@dataclass(slots=True)
class PublicationMemory(ReleasedMemory):
    """What was released, and which shares publications used."""

    gap: int = 1
    past: deque[Publication] = field(default_factory=deque)

    def remember(self, outcome: Outcome, t: int) -> None:
        """Take in what timestamp t brought; the last publication is never forgotten."""
        ReleasedMemory.remember(self, outcome, t)
        if outcome.memory is not None:
            self.past.append(outcome.memory)
        while len(self.past) > 1 and self.past[0].t <= t - self.gap:
            self.past.popleft()

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything as plain arrays."""
        past = [(one.t, one.share) for one in self.past]
        return ReleasedMemory.to_arrays(self) | {"past": np.array(past, np.float64).reshape(-1, 2)}

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take everything over from plain arrays."""
        ReleasedMemory.load_arrays(self, arrays)
        self.past = deque(Publication(int(t), float(share)) for t, share in arrays["past"])


@dataclass(frozen=True, slots=True)
class ProbeThenPublish:
    """A schedule of publications."""

    schedule: Schedule

    def open_memory(self, states: StateSpace, gap: int) -> PublicationMemory:
        """Return a memory of nothing."""
        del states
        return PublicationMemory(gap=gap)

    def furthest_lookback(self, gap: int) -> int:
        """Transitions look back over one timestamp."""
        del gap
        return 1

    def dialogue(self, view: View) -> Dialogue:
        """Probe; publish if the last release is further off than a new one would be.

        Before anything was released there is nothing to be near to: then a publication is made
        whatever the probe says. A publication counts as soon as it is asked for: who was asked
        has spent, whether or not an estimate came of it.
        """
        memory: PublicationMemory = view.memory
        previous = memory.released
        stands = Outcome(released=previous, n_significant=0, fresh=False)
        probe = yield Ask(share=HALF / view.gap, of="everybody", lane="probe")
        share = self.schedule.share(view.t, view.first_t, view.gap, memory.past)
        error = publication_error(view, share)
        if not np.isfinite(error):
            return stands
        if previous is not None and (probe is None or dissimilarity(previous, probe) <= error):
            return stands
        estimate = yield Ask(share=share, of="everybody")
        fresh = None if estimate is None else normalised(estimate)
        return Outcome(
            released=previous if fresh is None else fresh,
            n_significant=0 if fresh is None else fresh.size,
            fresh=fresh is not None,
            memory=Publication(view.t, share),
        )


def dissimilarity(previous: npt.NDArray[np.float64], probe: Estimate) -> float:
    """Return an unbiased estimate of the mean squared distance of the truth from a release.

    The squared distance of an estimate holds its own variance beside: Eq. 3 and f / n for every
    state, and the frequencies of all states sum to one.
    """
    own = probe.variance + 1.0 / (probe.n * previous.size)
    return float(np.mean((probe.frequencies - previous) ** 2)) - own


def publication_error(view: View, share: float) -> float:
    """Return the variance of an estimate from a share of the resource (Eq. 3).

    A share that buys no report, or no epsilon, has an infinite one.
    """
    epsilon = view.epsilon if view.splits_users else int(share * view.epsilon)
    n = n_users_of(share, view.n_enrolled) if view.splits_users else view.n_enrolled
    return OUE(epsilon).variance(n) if epsilon > 0 and n > 0 else np.inf
