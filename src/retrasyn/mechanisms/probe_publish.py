"""LDP-IDS: ask how much has changed, and publish only when that pays.

Two asks per timestamp. The *probe* spends 1 / (2 gap) of the resource and estimates the
dissimilarity, the mean squared distance of the truth from the last release. Only if it exceeds the
*publication error*, the variance that a publication would have now, is the second ask made.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from retrasyn.mechanisms.base import ReleasedMemory
from retrasyn.messages import Ask, Estimate
from retrasyn.mobility.model import normalised
from retrasyn.oracles.oue import OUE
from retrasyn.privacy.selection import n_users_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from retrasyn.mechanisms.base import Dialogue, View
    from retrasyn.messages import Topic
    from retrasyn.space import StateSpace


HALF = 0.5


@dataclass(frozen=True, slots=True)
class Publication:
    """A publication at t, and the share it used."""

    t: int
    share: float


class Schedule(Protocol):
    """Decides how much a publication may use."""

    def share(self, t: int, first_t: int, gap: int, past: Sequence[Publication]) -> float:
        """Return the share for timestamp t, 0 for none; `past` covers at least a window."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(frozen=True, slots=True)
class Distribution:
    """Half of what the window's publications have left: exponentially decreasing (LBD, LPD).

    >>> schedule = Distribution()
    >>> schedule.share(0, 0, 20, []), schedule.share(1, 0, 20, [Publication(0, 0.25)])
    (0.25, 0.125)
    """

    def share(self, t: int, first_t: int, gap: int, past: Sequence[Publication]) -> float:
        """Return half of what remains of the publication half."""
        del first_t
        spent = sum(one.share for one in past if one.t > t - gap)
        return max(HALF - spent, 0.0) / 2


@dataclass(frozen=True, slots=True)
class Absorption:
    """An even part, plus the parts skipped before it (LBA, LPA).

    A publication that absorbed k parts besides its own silences the k timestamps after it.

    >>> Absorption().share(2, 0, 5, [])
    0.30000000000000004
    >>> Absorption().share(3, 0, 5, [Publication(2, 0.3)])
    0.0
    """

    def share(self, t: int, first_t: int, gap: int, past: Sequence[Publication]) -> float:
        """Return the unused parts of the timestamps since the last publication."""
        part = HALF / gap
        free_since = first_t
        if past:
            last = past[-1]
            free_since = last.t + max(round(last.share / part), 1)
        n_parts = min(t - free_since + 1, gap)
        return n_parts * part if n_parts > 0 else 0.0


@dataclass(slots=True)
class PublicationMemory(ReleasedMemory):
    """The past releases, and the shares that publications used."""

    gap: int = 1
    past: deque[Publication] = field(default_factory=deque)

    def after(self, t: int, *published: Publication) -> PublicationMemory:
        """Return the memory after timestamp t; the last publication is never forgotten."""
        past = deque([*self.past, *published])
        while len(past) > 1 and past[0].t <= t - self.gap:
            past.popleft()
        return dataclasses.replace(self, past=past)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the memory as plain arrays."""
        past = [(one.t, one.share) for one in self.past]
        return ReleasedMemory.to_arrays(self) | {"past": np.array(past, np.float64).reshape(-1, 2)}

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore the memory from plain arrays."""
        ReleasedMemory.load_arrays(self, arrays)
        self.past = deque(Publication(int(t), float(share)) for t, share in arrays["past"])


@dataclass(frozen=True, slots=True)
class ProbeThenPublish:
    """Probes at every timestamp and publishes by a schedule."""

    schedule: Schedule
    asks_once: ClassVar[bool] = False
    knows_errors: ClassVar[bool] = False
    unary_only: ClassVar[bool] = True

    def open_memory(
        self,
        states: StateSpace,
        gap: int,
        topics: Sequence[Topic],
        map_shares: npt.NDArray[np.float64] | None = None,
    ) -> PublicationMemory:
        """Return a memory without publications."""
        del states, topics, map_shares
        return PublicationMemory(gap=gap)

    def dialogue(self, view: View) -> Dialogue:
        """Probe; publish if the last release is further from the truth than a new one would be.

        Before the first release there is nothing to compare with, so a publication is made
        whatever the probe says. A publication counts as soon as it is asked for: whoever was asked
        has spent, whether or not an estimate came of it.
        """
        memory = view.memory_as(PublicationMemory)
        previous = memory.released
        probe = yield Ask(share=HALF / view.gap, of="everybody", lane="probe")
        share = self.schedule.share(view.t, view.first_t, view.gap, memory.past)
        error = publication_error(view, share)
        if not np.isfinite(error):
            return memory.after(view.t).unchanged()
        if previous is not None and (probe is None or dissimilarity(previous, probe) <= error):
            return memory.after(view.t).unchanged()
        estimate = yield Ask(share=share, of="everybody")
        memory = memory.after(view.t, Publication(view.t, share))
        fresh = None if estimate is None else normalised(estimate)
        return memory.unchanged() if fresh is None else memory.renewed(fresh, fresh.size, view.t)


def dissimilarity(previous: npt.NDArray[np.float64], probe: Estimate) -> float:
    """Return an unbiased estimate of the mean squared distance of the truth from a release.

    The squared distance of an estimate includes its own variance: Eq. 3 plus f / n for every
    state, and the frequencies of all states sum to one.
    """
    own = probe.variance + 1.0 / (probe.n * previous.size)
    return float(np.mean((probe.frequencies - previous) ** 2)) - own


def publication_error(view: View, share: float) -> float:
    """Return the variance of an estimate from a share of the budget or the users (Eq. 3).

    It is infinite if the share is too small for a single report, or leaves no epsilon.
    """
    epsilon = view.epsilon if view.splits_users else int(share * view.epsilon)
    n = n_users_of(share, view.n_enrolled) if view.splits_users else view.n_enrolled
    return OUE(epsilon).variance(n) if epsilon > 0 and n > 0 else np.inf
