"""Optimised unary encoding: exact thresholds, equal paths, unbiased estimates."""

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from retrasyn import oracles
from retrasyn.messages import Aggregate
from retrasyn.oracles import OUE, threshold
from retrasyn.oracles.single import report_unary
from retrasyn.oracles.threshold import hash_range, lie_threshold, noise_threshold
from retrasyn.randomness.kernels import words_at
from support.feeding import fed

KNOWN = {
    500_000: 0x60A6815965E37A0F,
    1_000_000: 0x44D9585152EA1936,
    1_500_000: 0x2EB3706AB4375F64,
    2_000_000: 0x1E84152BAC31AEAA,
}


@pytest.mark.parametrize(("epsilon", "known"), KNOWN.items())
def test_thresholds_have_their_known_values(epsilon, known):
    assert noise_threshold(epsilon) == known


@given(st.integers(1, 40_000_000))
def test_thresholds_equal_the_decimal_ones(epsilon):
    assert noise_threshold(epsilon) == naive.oue_threshold(epsilon)


@given(st.integers(1, 40_000_000))
def test_the_real_epsilon_never_exceeds_the_stated_one(epsilon):
    getcontext().prec = 60
    q = Decimal(noise_threshold(epsilon)) / 2**64
    # The most telling event: the true bit is 1 and another is 0.
    real = ((Decimal(1) / 2 / q) * ((1 - q) / (Decimal(1) / 2))).ln()
    assert real <= Decimal(epsilon) / 1_000_000


@pytest.mark.parametrize("function", [lambda x: lie_threshold(x, 5), hash_range])
def test_an_enclosure_that_leaves_a_choice_is_narrowed(function, monkeypatch):
    enclose, asked = threshold._exponential_enclosed, []

    def wide_at_first(epsilon, bits):
        asked.append(bits)
        low, high = enclose(epsilon, bits)
        return (low // 2, 2 * high) if len(asked) == 1 else (low, high)

    lie_threshold.cache_clear(), hash_range.cache_clear()
    expected = function(1_234_567)
    lie_threshold.cache_clear(), hash_range.cache_clear()
    monkeypatch.setattr(threshold, "_exponential_enclosed", wide_at_first)
    assert function(1_234_567) == expected
    assert asked == [128, 256]


@pytest.mark.parametrize("bits", [1, 2, 5, 64])
@pytest.mark.parametrize("epsilon", [1, 400_000, 1_000_000, 2_000_000, 7_300_000])
def test_an_enclosure_holds_the_exponential_however_coarse_it_is(epsilon, bits):
    getcontext().prec = 60
    low, high = threshold._exponential_enclosed(epsilon, bits)
    assert low <= (Decimal(epsilon) / 1_000_000).exp() * 2**bits <= high


def test_a_budget_of_nothing_is_refused():
    with pytest.raises(ValueError, match="positive budget"):
        noise_threshold(0)


@given(st.integers(1, 700), st.data())
def test_one_report_and_many_make_the_same_bits_of_the_same_words(n_states, data):
    state = data.draw(st.integers(-1, n_states - 1))
    word, key = data.draw(st.integers(0, 2**64 - 1)), data.draw(st.integers(0, 2**64 - 1))
    oracle = OUE(1_000_000)
    many = oracle.perturb(
        np.array([state], np.int32), np.array([word], np.uint64), key=key, n_answers=n_states
    )
    own_key = words_at(np.uint64(key), np.array([word], np.uint64))[0]
    words = words_at(own_key, np.arange(n_states, dtype=np.uint64)).tolist()
    one = report_unary(state, n_states, epsilon=oracle.epsilon, words=fed(words))
    assert many[0].tobytes() == one


def test_a_report_from_the_operating_system_has_the_right_length_and_padding():
    report = report_unary(3, 13, epsilon=1)
    assert len(report) == 2
    assert report[1] < 1 << 5


@given(st.integers(0, 40), st.integers(1, 70), st.integers(0, 2**32 - 1))
def test_counting_packed_bits_equals_unpacking_them(n, n_states, seed):
    bits = np.random.default_rng(seed).integers(0, 2, (n, n_states), np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    aggregate = OUE(1_000_000).aggregate(packed, n_answers=n_states)
    assert aggregate.counts.tolist() == bits.sum(axis=0).tolist()
    assert aggregate.n == n


@given(st.integers(1, 30), st.integers(1, 9), st.sampled_from([0.5, 1.0, 2.0]), st.integers(0, 99))
def test_estimates_equal_the_plain_loop(n, n_states, epsilon, seed):
    bits = np.random.default_rng(seed).integers(0, 2, (n, n_states))
    estimate = OUE(int(epsilon * 1e6)).estimate(Aggregate(counts=bits.sum(axis=0), n=n))
    np.testing.assert_allclose(
        estimate.frequencies, naive.oue_estimate(bits.tolist(), epsilon), rtol=1e-12, atol=1e-12
    )
    assert estimate.variance == pytest.approx(naive.oue_variance(epsilon, n), rel=1e-12)


def test_the_variance_is_equation_3():
    e = math.e
    assert OUE(1_000_000).variance(50) == pytest.approx(4 * e / (50 * (e - 1) ** 2), rel=1e-12)


def test_the_package_names_its_oracle_when_it_is_asked_for_and_nothing_else():
    assert oracles.OUE is OUE
    with pytest.raises(AttributeError, match=r"'retrasyn\.oracles' has no attribute 'RAPPOR'"):
        _ = oracles.RAPPOR


def test_aggregates_add_up_in_any_order():
    parts = [Aggregate(counts=np.array([k, 1]), n=k) for k in range(4)]
    forward = parts[0] + parts[1] + (parts[2] + parts[3])
    backward = parts[3] + parts[2] + parts[1] + parts[0]
    assert forward.counts.tolist() == backward.counts.tolist() == [6, 4]
    assert forward.n == backward.n == 6
