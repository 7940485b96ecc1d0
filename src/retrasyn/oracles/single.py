"""One report on a device, from the operating system's random words (standard library only).

Every function turns fresh 64-bit words into a report by comparing integers; no floats are
involved. How many words are drawn does not depend on the state, up to a redraw that happens less
than once in 2^48 reports. The proofs are in `docs/proofs`: `oue.md`, `grr.md`, `olh.md` and
`binary.md`. The compiled code in `kernels.py` makes the same reports from the same words, for many
simulated devices at once.
"""

import struct
from collections.abc import Sequence

from retrasyn.errors import SettingError
from retrasyn.oracles.threshold import HALF, WORD, hash_range, lie_threshold, noise_threshold
from retrasyn.randomness.words import Words, draw, system_bytes

NULL = -1
"""The state of a device that has nothing to report."""
MAX_ANSWERS = 65_535
SEED_BYTES = 4
_WORD_BYTES = 8


def report_unary(state: int, n_answers: int, *, epsilon: int, words: Words = system_bytes) -> bytes:
    """Return one bit per answer (OUE), packed from the lowest bit on, zero-padded.

    >>> len(report_unary(3, 328, epsilon=1_000_000))
    41
    """
    _check_state(state, n_answers)
    threshold = noise_threshold(epsilon)
    packed = 0
    for bit, word in enumerate(_draw_words(words, n_answers)):
        packed |= (word < (HALF if bit == state else threshold)) << bit
    return packed.to_bytes(n_whole_bytes((1 << n_answers) - 1), "little")


def report_symbol(
    state: int, n_answers: int, *, epsilon: int, words: Words = system_bytes
) -> bytes:
    """Return one answer (GRR): the true one or another; null is one more answer, the last.

    >>> len(report_symbol(3, 328, epsilon=1_000_000))
    2
    """
    _check_state(state, n_answers)
    truth = n_answers if state == NULL else state
    symbol = _hide(truth, n_answers, epsilon, words, _draw_words(words, 2))
    return symbol.to_bytes(n_whole_bytes(n_answers), "little")


def report_hash(state: int, n_answers: int, *, epsilon: int, words: Words = system_bytes) -> bytes:
    """Return a fresh seed and the hashed answer or another value (OLH); null is a uniform value.

    >>> len(report_hash(3, 328, epsilon=1_000_000))
    5
    """
    _check_state(state, n_answers)
    n_values = hash_range(epsilon)
    seed_word, *two = _draw_words(words, 3)
    seed = seed_word % (1 << 8 * SEED_BYTES)
    if state == NULL:
        value = _uniform(two[1], n_values, words)
    else:
        truth = hash_answer(seed, state, n_values)
        value = _hide(truth, n_values - 1, epsilon, words, two)
    size = n_whole_bytes(n_values - 1)
    return seed.to_bytes(SEED_BYTES, "little") + value.to_bytes(size, "little")


def report_binary(
    state: int, n_answers: int = 1, *, epsilon: int, words: Words = system_bytes
) -> bytes:
    """Return yes (state 0) or no (null), true except with probability q: one byte, 1 or 0.

    >>> len(report_binary(0, epsilon=1_000_000))
    1
    """
    _check_state(state, n_answers)
    (word,) = _draw_words(words, 1)
    return bytes([(state != NULL) ^ (word < noise_threshold(epsilon))])


def n_whole_bytes(largest: int) -> int:
    """Return how many bytes it takes to hold numbers up to `largest`.

    >>> n_whole_bytes(255), n_whole_bytes(256)
    (1, 2)
    """
    return (largest.bit_length() + 7) // 8


def hash_answer(seed: int, answer: int, n_values: int) -> int:
    """Return the value an answer hashes to under a 32-bit seed.

    Two rounds of the SplitMix64 finaliser, in integers modulo 2^64.

    >>> [hash_answer(7, answer, 4) for answer in range(8)]
    [0, 3, 1, 1, 0, 0, 3, 2]
    """
    own_key = _word_at(_STRIDE, seed)
    return ((_word_at(own_key, answer) >> 32) * n_values) >> 32


_STRIDE = 0x9E3779B97F4A7C15


def _word_at(key: int, identifier: int) -> int:
    """Return the same as `word_at` of the compiled kernels."""
    z = (key + identifier * _STRIDE) % WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)


def _hide(truth: int, others: int, epsilon: int, words: Words, two: Sequence[int]) -> int:
    """Return the truth or, with the exact probability of a lie, one of the others."""
    lot, choice = two
    other = _uniform(choice, others, words)
    other += other >= truth
    return other if lot < lie_threshold(epsilon, others) else truth


def _uniform(word: int, n: int, words: Words) -> int:
    """Return one of 0..n-1, uniformly: the surplus 2^64 mod n words are redrawn."""
    while word < WORD % n:
        (word,) = _draw_words(words, 1)
    return word % n


def _draw_words(words: Words, n: int) -> tuple[int, ...]:
    """Return n fresh 64-bit words."""
    return struct.unpack(f"<{n}Q", draw(words, _WORD_BYTES * n))


def _check_state(state: int, n_answers: int) -> None:
    """Refuse an invalid state, without revealing it in the message."""
    if not 1 <= n_answers <= MAX_ANSWERS:
        raise SettingError(
            f"{n_answers} answers are outside 1..{MAX_ANSWERS:,}; use a coarser grid"
        )
    if not NULL <= state < n_answers:
        raise ValueError(f"a state is one of 0..{n_answers - 1}, or -1 for null")
