"""The exact distribution of a report, determined by choosing its random words.

A report is a function of its random words. So the number of words for which it tells the truth
can be found by bisection, in 64 steps on the shipped code, and compared with the bound in
60-digit decimals: no statistics, no uncertainty. A report that ignores its words is detected, too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext

from retrasyn.messages import MICRO
from retrasyn.oracles.registry import ReportMaker
from retrasyn.oracles.single import NULL, SEED_BYTES, hash_answer
from retrasyn.oracles.threshold import hash_range

_WORD = 1 << 64
_TOP = _WORD - 1
_DIGITS = 60


class Disobedience(Exception):  # noqa: N818 - said of a report, never raised at a user
    """A report does not use its random words as specified."""


def real_epsilon(threshold: int, others: int) -> Decimal:
    """Return ln(p / q) in nats, if `threshold` of 2^64 words lead to a lie.

    >>> round(real_epsilon(0x44d9585152ea1936, 1), 15)
    Decimal('1.000000000000000')
    """
    with localcontext() as context:
        context.prec = _DIGITS
        return (Decimal((_WORD - threshold) * others) / threshold).ln()


def least_threshold(epsilon: int, others: int) -> int:
    """Return the least number of lying words that satisfies epsilon, computed in decimals."""
    with localcontext() as context:
        context.prec = _DIGITS
        power = (Decimal(epsilon) / MICRO).exp()
        return int(_WORD * Decimal(others) / (power + others)) + 1


def check_unary(report: ReportMaker, epsilon: int, n_answers: int) -> None:
    """Check how many words set a bit: the true one, another one, and any bit of a null report."""
    quiet = [_TOP] * n_answers
    for state in (1, n_answers - 1, NULL):
        for bit in {0, 1, n_answers // 2, n_answers - 1}:

            def is_on(word: int, bit: int = bit, state: int = state) -> bool:
                words = [*quiet[:bit], word, *quiet[bit + 1 :]]
                sent = int.from_bytes(_obey(report, state, n_answers, epsilon, words), "little")
                if sent & ~(1 << bit):
                    raise Disobedience("a bit is on though its own word is the highest there is")
                return bool(sent)

            _compare(_count(is_on), 1 if bit == state else None, epsilon, 1)


def check_symbol(report: ReportMaker, epsilon: int, n_answers: int) -> None:
    """Check how many words lead to a lie, and that every lie has equally many."""
    size = len(_obey(report, 0, n_answers, epsilon, [_TOP, _TOP]))
    for state in (0, n_answers - 1, NULL):
        truth = n_answers if state == NULL else state

        def sent(words: Sequence[int], state: int = state) -> int:
            return int.from_bytes(_obey(report, state, n_answers, epsilon, words), "little")

        _check_choice(sent, truth, n_answers, epsilon, [])
    if size != (n_answers.bit_length() + 7) // 8:
        raise Disobedience(f"a symbol takes {size} bytes")


def check_hash(report: ReportMaker, epsilon: int, n_answers: int) -> None:
    """Check the seed and value for some seeds, and that a null report has a uniform value."""
    n_values = hash_range(epsilon)
    for state in (0, n_answers - 1):
        for seed in (0, 7, _WORD // 3):
            kept = seed % (1 << 8 * SEED_BYTES)

            def sent(words: Sequence[int], state: int = state, kept: int = kept) -> int:
                whole = _obey(report, state, n_answers, epsilon, words)
                if int.from_bytes(whole[:SEED_BYTES], "little") != kept:
                    raise Disobedience("the seed is not the low half of the first word")
                return int.from_bytes(whole[SEED_BYTES:], "little")

            truth = hash_answer(kept, state, n_values)
            _check_choice(sent, truth, n_values - 1, epsilon, [seed])
    for word in (0, 1, 5, n_values, _TOP):
        usable = word if word >= _WORD % n_values else n_values
        whole = _obey(report, NULL, n_answers, epsilon, [3, 0, word, n_values])
        if int.from_bytes(whole[SEED_BYTES:], "little") != usable % n_values:
            raise Disobedience("a null report is not a uniform value")


def _check_choice(
    sent: Callable[[Sequence[int]], int], truth: int, others: int, epsilon: int, first: list[int]
) -> None:
    """Check how often a symbol is a lie, and that every other symbol has equally many words."""
    _compare(_count(lambda word: sent([*first, word, _TOP]) != truth), None, epsilon, others)
    lap = _WORD % others
    for word in {0, lap, lap + others - 1, _TOP, max(lap - 1, 0)}:
        usable = word if word >= lap else _TOP
        other = usable % others
        other += other >= truth
        if sent([*first, 0, word, _TOP]) != other:
            raise Disobedience(f"with the word {word:#x} the wrong one of {others} lies is told")


def _compare(found: int, halves: int | None, epsilon: int, others: int) -> None:
    """Check a number of words: half of all for a true bit, else the least that keeps epsilon."""
    expected = _WORD // 2 if halves else least_threshold(epsilon, others)
    if found != expected:
        real = f"{real_epsilon(found, others):.20f}" if 0 < found < _WORD else "no number"
        raise Disobedience(
            f"{found:#x} of 2^64 words where it should be {expected:#x}; ln(p / q) would be {real}"
        )


def _count(holds: Callable[[int], bool]) -> int:
    """Count the words below which a monotone condition holds, by bisection."""
    if not holds(0):
        return 0
    if holds(_TOP):
        return _WORD
    low, high = 0, _TOP
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high


def _obey(
    report: ReportMaker, state: int, n_answers: int, epsilon: int, words: Sequence[int]
) -> bytes:
    """Return the report made from these words, handed out in order, eight bytes each."""
    rest = list(words)

    def source(n: int) -> bytes:
        if n % 8 or n // 8 > len(rest):
            raise Disobedience(f"asked for {n} bytes with {len(rest)} words of 8 left")
        taken, rest[: n // 8] = rest[: n // 8], []
        return struct.pack(f"<{len(taken)}Q", *taken)

    return report(state, n_answers, epsilon=epsilon, words=source)
