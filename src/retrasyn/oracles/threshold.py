"""The exact probability of a noise bit, and of any lie (standard library only).

A bit is 1 iff a uniform 64-bit word is below T = ceil(2^64 / (e^epsilon + 1)). Rounding up makes
q = T / 2^64 at least 1 / (e^epsilon + 1), so the real epsilon never exceeds the stated one. The
exponential is enclosed between two integers, so the ceiling is exact and not merely close.
Choices among more than two answers have a threshold of the same kind.
"""

from functools import lru_cache

from retrasyn.messages import MICRO

WORD = 1 << 64
HALF = 1 << 63
"""Threshold of the true bit: it survives with probability exactly 1/2."""
MAX_HASH_RANGE = 1 << 16


def _exponential_enclosed(epsilon: int, bits: int) -> tuple[int, int]:
    """Return integers low <= e^(epsilon / 10^6) * 2^bits <= high."""
    low = high = term_low = term_high = 1 << bits
    k = 0
    while term_high > 1 or k * MICRO < 2 * epsilon:
        k += 1
        term_low = term_low * epsilon // (k * MICRO)
        term_high = -(-term_high * epsilon // (k * MICRO))
        low += term_low
        high += term_high
    # Beyond this point each term is at most half the one before, so the rest is below the last.
    return low, high + term_high


@lru_cache(maxsize=4096)
def lie_threshold(epsilon: int, others: int) -> int:
    """Return how many of 2^64 words lead to a lie, that is, to one of the other answers.

    T = ceil(2^64 others / (e^epsilon + others)) for a budget in micro-nats. With T words shared
    evenly among the others, the truth is at most e^epsilon times as likely as each of them.

    >>> hex(lie_threshold(1_000_000, 1))
    '0x44d9585152ea1936'
    """
    if epsilon < 1:
        raise ValueError(f"a report needs a positive budget, not {epsilon} micro-nats")
    if others < 1:
        raise ValueError(f"hiding an answer needs at least one other, not {others}")
    bits = 128
    while True:
        low, high = _exponential_enclosed(epsilon, bits)
        shared = others << bits
        most = -(-(WORD * shared) // (low + shared))
        least = -(-(WORD * shared) // (high + shared))
        if least == most:
            return least
        bits *= 2


def lie_chance(epsilon: int, others: int) -> float:
    """Return the probability of a lie, T / 2^64.

    >>> round(lie_chance(1_000_000, 1), 6)
    0.268941
    """
    return lie_threshold(epsilon, others) / WORD


def noise_threshold(epsilon: int) -> int:
    """Return T of a bit, whose only other answer is its opposite.

    >>> hex(noise_threshold(1_000_000))
    '0x44d9585152ea1936'
    """
    return lie_threshold(epsilon, 1)


@lru_cache(maxsize=4096)
def hash_range(epsilon: int) -> int:
    """Return g, the number of values an answer is hashed to: 1 + e^epsilon, rounded to the nearest.

    This minimises the variance; g is kept within 2..65,536. Privacy holds for any g.

    >>> hash_range(1_000_000), hash_range(100_000)
    (4, 2)
    """
    bits = 128
    while True:
        low, high = (
            (2 * bound + (1 << bits)) >> (bits + 1)
            for bound in _exponential_enclosed(epsilon, bits)
        )
        if low == high:
            return min(1 + low, MAX_HASH_RANGE)
        bits *= 2
