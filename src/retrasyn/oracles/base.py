"""What every oracle is and does: one answer hidden, many reports added up.

A report *supports* an answer if it speaks for it: its bit is on, it is the symbol, its hash
matches. A report supports its own answer with probability p and any other with probability q < p;
all else follows from the two.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Aggregate, Estimate


class Oracle(Protocol):
    """One way to hide an answer at one budget."""

    @property
    def epsilon(self) -> int:
        """The budget of one report in micro-nats."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def threshold(self) -> int:
        """T: a 64-bit word below it leads away from the truth."""
        ...  # pragma: no cover

    @property
    def p(self) -> float:
        """Probability that a report supports its own answer."""
        ...  # pragma: no cover

    @property
    def q(self) -> float:
        """Probability that a report supports any other answer."""
        ...  # pragma: no cover

    def variance(self, n: int) -> float:
        """Return the variance of an estimate from n reports, at frequency zero."""
        ...  # pragma: no cover

    def report_bytes(self, n_states: int) -> int:
        """Return the size of one report."""
        ...  # pragma: no cover

    def perturb(
        self,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        key: int,
        n_states: int,
    ) -> npt.NDArray[np.uint8]:
        """Turn many states into reports with addressed words: [n, report_bytes]."""
        ...  # pragma: no cover

    def aggregate(self, packed: npt.NDArray[np.uint8], *, n_states: int) -> Aggregate:
        """Count how many reports support each answer."""
        ...  # pragma: no cover

    def draw_counts(
        self, true: npt.NDArray[np.int64], n: int, *, generator: np.random.Generator
    ) -> Aggregate:
        """Draw the sum of n reports from the true counts, without making them."""
        ...  # pragma: no cover

    def estimate(self, aggregate: Aggregate) -> Estimate:
        """Return unbiased frequencies from a sum of at least one report."""
        ...  # pragma: no cover


def variance_at_zero(oracle: Oracle, n: int) -> float:
    """Return q (1 - q) / (n (p - q)^2), the variance where nobody holds an answer."""
    return oracle.q * (1 - oracle.q) / (n * (oracle.p - oracle.q) ** 2)


def variance_at(oracle: Oracle, n: int, frequency: float) -> float:
    """Return the exact variance where a share of the reporters holds an answer.

    For unary encoding this is Eq. 3 + f / n.
    """
    p, q = oracle.p, oracle.q
    return (frequency * p * (1 - p) + (1 - frequency) * q * (1 - q)) / (n * (p - q) ** 2)


def debias(oracle: Oracle, aggregate: Aggregate) -> Estimate:
    """Return the frequencies whose expected counts these are."""
    share = aggregate.counts / aggregate.n
    return Estimate(
        frequencies=(share - oracle.q) / (oracle.p - oracle.q),
        variance=oracle.variance(aggregate.n),
        n=aggregate.n,
    )
