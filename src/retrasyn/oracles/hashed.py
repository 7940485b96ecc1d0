"""Optimised local hashing: hash the answer to few values, then say that value or another.

Every report has a hash of its own, drawn by its seed, so that answers which share a value in one
report do not in the next. About the variance of unary encoding in a report of a few bytes; adding
reports up costs a hash per report and answer. The argument is in `docs/proofs/olh.md`.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Aggregate, Estimate
from retrasyn.oracles import kernels
from retrasyn.oracles.base import debias, variance_at_zero
from retrasyn.oracles.single import report_bytes
from retrasyn.oracles.threshold import WORD, hash_range, lie_threshold


@dataclass(frozen=True, slots=True)
class OLH:
    """The oracle at one budget, given in micro-nats.

    >>> oracle = OLH(1_000_000)
    >>> oracle.n_values, round(oracle.p, 4), oracle.q, round(oracle.variance(100), 4)
    (4, 0.4754, 0.25, 0.0369)
    """

    epsilon: int

    @property
    def n_values(self) -> int:
        """g: how many values an answer is hashed to."""
        return hash_range(self.epsilon)

    @property
    def threshold(self) -> int:
        """T: the value is a lie iff a 64-bit word is below it."""
        return lie_threshold(self.epsilon, self.n_values - 1)

    @property
    def p(self) -> float:
        """Probability that a report matches its own answer, 1 - T / 2^64."""
        return 1.0 - self.threshold / WORD

    @property
    def q(self) -> float:
        """Probability that a report matches another answer: 1 / g, if the hash is a good one."""
        return 1.0 / self.n_values

    def variance(self, n: int) -> float:
        """Return the variance of an estimate at frequency zero."""
        return variance_at_zero(self, n)

    def report_bytes(self, n_states: int) -> int:
        """Return the size of one report: a seed of four bytes and a value of one or two."""
        return report_bytes("olh", n_states, epsilon=self.epsilon)

    def perturb(
        self,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        key: int,
        n_states: int,
    ) -> npt.NDArray[np.uint8]:
        """Turn many states into seeds and values, lowest byte first: [n, report_bytes]."""
        packed: npt.NDArray[np.uint8] = kernels.perturb_hashed(
            states,
            addresses,
            np.uint64(key),
            np.uint64(self.threshold),
            np.uint64(self.n_values),
            self.report_bytes(n_states),
        )
        return packed

    def aggregate(self, packed: npt.NDArray[np.uint8], *, n_states: int) -> Aggregate:
        """Count for each answer the reports whose value its hash is."""
        counts = kernels.count_hashed(packed, n_states, np.uint64(self.n_values))
        return Aggregate(counts=counts, n=len(packed))

    def draw_counts(
        self, true: npt.NDArray[np.int64], n: int, *, generator: np.random.Generator
    ) -> Aggregate:
        """Draw the sum of n reports from the true counts, as if every hash were ideal.

        Then matches of different answers are independent, and an answer held by c of n users
        counts Binomial(c, p) + Binomial(n - c, 1 / g).
        """
        kept = generator.binomial(true, self.p)
        noise = generator.binomial(n - true, self.q)
        return Aggregate(counts=kept + noise, n=n)

    def estimate(self, aggregate: Aggregate) -> Estimate:
        """Return unbiased frequencies from a sum of at least one report."""
        return debias(self, aggregate)
