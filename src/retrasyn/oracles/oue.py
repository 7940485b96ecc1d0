"""Optimised unary encoding (Sec. II-A, Eq. 2 and 3).

A user's state becomes n_states bits; the true bit survives with probability 1/2, every other bit
turns on with probability q = T / 2^64, the exact figure just above 1 / (e^epsilon + 1).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Aggregate, Estimate
from retrasyn.oracles import kernels
from retrasyn.oracles.base import debias, variance_at_zero
from retrasyn.oracles.single import report_bytes
from retrasyn.oracles.threshold import WORD, noise_threshold


@dataclass(frozen=True, slots=True)
class OUE:
    """The oracle at one budget, given in micro-nats.

    >>> oracle = OUE(1_000_000)
    >>> round(oracle.q, 4), round(oracle.variance(100), 4)
    (0.2689, 0.0368)
    """

    epsilon: int

    @property
    def threshold(self) -> int:
        """T: a noise bit is 1 iff a 64-bit word is below it."""
        return noise_threshold(self.epsilon)

    @property
    def p(self) -> float:
        """Probability that the true bit is on."""
        return 0.5

    @property
    def q(self) -> float:
        """Probability of a noise bit, T / 2^64."""
        return self.threshold / WORD

    def variance(self, n: int) -> float:
        """Return the variance of an estimate at frequency zero (Eq. 3), with the exact q."""
        return variance_at_zero(self, n)

    def report_bytes(self, n_states: int) -> int:
        """Return the size of one report: a bit per state."""
        return report_bytes("oue", n_states, epsilon=self.epsilon)

    def perturb(
        self,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        key: int,
        n_states: int,
    ) -> npt.NDArray[np.uint8]:
        """Perturb many states into packed reports (Eq. 2): [n, ceil(n_states / 8)]."""
        packed: npt.NDArray[np.uint8] = kernels.perturb_addressed(
            states, addresses, np.uint64(key), np.uint64(self.threshold), n_states
        )
        return packed

    def aggregate(self, packed: npt.NDArray[np.uint8], *, n_states: int) -> Aggregate:
        """Add packed reports up."""
        return Aggregate(counts=kernels.count_bits(packed, n_states), n=len(packed))

    def draw_counts(
        self, true: npt.NDArray[np.int64], n: int, *, generator: np.random.Generator
    ) -> Aggregate:
        """Draw the sum of n reports from the true counts: the same law, in O(n_states).

        Bits of different states and users are independent, so a state held by c of n users
        counts Binomial(c, 1/2) + Binomial(n - c, q).
        """
        kept = generator.binomial(true, 0.5)
        noise = generator.binomial(n - true, self.q)
        return Aggregate(counts=kept + noise, n=n)

    def estimate(self, aggregate: Aggregate) -> Estimate:
        """Return unbiased frequencies from a sum of at least one report."""
        return debias(self, aggregate)
