"""Oracles with a fault each, and the checks that must find it.

Every function takes the place of the shipped one in an audit. `CAUGHT_BY` names the checks each
has to fail: exact (P1), epsilon (P2), marginals (P3), independence (P4).
"""

import hashlib
import math
import random
import struct
from dataclasses import dataclass

from retrasyn.oracles import single
from retrasyn.oracles.threshold import HALF, WORD, hash_range, lie_threshold, noise_threshold
from retrasyn.randomness.words import system_bytes


def draw_words(words, n):
    return struct.unpack(f"<{n}Q", words(8 * n))


def pack(bits):
    number = sum(int(bit) << position for position, bit in enumerate(bits))
    return number.to_bytes((len(bits) + 7) // 8, "little")


def unary(state, words, *, threshold, truth=HALF):
    return [word < (truth if bit == state else threshold) for bit, word in enumerate(words)]


# Unary encoding


def threshold_rounded_down(state, n_answers, *, epsilon, words):
    threshold = noise_threshold(epsilon) - 1
    return pack(unary(state, draw_words(words, n_answers), threshold=threshold))


def threshold_from_a_float(state, n_answers, *, epsilon, words):
    threshold = int(2.0**64 / (math.exp(epsilon / 1e6) + 1))
    return pack(unary(state, draw_words(words, n_answers), threshold=threshold))


def not_above_instead_of_below(state, n_answers, *, epsilon, words):
    threshold = noise_threshold(epsilon)
    drawn = draw_words(words, n_answers)
    return pack([w <= (HALF if bit == state else threshold) for bit, w in enumerate(drawn)])


def words_of_eight_bits(state, n_answers, *, epsilon, words):
    threshold = noise_threshold(epsilon) >> 56
    return pack(unary(state, words(n_answers), threshold=threshold, truth=128))


def words_of_sixteen_bits(state, n_answers, *, epsilon, words):
    drawn = struct.unpack(f"<{n_answers}H", words(2 * n_answers))
    return pack(unary(state, drawn, threshold=noise_threshold(epsilon) >> 48, truth=1 << 15))


def one_number_for_all_bits(state, n_answers, *, epsilon, words):
    drawn = draw_words(words, n_answers)[:1] * n_answers
    return pack(unary(state, drawn, threshold=noise_threshold(epsilon)))


def one_number_for_two_bits(state, n_answers, *, epsilon, words):
    drawn = draw_words(words, n_answers)
    paired = [drawn[bit // 2] for bit in range(n_answers)]
    return pack(unary(state, paired, threshold=noise_threshold(epsilon)))


def words_that_overlap(state, n_answers, *, epsilon, words):
    noise = words(n_answers + 7)
    drawn = [int.from_bytes(noise[bit : bit + 8], "little") for bit in range(n_answers)]
    return pack(unary(state, drawn, threshold=noise_threshold(epsilon)))


def thousandths(state, n_answers, *, epsilon, words):
    threshold = round(1000 / (math.exp(epsilon / 1e6) + 1))
    drawn = [word % 1000 for word in draw_words(words, n_answers)]
    return pack(unary(state, drawn, threshold=threshold, truth=500))


def truth_as_in_symmetric_encoding(state, n_answers, *, epsilon, words):
    threshold = noise_threshold(epsilon)
    drawn = draw_words(words, n_answers)
    return pack(unary(state, drawn, threshold=threshold, truth=WORD - threshold))


def truth_a_little_too_often(state, n_answers, *, epsilon, words):
    drawn = draw_words(words, n_answers)
    return pack(unary(state, drawn, threshold=noise_threshold(epsilon), truth=WORD * 11 // 20))


def truth_always(state, n_answers, *, epsilon, words):
    drawn = draw_words(words, n_answers)
    return pack(unary(state, drawn, threshold=noise_threshold(epsilon), truth=WORD))


def the_state_beside(state, n_answers, *, epsilon, words):
    shifted = state if state < 0 else (state + 1) % n_answers
    return single.report_unary(shifted, n_answers, epsilon=epsilon, words=words)


def null_is_silent(state, n_answers, *, epsilon, words):
    report = single.report_unary(state, n_answers, epsilon=epsilon, words=words)
    return bytes(len(report)) if state < 0 else report


def noise_in_the_padding(state, n_answers, *, epsilon, words):
    n_bits = (n_answers + 7) // 8 * 8
    return single.report_unary(state, n_bits, epsilon=epsilon, words=words)


def last_bit_never_noisy(state, n_answers, *, epsilon, words):
    bits = unary(state, draw_words(words, n_answers), threshold=noise_threshold(epsilon))
    return pack([*bits[:-1], state == n_answers - 1])


def milli_nats_taken_for_micro_nats(state, n_answers, *, epsilon, words):
    return single.report_unary(state, n_answers, epsilon=min(epsilon * 1000, 10**9), words=words)


def noise_of_the_state(state, n_answers, *, epsilon, words):
    """Make the noise from the state, so that one state always reports the same."""
    noise = hashlib.shake_128(b"%d" % state).digest(8 * n_answers)
    return single.report_unary(state, n_answers, epsilon=epsilon, words=lambda n: noise[:n])


_SEEDED = random.Random(1)


def generator_with_a_known_seed(state, n_answers, *, epsilon, words):
    return single.report_unary(state, n_answers, epsilon=epsilon, words=_SEEDED.randbytes)


_POOL = bytearray()


def words_kept_for_later(state, n_answers, *, epsilon, words):
    """Draw many bytes at once and keep what is left, through a fork too."""

    def pooled(n):
        if len(_POOL) < 1 << 15:
            _POOL.extend(system_bytes(1 << 16))
        taken = bytes(_POOL[:n])
        del _POOL[:n]
        return taken

    return single.report_unary(state, n_answers, epsilon=epsilon, words=pooled)


# Generalised randomised response


def send_symbol(symbol, n_answers):
    return symbol.to_bytes((n_answers.bit_length() + 7) // 8, "little")


def lies_that_may_be_true(state, n_answers, *, epsilon, words):
    truth = n_answers if state < 0 else state
    lot, choice = draw_words(words, 2)
    lies = lot < lie_threshold(epsilon, n_answers)
    return send_symbol(choice % (n_answers + 1) if lies else truth, n_answers)


def lies_with_a_bias(state, n_answers, *, epsilon, words):
    """Choose by the remainder of a byte: 256 is no multiple of the number of lies."""
    truth = n_answers if state < 0 else state
    lot, choice = draw_words(words, 2)
    other = (choice >> 56) % n_answers
    other += other >= truth
    return send_symbol(other if lot < lie_threshold(epsilon, n_answers) else truth, n_answers)


def lies_without_redrawing(state, n_answers, *, epsilon, words):
    truth = n_answers if state < 0 else state
    lot, choice = draw_words(words, 2)
    other = choice % n_answers
    other += other >= truth
    return send_symbol(other if lot < lie_threshold(epsilon, n_answers) else truth, n_answers)


def threshold_of_two_answers(state, n_answers, *, epsilon, words):
    """Take the threshold of a bit, as if there were one lie only."""
    truth = n_answers if state < 0 else state
    lot, choice = draw_words(words, 2)
    other = choice % n_answers
    other += other >= truth
    return send_symbol(other if lot < noise_threshold(epsilon) else truth, n_answers)


def null_told_plainly(state, n_answers, *, epsilon, words):
    if state < 0:
        return send_symbol(n_answers, n_answers)
    return single.report_symbol(state, n_answers, epsilon=epsilon, words=words)


# Local hashing


def one_seed_for_everybody(state, n_answers, *, epsilon, words):
    def fixed(n):
        return bytes(8) + words(n)[8:]

    return single.report_hash(state, n_answers, epsilon=epsilon, words=fixed)


def seed_that_is_the_state(state, n_answers, *, epsilon, words):
    report = single.report_hash(state, n_answers, epsilon=epsilon, words=words)
    return struct.pack("<i", state) + report[4:]


def null_is_value_zero(state, n_answers, *, epsilon, words):
    report = single.report_hash(state, n_answers, epsilon=epsilon, words=words)
    return report[:4] + bytes(len(report) - 4) if state < 0 else report


def true_value_always(state, n_answers, *, epsilon, words):
    report = single.report_hash(state, n_answers, epsilon=epsilon, words=words)
    seed = int.from_bytes(report[:4], "little")
    value = single.hash_answer(seed, max(state, 0), hash_range(epsilon))
    return report[:4] + value.to_bytes(len(report) - 4, "little")


@dataclass(frozen=True, slots=True)
class Bug:
    oracle: str
    report: object
    caught_by: frozenset

    @property
    def name(self):
        return self.report.__name__


def _bugs(oracle, caught):
    return [Bug(oracle, report, frozenset(checks.split())) for report, checks in caught.items()]


BUGS = [
    *_bugs(
        "oue",
        {
            threshold_rounded_down: "exact",
            threshold_from_a_float: "exact",
            not_above_instead_of_below: "exact",
            words_of_eight_bits: "exact",
            words_of_sixteen_bits: "exact",
            one_number_for_all_bits: "exact independence",
            one_number_for_two_bits: "exact independence",
            words_that_overlap: "exact",
            thousandths: "exact",
            truth_as_in_symmetric_encoding: "exact epsilon marginals",
            truth_a_little_too_often: "exact marginals",
            truth_always: "exact epsilon marginals",
            the_state_beside: "exact marginals",
            null_is_silent: "exact marginals",
            noise_in_the_padding: "exact marginals",
            last_bit_never_noisy: "exact marginals",
            milli_nats_taken_for_micro_nats: "exact epsilon marginals",
            noise_of_the_state: "exact marginals",
            generator_with_a_known_seed: "exact independence",
            words_kept_for_later: "exact independence",
        },
    ),
    *_bugs(
        "grr",
        {
            lies_that_may_be_true: "exact marginals",
            lies_with_a_bias: "exact",
            lies_without_redrawing: "exact",
            threshold_of_two_answers: "exact epsilon marginals",
            null_told_plainly: "exact marginals",
        },
    ),
    *_bugs(
        "olh",
        {
            one_seed_for_everybody: "exact marginals",
            seed_that_is_the_state: "exact marginals",
            null_is_value_zero: "exact marginals",
            true_value_always: "exact epsilon marginals",
        },
    ),
]
GOOD = {
    "oue": single.report_unary,
    "grr": single.report_symbol,
    "olh": single.report_hash,
}
