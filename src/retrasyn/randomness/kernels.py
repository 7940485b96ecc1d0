"""Compiled addressed 64-bit words: a hashed counter (SplitMix64) without any state."""

import numpy as np
import numpy.typing as npt
from numba import njit

STRIDE = np.uint64(0x9E3779B97F4A7C15)  # odd: consecutive identifiers land far apart
_MULTIPLY_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLY_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)


@njit(inline="always")
def word_at(key: np.uint64, identifier: np.uint64) -> np.uint64:
    """Return the word of an identifier under a key (the finaliser of SplitMix64)."""
    z = key + identifier * STRIDE
    z = (z ^ (z >> _SHIFT_1)) * _MULTIPLY_1
    z = (z ^ (z >> _SHIFT_2)) * _MULTIPLY_2
    return z ^ (z >> _SHIFT_3)


@njit(nogil=True, cache=True)
def words_at(
    key: np.uint64, identifiers: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:  # pragma: no cover - compiled
    """Return the words of many identifiers under one key."""
    words = np.empty(identifiers.size, np.uint64)
    for i in range(identifiers.size):
        words[i] = word_at(key, identifiers[i])
    return words
