"""Randomised response of one bit: the truth, except with probability q.

q = T / 2^64 is the exact figure just above 1 / (e^epsilon + 1), the same as for a noise bit of
unary encoding, so that (1 - q) / q never exceeds e^epsilon. The argument is in
`docs/proofs/binary.md`.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Aggregate, Estimate
from retrasyn.oracles import kernels
from retrasyn.oracles.single import report_bytes
from retrasyn.oracles.threshold import WORD, noise_threshold


@dataclass(frozen=True, slots=True)
class BinaryResponse:
    """The oracle of a yes or no at one budget, given in micro-nats.

    >>> oracle = BinaryResponse(1_000_000)
    >>> round(oracle.q, 4), round(oracle.variance(100), 4)
    (0.2689, 0.0092)
    """

    epsilon: int

    @property
    def threshold(self) -> int:
        """T: the bit is flipped iff a 64-bit word is below it."""
        return noise_threshold(self.epsilon)

    @property
    def q(self) -> float:
        """Probability of a flipped bit, T / 2^64."""
        return self.threshold / WORD

    @property
    def p(self) -> float:
        """Probability of a bit that is kept."""
        return 1.0 - self.q

    def variance(self, n: int) -> float:
        """Return the variance of an estimate; it is the same whatever the truth."""
        return self.q * (1 - self.q) / (n * (1 - 2 * self.q) ** 2)

    def report_bytes(self, n_states: int) -> int:
        """Return the size of one report: a byte."""
        return report_bytes("bit", n_states, epsilon=self.epsilon)

    def perturb(
        self,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        key: int,
        n_states: int,
    ) -> npt.NDArray[np.uint8]:
        """Perturb many bits, given as 0 (yes) or -1 (no): [n, 1]."""
        del n_states
        return kernels.flip_addressed(states, addresses, np.uint64(key), np.uint64(self.threshold))

    def aggregate(self, packed: npt.NDArray[np.uint8], *, n_states: int) -> Aggregate:
        """Add reports up."""
        return Aggregate(counts=kernels.count_bits(packed, n_states), n=len(packed))

    def draw_counts(
        self, true: npt.NDArray[np.int64], n: int, *, generator: np.random.Generator
    ) -> Aggregate:
        """Draw the number of ones among n reports from the true number: the same law."""
        kept = generator.binomial(true, 1.0 - self.q)
        noise = generator.binomial(n - true, self.q)
        return Aggregate(counts=kept + noise, n=n)

    def estimate(self, aggregate: Aggregate) -> Estimate:
        """Return the unbiased share of ones from a sum of at least one report."""
        share = aggregate.counts / aggregate.n
        return Estimate(
            frequencies=(share - self.q) / (1 - 2 * self.q),
            variance=self.variance(aggregate.n),
            n=aggregate.n,
        )
