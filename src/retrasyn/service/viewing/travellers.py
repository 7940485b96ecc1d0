"""A few of the synthetic streams, to be shown moving: the same ones from timestamp to timestamp.

A stream is shown if its mixed id is below 2^64 / 2^k. So whether it is does not depend on the
others, and those for a larger k are among those for a smaller one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

MOST = 10_000
"""Travellers that may be asked for."""
NOBODY = 64
"""The number of halvings that says: none were asked for."""
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def mix(ids: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return a number per id that looks random: the first word of SplitMix64 seeded with it.

    >>> [hex(word) for word in mix(np.array([0, 1])).tolist()]
    ['0xe220a8397b1dcdaf', '0x910a2dec89025cc1']
    """
    words = ids.astype(np.uint64) + _GAMMA  # modulo 2^64
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=False):
        words = (words ^ (words >> shift)) * factor
    return words ^ (words >> _SHIFTS[-1])


def halvings(n_points: int, most: int) -> int:
    """Return how often a crowd is halved until it has `most` members or fewer, on average.

    >>> halvings(3000, 3000), halvings(3001, 3000), halvings(50_000, 3000), halvings(7, 0)
    (0, 1, 5, 64)
    """
    if most <= 0:
        return NOBODY
    return max(-(-n_points // most) - 1, 0).bit_length()


def chosen(ids: npt.NDArray[np.int64], times: int) -> npt.NDArray[np.intp]:
    """Return the places of the streams that are left after so many halvings."""
    if times == 0:
        return np.arange(ids.size)
    if times >= NOBODY:
        return np.empty(0, np.intp)
    return np.flatnonzero(mix(ids) >> np.uint64(64 - times) == 0)
