"""Randomised response of one bit: exact thresholds, equal paths, unbiased estimates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from retrasyn.messages import Aggregate, Grant, Question
from retrasyn.oracles import OUE
from retrasyn.oracles.binary import BinaryResponse
from retrasyn.oracles.registry import n_answers, oracle_for
from retrasyn.oracles.single import report_binary
from retrasyn.oracles.threshold import WORD
from retrasyn.randomness.kernels import words_at
from retrasyn.space import Box, Grid, StateSpace
from support.feeding import fed

NOBODY = np.empty(0, np.int64)
words = st.integers(0, WORD - 1)


@given(st.integers(1, 40_000_000))
def test_the_ratio_of_truth_to_lie_never_exceeds_the_exponential(epsilon):
    lies = BinaryResponse(epsilon).threshold  # of 2^64 equally likely words
    # Plain integers: (1 - q) / q = (2^64 - T) / T <= e^epsilon, and T - 1 would exceed it.
    scale = 10**60
    low, high = exponential(epsilon, scale)
    assert (WORD - lies) * scale <= lies * low
    assert (WORD - lies + 1) * scale > (lies - 1) * high
    assert 2 * lies <= WORD


def exponential(epsilon, scale):
    """Return integers that enclose scale e^(epsilon / 10^6), term by term of the series."""
    low = high = below = above = scale
    k = 0
    while above > 1 or k * 10**6 < 2 * epsilon:
        k += 1
        below = below * epsilon // (k * 10**6)
        above = above * epsilon // (k * 10**6) + 1
        low, high = low + below, high + above
    return low, high + above


@given(st.integers(1, 40_000_000), st.integers(0, 1))
def test_exactly_the_words_below_the_threshold_flip_the_bit(epsilon, truth):
    threshold = BinaryResponse(epsilon).threshold
    for word, flipped in [(0, 1), (threshold - 1, 1), (threshold, 0), (WORD - 1, 0)]:
        answer = report_binary(truth - 1, epsilon=epsilon, words=fed([word]))
        assert answer == bytes([truth ^ flipped])


@given(st.integers(1, 40_000_000), st.lists(st.tuples(st.booleans(), words), max_size=20), words)
def test_one_answer_and_many_make_the_same_bits_of_the_same_words(epsilon, people, key):
    oracle = BinaryResponse(epsilon)
    truths = [int(truth) for truth, _ in people]
    addresses = np.array([address for _, address in people], np.uint64)
    states = np.array([truth - 1 for truth in truths], np.int32)  # 0 is yes, -1 is no
    packed = oracle.perturb(states, addresses, key=key, n_answers=1)
    drawn = words_at(np.uint64(key), addresses).tolist()
    expected = [
        report_binary(truth - 1, epsilon=epsilon, words=fed([word]))[0]
        for truth, word in zip(truths, drawn, strict=True)
    ]
    assert packed.shape == (len(people), 1)
    assert packed[:, 0].tolist() == expected
    aggregate = oracle.aggregate(packed, n_answers=1)
    assert (aggregate.counts.tolist(), aggregate.n) == ([sum(expected)], len(people))


def test_an_answer_is_yes_or_no():
    assert report_binary(0, epsilon=40_000_000) == b"\1"
    with pytest.raises(ValueError, match="-1 for null"):
        report_binary(1, epsilon=1_000_000)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=40), st.sampled_from([0.5, 1.0, 2.0]))
def test_estimates_equal_the_plain_loop(bits, epsilon):
    oracle = BinaryResponse(int(epsilon * 1e6))
    estimate = oracle.estimate(Aggregate(counts=np.array([sum(bits)]), n=len(bits)))
    expected = sum(naive.debias_bit(bit, epsilon) for bit in bits) / len(bits)
    assert estimate.frequencies.tolist() == [pytest.approx(expected, rel=1e-9, abs=1e-12)]
    assert estimate.n == len(bits)
    assert estimate.variance == oracle.variance(len(bits))


@given(st.integers(1, 5_000_000), st.integers(1, 50), st.data())
def test_the_estimate_is_unbiased_and_its_variance_exact_whatever_the_truth(epsilon, n, data):
    true = data.draw(st.integers(0, n))
    oracle = BinaryResponse(epsilon)
    kept, q = oracle.threshold, oracle.q
    # The mean count is true (1 - q) + (n - true) q; every bit has the variance q (1 - q).
    mean = (true * (WORD - kept) + (n - true) * kept) / WORD / n
    assert (mean - q) / (1 - 2 * q) == pytest.approx(true / n, abs=1e-6)
    variance = n * q * (1 - q) / n**2 / (1 - 2 * q) ** 2
    assert oracle.variance(n) == pytest.approx(variance, rel=1e-9)


@given(st.integers(0, 60), st.data())
def test_counts_drawn_at_once_stay_within_what_is_possible(n, data):
    true = np.array([data.draw(st.integers(0, n))])
    generator = np.random.default_rng(n)
    aggregate = BinaryResponse(1_000_000).draw_counts(true, n, generator=generator)
    assert aggregate.n == n
    assert 0 <= aggregate.counts[0] <= n


@pytest.mark.parametrize(
    ("about", "oracle", "n_bits"),
    [
        ("transition", OUE, 132),
        ("move", OUE, 100),
        ("enter", OUE, 16),
        ("quit", OUE, 16),
        ("cell", OUE, 16),
        ("older", BinaryResponse, 1),
        ("present", BinaryResponse, 1),
    ],
)
def test_every_question_has_its_oracle_and_its_number_of_bits(about, oracle, n_bits):
    states = StateSpace(Grid(Box(0, 0, 1, 1), 4))
    question = Question(about=about, threshold=2)
    grant = Grant(t=0, epsilon=1_000_000, reporters=NOBODY, question=question)
    assert isinstance(oracle_for(grant), oracle)
    assert n_answers(question, states) == n_bits
    assert question.binary == (oracle is BinaryResponse)
    assert question.lookback == (2 if about == "older" else 1)
