"""Optimised unary encoding (Sec. II-A, Eq. 2 and 3).

A user's state becomes one bit per answer; the true bit survives with probability 1/2, every other
bit turns on with probability q = T / 2^64, the exact figure just above 1 / (e^epsilon + 1).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Aggregate
from retrasyn.oracles import kernels
from retrasyn.oracles.base import Oracle
from retrasyn.oracles.registry import ORACLES, OracleRow
from retrasyn.oracles.threshold import noise_threshold


@dataclass(frozen=True, slots=True)
class OUE(Oracle):
    """The oracle at one budget, given in micro-nats.

    >>> oracle = OUE(1_000_000)
    >>> round(oracle.q, 4), round(oracle.variance(100), 4)
    (0.2689, 0.0368)
    """

    row: ClassVar[OracleRow] = ORACLES["oue"]

    @property
    def threshold(self) -> int:
        """T: a noise bit is 1 iff a 64-bit word is below it."""
        return noise_threshold(self.epsilon)

    def perturb(
        self,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        key: int,
        n_answers: int,
    ) -> npt.NDArray[np.uint8]:
        """Perturb many states into packed reports (Eq. 2): [n, ceil(n_answers / 8)]."""
        packed: npt.NDArray[np.uint8] = kernels.perturb_addressed(
            states, addresses, np.uint64(key), np.uint64(self.threshold), n_answers
        )
        return packed

    def aggregate(self, packed: npt.NDArray[np.uint8], *, n_answers: int) -> Aggregate:
        """Sum packed reports, bit by bit."""
        return Aggregate(counts=kernels.count_bits(packed, n_answers), n=len(packed))
