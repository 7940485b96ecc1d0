"""Reports that are equal bit for bit: noise makes that all but impossible."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from retrasyn.poisoning.alarms import Alarm


def too_small(n: int, n_states: int, q: float, level: float) -> str | None:
    """Say why equal reports mean nothing here, if they do not.

    Two honest bits are equal with probability at most q^2 + (1 - q)^2 (for two true bits it is
    1/2, for one it is 1/2 too), so that bounds how many equal pairs chance makes.
    """
    pairs = n * (n - 1) / 2
    if pairs == 0:
        return "duplicates: there are fewer than two reports"
    log_expected = math.log(pairs) + n_states * math.log(q * q + (1 - q) ** 2)
    if log_expected > math.log(level):
        return f"duplicates: {n:,} reports of {n_states} bits may be equal by chance"
    return None


def find(packed: npt.NDArray[np.uint8]) -> Alarm | None:
    """Name all reports that have a twin."""
    rows = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, which, sizes = np.unique(rows, return_inverse=True, return_counts=True)
    suspects = np.flatnonzero(sizes[which] > 1)
    if suspects.size == 0:
        return None
    reason = (
        f"{suspects.size:,} of {len(packed):,} reports are equal to another, the most frequent "
        f"{sizes.max():,} times; honest noise makes no twins"
    )
    return Alarm(test="duplicates", reason=reason, suspects=suspects)
