"""Many reports at once: perturb, pack and count bits, compiled."""

import numpy as np
import numpy.typing as npt
from numba import njit

from retrasyn.randomness.kernels import word_at

_HALF = np.uint64(1 << 63)


@njit(nogil=True, cache=True)
def perturb_addressed(
    states: npt.NDArray[np.int32],
    addresses: npt.NDArray[np.uint64],
    key: np.uint64,
    threshold: np.uint64,
    n_states: int,
) -> npt.NDArray[np.uint8]:
    """Perturb one state per report with addressed words; bits packed little-endian.

    A state of -1 is a null report: every bit is noise.
    """
    n_bytes = (n_states + 7) // 8
    packed = np.zeros((states.size, n_bytes), np.uint8)
    for i in range(states.size):
        own_key = word_at(key, addresses[i])
        for bit in range(n_states):
            limit = _HALF if bit == states[i] else threshold
            if word_at(own_key, np.uint64(bit)) < limit:
                packed[i, bit >> 3] |= np.uint8(1 << (bit & 7))
    return packed


@njit(nogil=True, cache=True)
def flip_addressed(
    states: npt.NDArray[np.int32],
    addresses: npt.NDArray[np.uint64],
    key: np.uint64,
    threshold: np.uint64,
) -> npt.NDArray[np.uint8]:
    """Answer yes (0) or no (-1) with one addressed word each: [n, 1]."""
    bits = np.empty((states.size, 1), np.uint8)
    for i in range(states.size):
        flipped = word_at(key, addresses[i]) < threshold
        bits[i, 0] = np.uint8((states[i] >= 0) != flipped)
    return bits


@njit(nogil=True, cache=True)
def count_bits(packed: npt.NDArray[np.uint8], n_states: int) -> npt.NDArray[np.int64]:
    """Add packed reports up, bit by bit."""
    counts = np.zeros(n_states, np.int64)
    for i in range(packed.shape[0]):
        for bit in range(n_states):
            counts[bit] += (packed[i, bit >> 3] >> (bit & 7)) & 1
    return counts
