"""Generalised randomised response: say the truth, or one of the other answers.

The smallest report, and the least variance among few answers. Null is one more answer, so that
every device has n_answers others to choose from when it lies. The argument is in
`docs/proofs/grr.md`.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Aggregate, Estimate
from retrasyn.oracles import kernels
from retrasyn.oracles.base import debias, variance_at_zero
from retrasyn.oracles.single import report_bytes
from retrasyn.oracles.threshold import WORD, lie_threshold


@dataclass(frozen=True, slots=True)
class GRR:
    """The oracle at one budget, given in micro-nats, for so many answers besides null.

    >>> oracle = GRR(1_000_000, 4)
    >>> round(oracle.p, 4), round(oracle.q, 4), round(oracle.variance(100), 4)
    (0.4046, 0.1488, 0.0194)
    """

    epsilon: int
    n_answers: int

    @property
    def threshold(self) -> int:
        """T: a report is a lie iff a 64-bit word is below it."""
        return lie_threshold(self.epsilon, self.n_answers)

    @property
    def p(self) -> float:
        """Probability of the truth, 1 - T / 2^64."""
        return 1.0 - self.threshold / WORD

    @property
    def q(self) -> float:
        """Probability of each other answer: they share T evenly."""
        return self.threshold / WORD / self.n_answers

    def variance(self, n: int) -> float:
        """Return the variance of an estimate at frequency zero."""
        return variance_at_zero(self, n)

    def report_bytes(self, n_states: int) -> int:
        """Return the size of one report: one or two bytes."""
        return report_bytes("grr", n_states, epsilon=self.epsilon)

    def perturb(
        self,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        key: int,
        n_states: int,
    ) -> npt.NDArray[np.uint8]:
        """Turn many states into symbols, lowest byte first: [n, report_bytes]."""
        packed: npt.NDArray[np.uint8] = kernels.perturb_symbols(
            states,
            addresses,
            np.uint64(key),
            np.uint64(self.threshold),
            n_states,
            self.report_bytes(n_states),
        )
        return packed

    def aggregate(self, packed: npt.NDArray[np.uint8], *, n_states: int) -> Aggregate:
        """Count symbols; those that say null support nothing."""
        return Aggregate(counts=kernels.count_symbols(packed, n_states), n=len(packed))

    def draw_counts(
        self, true: npt.NDArray[np.int64], n: int, *, generator: np.random.Generator
    ) -> Aggregate:
        """Draw the sum of n reports from the true counts: the same law, in O(n_states).

        A report is the truth with probability p - q, and else any symbol with the same
        probability, its own included.
        """
        kept = generator.binomial(true, self.p - self.q)
        kept_null = generator.binomial(n - true.sum(), self.p - self.q)
        n_symbols = true.size + 1
        rest = n - kept.sum() - kept_null
        noise = generator.multinomial(rest, np.full(n_symbols, 1 / n_symbols))
        return Aggregate(counts=kept + noise[:-1], n=n)

    def estimate(self, aggregate: Aggregate) -> Estimate:
        """Return unbiased frequencies from a sum of at least one report."""
        return debias(self, aggregate)
