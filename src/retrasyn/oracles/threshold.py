"""The exact probability of a noise bit (standard library only).

A bit is 1 iff a uniform 64-bit word is below T = ceil(2^64 / (e^epsilon + 1)). Rounding up makes
q = T / 2^64 at least 1 / (e^epsilon + 1), so the real epsilon never exceeds the stated one. The
exponential is enclosed between two integers, so the ceiling is right and not merely close.
"""

from functools import lru_cache

from retrasyn.messages import MICRO

WORD = 1 << 64
HALF = 1 << 63
"""Threshold of the true bit: it survives with probability exactly 1/2."""


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
def noise_threshold(epsilon: int) -> int:
    """Return T for a budget in micro-nats.

    >>> hex(noise_threshold(1_000_000))
    '0x44d9585152ea1936'
    """
    if epsilon < 1:
        raise ValueError(f"a report needs a positive budget, not {epsilon} micro-nats")
    bits = 128
    while True:
        low, high = _exponential_enclosed(epsilon, bits)
        one = 1 << bits
        most = -(-(WORD << bits) // (low + one))
        least = -(-(WORD << bits) // (high + one))
        if least == most:
            return least
        bits *= 2
