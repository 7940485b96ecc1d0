"""Binary randomised response: yes or no in one bit, true except with probability q.

q = T / 2^64 is the exact figure just above 1 / (e^epsilon + 1), the same as for a noise bit of
unary encoding, so that (1 - q) / q never exceeds e^epsilon. The argument is in
`docs/proofs/binary.md`.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Aggregate
from retrasyn.oracles import kernels
from retrasyn.oracles.base import Oracle
from retrasyn.oracles.registry import BINARY, OracleRow
from retrasyn.oracles.threshold import noise_threshold


@dataclass(frozen=True, slots=True)
class BinaryResponse(Oracle):
    """The oracle for yes-or-no questions at one budget, given in micro-nats.

    >>> oracle = BinaryResponse(1_000_000)
    >>> round(oracle.q, 4), round(oracle.variance(100), 4)
    (0.2689, 0.0092)
    """

    row: ClassVar[OracleRow] = BINARY

    @property
    def threshold(self) -> int:
        """T: the bit is flipped iff a 64-bit word is below it."""
        return noise_threshold(self.epsilon)

    @property
    def gap(self) -> float:
        """P - q; with this the variance does not depend on the truth."""
        return 1 - 2 * self.q

    def perturb(
        self,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        key: int,
        n_answers: int,
    ) -> npt.NDArray[np.uint8]:
        """Perturb many bits, given as 0 (yes) or -1 (no): [n, 1]."""
        del n_answers
        return kernels.flip_addressed(states, addresses, np.uint64(key), np.uint64(self.threshold))

    def aggregate(self, packed: npt.NDArray[np.uint8], *, n_answers: int) -> Aggregate:
        """Sum up the reports."""
        return Aggregate(counts=kernels.count_bits(packed, n_answers), n=len(packed))
