"""Optimised local hashing: hash the answer to few values, then report that value or another.

Every report has a hash function of its own, given by its seed, so that answers which collide in
one report do not in the next. About the variance of unary encoding in a report of a few bytes;
aggregating costs one hash per report and answer. The proof is in `docs/proofs/olh.md`.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from retrasyn.messages import Aggregate
from retrasyn.oracles import kernels
from retrasyn.oracles.base import Oracle
from retrasyn.oracles.registry import ORACLES, OracleRow
from retrasyn.oracles.threshold import hash_range, lie_threshold


@dataclass(frozen=True, slots=True)
class OLH(Oracle):
    """The oracle at one budget, given in micro-nats.

    >>> oracle = OLH(1_000_000)
    >>> oracle.n_values, round(oracle.p, 4), oracle.q, round(oracle.variance(100), 4)
    (4, 0.4754, 0.25, 0.0369)
    """

    row: ClassVar[OracleRow] = ORACLES["olh"]

    @property
    def n_values(self) -> int:
        """g: the number of values an answer is hashed to."""
        return hash_range(self.epsilon)

    @property
    def threshold(self) -> int:
        """T: the value is a lie iff a 64-bit word is below it."""
        return lie_threshold(self.epsilon, self.n_values - 1)

    def perturb(
        self,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        key: int,
        n_answers: int,
    ) -> npt.NDArray[np.uint8]:
        """Perturb many states into seeds and values, lowest byte first: [n, report_bytes]."""
        packed: npt.NDArray[np.uint8] = kernels.perturb_hashed(
            states,
            addresses,
            np.uint64(key),
            np.uint64(self.threshold),
            np.uint64(self.n_values),
            self.report_bytes(n_answers),
        )
        return packed

    def aggregate(self, packed: npt.NDArray[np.uint8], *, n_answers: int) -> Aggregate:
        """Count for each answer the reports whose value equals its hash."""
        counts = kernels.count_hashed(packed, n_answers, np.uint64(self.n_values))
        return Aggregate(counts=counts, n=len(packed))
