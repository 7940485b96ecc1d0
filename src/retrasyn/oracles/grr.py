"""Generalised randomised response: report the truth, or one of the other answers.

The smallest report, and the least variance for few answers. Null is one more answer, so that
every device has n_answers others to choose from when it lies. The proof is in
`docs/proofs/grr.md`.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Aggregate
from retrasyn.oracles import kernels
from retrasyn.oracles.base import Oracle
from retrasyn.oracles.registry import ORACLES, OracleRow
from retrasyn.oracles.threshold import lie_threshold


@dataclass(frozen=True, slots=True)
class GRR(Oracle):
    """The oracle at one budget, given in micro-nats, for a number of answers besides null.

    >>> oracle = GRR(1_000_000, 4)
    >>> round(oracle.p, 4), round(oracle.q, 4), round(oracle.variance(100), 4)
    (0.4046, 0.1488, 0.0194)
    """

    row: ClassVar[OracleRow] = ORACLES["grr"]
    n_answers: int

    @classmethod
    def of(cls, epsilon: int, n_answers: int) -> Self:
        """Return the oracle for a number of answers, null not among them."""
        return cls(epsilon, n_answers)

    @property
    def support(self) -> tuple[float, float]:
        """Both chances, p and q, which depend on the number of answers here."""
        return self.row.support(self.epsilon, self.n_answers)

    @property
    def threshold(self) -> int:
        """T: a report is a lie iff a 64-bit word is below it."""
        return lie_threshold(self.epsilon, self.n_answers)

    def perturb(
        self,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        key: int,
        n_answers: int,
    ) -> npt.NDArray[np.uint8]:
        """Perturb many states into symbols, lowest byte first: [n, report_bytes]."""
        packed: npt.NDArray[np.uint8] = kernels.perturb_symbols(
            states,
            addresses,
            np.uint64(key),
            np.uint64(self.threshold),
            n_answers,
            self.report_bytes(n_answers),
        )
        return packed

    def aggregate(self, packed: npt.NDArray[np.uint8], *, n_answers: int) -> Aggregate:
        """Count the symbols; null supports no answer."""
        return Aggregate(counts=kernels.count_symbols(packed, n_answers), n=len(packed))

    def draw_counts(
        self, true: npt.NDArray[np.int64], n: int, *, generator: np.random.Generator
    ) -> Aggregate:
        """Draw the sum of n reports from the true counts: the same law, in O(n_answers).

        A report is the truth with probability p - q, and otherwise any symbol with equal
        probability, the true one included.
        """
        kept = generator.binomial(true, self.gap)
        kept_null = generator.binomial(n - true.sum(), self.gap)
        n_symbols = true.size + 1
        rest = n - kept.sum() - kept_null
        noise = generator.multinomial(rest, np.full(n_symbols, 1 / n_symbols))
        return Aggregate(counts=kept + noise[:-1], n=n)
