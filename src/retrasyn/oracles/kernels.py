"""Compiled kernels that perturb, pack and count many reports at once.

For simulated devices; from the same words they make the same reports as `single.py`.
"""

import numpy as np
import numpy.typing as npt
from numba import njit

from retrasyn.randomness.kernels import STRIDE, word_at

_HALF = np.uint64(1 << 63)


@njit(nogil=True, cache=True)
def perturb_addressed(
    states: npt.NDArray[np.int32],
    addresses: npt.NDArray[np.uint64],
    key: np.uint64,
    threshold: np.uint64,
    n_answers: int,
) -> npt.NDArray[np.uint8]:
    """Perturb one state per report with addressed words; bits are packed little-endian.

    A state of -1 is a null report: every bit is noise.
    """
    n_bytes = (n_answers + 7) // 8
    packed = np.zeros((states.size, n_bytes), np.uint8)
    for i in range(states.size):
        own_key = word_at(key, addresses[i])
        for bit in range(n_answers):
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
def count_bits(packed: npt.NDArray[np.uint8], n_answers: int) -> npt.NDArray[np.int64]:
    """Sum packed reports, bit by bit."""
    n_bytes = (n_answers + 7) // 8
    counts = np.zeros((n_bytes, 8), np.int64)
    for i in range(packed.shape[0]):
        for byte in range(n_bytes):
            eight = packed[i, byte]
            for bit in range(8):  # fixed length, so that the compiler counts all eight at once
                counts[byte, bit] += (eight >> bit) & 1
    return counts.ravel()[:n_answers]


@njit(inline="always")
def _uniform(word: np.uint64, n: np.uint64, own_key: np.uint64, next_one: int) -> np.uint64:
    """Return one of 0..n-1, uniformly: the surplus 2^64 mod n words are redrawn."""
    incomplete = (np.uint64(0) - n) % n
    while word < incomplete:
        word = word_at(own_key, np.uint64(next_one))
        next_one += 1
    return word % n


@njit(inline="always")
def _hide(
    truth: np.uint64, others: np.uint64, threshold: np.uint64, own_key: np.uint64, first: int
) -> np.uint64:
    """Return the truth or, with the exact probability of a lie, one of the others."""
    lies = word_at(own_key, np.uint64(first)) < threshold
    choice = word_at(own_key, np.uint64(first + 1))
    other = _uniform(choice, others, own_key, first + 2)
    if other >= truth:
        other += np.uint64(1)
    return other if lies else truth


@njit(nogil=True, cache=True)
def perturb_symbols(
    states: npt.NDArray[np.int32],
    addresses: npt.NDArray[np.uint64],
    key: np.uint64,
    threshold: np.uint64,
    n_answers: int,
    n_bytes: int,
) -> npt.NDArray[np.uint8]:
    """Perturb states into symbols, lowest byte first; null (-1) is the symbol n_answers."""
    packed = np.empty((states.size, n_bytes), np.uint8)
    for i in range(states.size):
        own_key = word_at(key, addresses[i])
        truth = np.uint64(n_answers if states[i] < 0 else states[i])
        symbol = _hide(truth, np.uint64(n_answers), threshold, own_key, 0)
        for k in range(n_bytes):
            packed[i, k] = np.uint8((symbol >> np.uint64(8 * k)) & np.uint64(255))
    return packed


@njit(nogil=True, cache=True)
def count_symbols(packed: npt.NDArray[np.uint8], n_answers: int) -> npt.NDArray[np.int64]:
    """Count how often each symbol was sent, except null and invalid symbols."""
    counts = np.zeros(n_answers, np.int64)
    for i in range(packed.shape[0]):
        symbol = np.int64(0)
        for k in range(packed.shape[1]):
            symbol |= np.int64(packed[i, k]) << (8 * k)
        if symbol < n_answers:
            counts[symbol] += 1
    return counts


@njit(inline="always")
def _hash_answer(seed_key: np.uint64, answer: int, n_values: np.uint64) -> np.uint64:
    """Return the value an answer hashes to under the key derived from a seed."""
    high = word_at(seed_key, np.uint64(answer)) >> np.uint64(32)
    return (high * n_values) >> np.uint64(32)


@njit(nogil=True, cache=True)
def perturb_hashed(
    states: npt.NDArray[np.int32],
    addresses: npt.NDArray[np.uint64],
    key: np.uint64,
    threshold: np.uint64,
    n_values: np.uint64,
    n_bytes: int,
) -> npt.NDArray[np.uint8]:
    """Perturb states into a four-byte seed and a value; null (-1) gives a uniform value."""
    packed = np.empty((states.size, n_bytes), np.uint8)
    for i in range(states.size):
        own_key = word_at(key, addresses[i])
        seed = word_at(own_key, np.uint64(0)) & np.uint64(0xFFFFFFFF)
        if states[i] < 0:
            value = _uniform(word_at(own_key, np.uint64(2)), n_values, own_key, 3)
        else:
            truth = _hash_answer(word_at(STRIDE, seed), states[i], n_values)
            value = _hide(truth, n_values - np.uint64(1), threshold, own_key, 1)
        for k in range(n_bytes):
            part = seed >> np.uint64(8 * k) if k < 4 else value >> np.uint64(8 * (k - 4))  # noqa: PLR2004
            packed[i, k] = np.uint8(part & np.uint64(255))
    return packed


@njit(inline="always")
def _open_hashed(report: npt.NDArray[np.uint8]) -> tuple[np.uint64, np.uint64]:
    """Return the key derived from a report's seed, and its value."""
    seed, value = np.uint64(0), np.uint64(0)
    for k in range(4):
        seed |= np.uint64(report[k]) << np.uint64(8 * k)
    for k in range(4, report.size):
        value |= np.uint64(report[k]) << np.uint64(8 * (k - 4))
    return word_at(STRIDE, seed), value


@njit(nogil=True, cache=True)
def count_hashed(
    packed: npt.NDArray[np.uint8], n_answers: int, n_values: np.uint64
) -> npt.NDArray[np.int64]:
    """Count for each answer the reports whose value equals its hash."""
    counts = np.zeros(n_answers, np.int64)
    for i in range(packed.shape[0]):
        seed_key, value = _open_hashed(packed[i])
        for answer in range(n_answers):
            counts[answer] += _hash_answer(seed_key, answer, n_values) == value
    return counts


@njit(nogil=True, cache=True)
def match_hashed(
    packed: npt.NDArray[np.uint8], n_answers: int, n_values: np.uint64
) -> npt.NDArray[np.uint8]:
    """Return which answers each report matches: [n, n_answers]."""
    matches = np.empty((packed.shape[0], n_answers), np.uint8)
    for i in range(packed.shape[0]):
        seed_key, value = _open_hashed(packed[i])
        for answer in range(n_answers):
            matches[i, answer] = _hash_answer(seed_key, answer, n_values) == value
    return matches
