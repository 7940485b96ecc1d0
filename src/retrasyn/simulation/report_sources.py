"""Sources of simulated reports: real bit vectors, or counts drawn from the same distribution."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Aggregate, Grant
from retrasyn.oracles.registry import oracle_for
from retrasyn.randomness.words import address


def count_states(states: npt.NDArray[np.int32], n_answers: int) -> npt.NDArray[np.int64]:
    """Count the devices in each state; null reports (-1) are in none."""
    return np.bincount(states + 1, minlength=n_answers + 1)[1:]


class ReportSource(Protocol):
    """Collects the reports of a grant."""

    name: ClassVar[str]

    def collect(
        self,
        grant: Grant,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        lane: str,
    ) -> Aggregate:
        """Return the sum of all reports."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(frozen=True, slots=True)
class Counts:
    """Draws two binomials per state: the law of the sum of n reports, in O(n_answers)."""

    seed: int
    name: ClassVar[str] = "counts"

    def collect(
        self,
        grant: Grant,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        lane: str,
    ) -> Aggregate:
        """Draw the sum of all reports from the true counts."""
        del addresses
        true = count_states(states, grant.n_answers)
        key = address(self.seed, grant.t, f"noise/{lane}", n_bytes=16)
        generator = np.random.Generator(np.random.Philox(key=key))
        return oracle_for(grant).draw_counts(true, states.size, generator=generator)


@dataclass(frozen=True, slots=True)
class Reports:
    """Perturbs one bit vector per reporter and sums them."""

    seed: int
    name: ClassVar[str] = "reports"

    def collect(
        self,
        grant: Grant,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        lane: str,
    ) -> Aggregate:
        """Perturb every state and count the bits."""
        oracle = oracle_for(grant)
        key = address(self.seed, grant.t, f"noise/{lane}")
        packed = oracle.perturb(states, addresses, key=key, n_answers=grant.n_answers)
        return oracle.aggregate(packed, n_answers=grant.n_answers)


@dataclass(frozen=True, slots=True)
class Truth:
    """Reports without noise. Simulation only."""

    name: ClassVar[str] = "truth"

    def collect(
        self,
        grant: Grant,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        lane: str,
    ) -> Aggregate:
        """Count the true states."""
        del addresses, lane
        return Aggregate(counts=count_states(states, grant.n_answers), n=states.size)
