"""The interface of all frequency oracles: perturb one answer, aggregate many reports (Sec. II-A).

A report *supports* an answer if its bit is on, it is that symbol, or its hash
matches. A report supports its own answer with probability p and any other with probability q < p;
all else follows from the two.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Aggregate, Estimate
from retrasyn.oracles.registry import OracleRow


@dataclass(frozen=True, slots=True)
class Oracle(ABC):
    """A way to hide an answer at one budget, given in micro-nats."""

    epsilon: int
    row: ClassVar[OracleRow]

    @classmethod
    def of(cls, epsilon: int, n_answers: int) -> Self:
        """Return the oracle for a number of answers; most oracles do not depend on it."""
        del n_answers
        return cls(epsilon)

    @property
    @abstractmethod
    def threshold(self) -> int:
        """T: a 64-bit word below it leads to a lie."""

    @property
    def support(self) -> tuple[float, float]:
        """Both chances, p and q, by the row; most do not depend on the number of answers."""
        return self.row.support(self.epsilon, 1)

    @property
    def p(self) -> float:
        """Probability that a report supports its own answer."""
        return self.support[0]

    @property
    def q(self) -> float:
        """Probability that a report supports any other answer."""
        return self.support[1]

    @property
    def gap(self) -> float:
        """P - q: how much more likely a report is to support its own answer than another."""
        return self.p - self.q

    def variance(self, n: int) -> float:
        """Return the variance of an estimate from n reports, at frequency zero (Eq. 3)."""
        return self.q * (1 - self.q) / (n * self.gap**2)

    def variance_at(self, n: int, frequency: float) -> float:
        """Return the exact variance if a share `frequency` of the reporters holds the answer.

        For unary encoding this is Eq. 3 + f / n.
        """
        p, q = self.p, self.q
        return (frequency * p * (1 - p) + (1 - frequency) * q * (1 - q)) / (n * self.gap**2)

    def report_bytes(self, n_answers: int) -> int:
        """Return the size of one report."""
        return self.row.n_bytes(self.epsilon, n_answers)

    @abstractmethod
    def perturb(
        self,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        key: int,
        n_answers: int,
    ) -> npt.NDArray[np.uint8]:
        """Perturb many states into reports, using addressed words: [n, report_bytes]."""

    @abstractmethod
    def aggregate(self, packed: npt.NDArray[np.uint8], *, n_answers: int) -> Aggregate:
        """Count how many reports support each answer."""

    def draw_counts(
        self, true: npt.NDArray[np.int64], n: int, *, generator: np.random.Generator
    ) -> Aggregate:
        """Draw the sum of n reports from the true counts: the same law, in O(n_answers).

        Where support of different answers is independent, an answer held by c of n users counts
        Binomial(c, p) + Binomial(n - c, q).
        """
        kept = generator.binomial(true, self.p)
        noise = generator.binomial(n - true, self.q)
        return Aggregate(counts=kept + noise, n=n)

    def estimate(self, aggregate: Aggregate) -> Estimate:
        """Return unbiased frequencies from an aggregate of at least one report."""
        share = aggregate.counts / aggregate.n
        return Estimate(
            frequencies=(share - self.q) / self.gap,
            variance=self.variance(aggregate.n),
            n=aggregate.n,
        )
