"""What every oracle promises, checked for each of them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from retrasyn.oracles import single
from retrasyn.oracles.grr import GRR
from retrasyn.oracles.registry import BINARY, ORACLES, check_wish, find_oracle
from retrasyn.oracles.threshold import hash_range, lie_threshold
from retrasyn.randomness.kernels import words_at
from support.feeding import fed

NAMES = [*ORACLES, "binary"]
LEVEL = 1e-6  # of each seeded test below
words = st.integers(0, 2**64 - 1)
epsilons = st.integers(1, 40_000_000)


def row_of(name):
    return BINARY if name == "binary" else find_oracle(name)


def oracle_of(name, epsilon, n_answers):
    return row_of(name).at(epsilon, n_answers)


def report_of(name, state, n_answers, epsilon, source):
    return row_of(name).report(state, n_answers, epsilon=epsilon, words=source)


@pytest.mark.parametrize("name", NAMES)
@given(st.integers(1, 700), epsilons, words, words, st.data())
def test_one_report_and_many_are_the_same_bytes_of_the_same_words(
    name, n_answers, epsilon, key, address, data
):
    n_answers = 1 if name == "binary" else n_answers
    state = data.draw(st.integers(-1, n_answers - 1))
    oracle = oracle_of(name, epsilon, n_answers)
    addresses = np.array([address], np.uint64)
    many = oracle.perturb(np.array([state], np.int32), addresses, key=key, n_answers=n_answers)
    if name == "binary":
        drawn = words_at(np.uint64(key), addresses)
    else:
        own_key = words_at(np.uint64(key), addresses)[0]
        drawn = words_at(own_key, np.arange(max(n_answers, 8), dtype=np.uint64))
    one = report_of(name, state, n_answers, epsilon, fed(drawn.tolist()))
    assert many[0].tobytes() == one
    assert len(one) == oracle.report_bytes(n_answers)
    assert row_of(name).is_possible(one, epsilon, n_answers)


@pytest.mark.parametrize("name", NAMES)
@given(st.integers(1, 40), epsilons, st.integers(0, 30), st.data())
def test_support_is_counted_as_a_plain_loop_counts_it(name, n_answers, epsilon, n, data):
    n_answers = 1 if name == "binary" else n_answers
    states = data.draw(st.lists(st.integers(-1, n_answers - 1), min_size=n, max_size=n))
    oracle = oracle_of(name, epsilon, n_answers)
    packed = oracle.perturb(
        np.array(states, np.int32), np.arange(n, dtype=np.uint64), key=9, n_answers=n_answers
    )
    supports = {
        "oue": lambda report, v: report[v // 8] >> (v % 8) & 1,
        "binary": lambda report, v: report[0],
        "grr": lambda report, v: int.from_bytes(report, "little") == v,
        "olh": lambda report, v: (
            single.hash_answer(int.from_bytes(report[:4], "little"), v, hash_range(epsilon))
            == int.from_bytes(report[4:], "little")
        ),
    }[name]
    expected = [sum(supports(row.tobytes(), v) for row in packed) for v in range(n_answers)]
    aggregate = oracle.aggregate(packed, n_answers=n_answers)
    assert (aggregate.counts.tolist(), aggregate.n) == (expected, n)


@pytest.mark.parametrize("name", NAMES)
@given(st.integers(1, 300), epsilons)
def test_the_truth_is_likelier_than_a_lie_and_probabilities_are_probabilities(
    name, n_answers, epsilon
):
    oracle = oracle_of(name, epsilon, n_answers)
    assert 0 < oracle.q < oracle.p < 1 + 1e-15
    assert oracle.variance(2) == pytest.approx(oracle.variance(1) / 2)
    assert oracle.variance(10) == pytest.approx(oracle.variance_at(10, 0.0))


N_ANSWERS, N_USERS, N_ROUNDS = 9, 60, 3000
HELD = np.array([25, 15, 9, 1, 0, 0, 0, 0, 0])  # the other ten report null


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("epsilon", [500_000, 2_000_000])
def test_drawn_counts_and_added_reports_have_the_same_law(name, epsilon):
    oracle = oracle_of(name, epsilon, N_ANSWERS)
    states = np.repeat(np.arange(-1, N_ANSWERS), [10, *HELD]).astype(np.int32)
    addresses = np.arange(N_USERS, dtype=np.uint64)
    generator = np.random.default_rng(21)
    added = np.array(
        [
            oracle.aggregate(
                oracle.perturb(states, addresses, key=77 + t * 2**32, n_answers=N_ANSWERS),
                n_answers=N_ANSWERS,
            ).counts
            for t in range(N_ROUNDS)
        ]
    )
    sums = [oracle.draw_counts(HELD, N_USERS, generator=generator) for _ in range(N_ROUNDS)]
    assert {one.n for one in sums} == {N_USERS}
    drawn = np.array([one.counts for one in sums])
    for v in range(N_ANSWERS):
        top = int(max(added[:, v].max(), drawn[:, v].max())) + 1
        table = np.stack([np.bincount(one[:, v], minlength=top) for one in (added, drawn)])
        table = table[:, table.sum(axis=0) >= 20]
        assert stats.chi2_contingency(table).pvalue > LEVEL / N_ANSWERS
    if name == "grr":  # symbols exclude one another: the sum over answers is narrower
        totals = [one.sum(axis=1) for one in (added, drawn)]
        assert totals[0].var() == pytest.approx(totals[1].var(), rel=0.2)


@pytest.mark.parametrize("name", ORACLES)
def test_estimates_are_unbiased_and_vary_as_they_say(name):
    epsilon = 1_000_000
    oracle = oracle_of(name, epsilon, N_ANSWERS)
    states = np.repeat(np.arange(-1, N_ANSWERS), [10, *HELD]).astype(np.int32)
    addresses = np.arange(N_USERS, dtype=np.uint64)
    found = []
    for t in range(N_ROUNDS):
        packed = oracle.perturb(states, addresses, key=5 + t * 2**33, n_answers=N_ANSWERS)
        found.append(oracle.estimate(oracle.aggregate(packed, n_answers=N_ANSWERS)).frequencies)
    true = HELD / N_USERS
    variance = np.array([oracle.variance_at(N_USERS, f) for f in true])
    z = (np.mean(found, axis=0) - true) / np.sqrt(variance / N_ROUNDS)
    assert np.abs(z).max() < stats.norm.isf(LEVEL / N_ANSWERS / 2)
    np.testing.assert_allclose(np.var(found, axis=0), variance, rtol=0.15)


@given(epsilons, st.integers(1, 2000))
def test_a_lie_has_exactly_as_many_words_as_the_bound_needs(epsilon, others):
    threshold = lie_threshold(epsilon, others)
    low, high = exponential(epsilon)
    # p / q = (2^64 - T) others / T must stay within e^epsilon, and with T - 1 it would not.
    assert Fraction((2**64 - threshold) * others, threshold) <= low
    assert threshold == 1 or Fraction((2**64 - threshold + 1) * others, threshold - 1) > high


def exponential(epsilon):
    """Enclose e^(epsilon / 10^6) between fractions: Taylor's series and its remainder."""
    whole, part = divmod(epsilon, 1_000_000)
    low_1, high_1 = _series(Fraction(1))
    low, high = _series(Fraction(part, 1_000_000))
    return low * low_1**whole, high * high_1**whole


def _series(x, n_terms=30):
    total = term = Fraction(1)
    for k in range(1, n_terms):
        term = term * x / k
        total += term
    return total, total + 2 * term * x / n_terms


@pytest.mark.parametrize(
    ("epsilon", "among_states", "g", "among_values"),
    [
        (500_000, 0xFEB8399C1199720B, 3, 0x8C52B8D774982417),
        (1_000_000, 0xFDE55691B6A7DE29, 4, 0x864E5B113AFF546C),
        (2_000_000, 0xFA5C28296B45BE7F, 8, 0x7C8A0204BBE69864),
    ],
)
def test_thresholds_of_symbols_and_values_have_their_known_answers(
    epsilon, among_states, g, among_values
):
    assert lie_threshold(epsilon, 328) == among_states
    assert hash_range(epsilon) == g
    assert lie_threshold(epsilon, g - 1) == among_values


def test_hashes_have_their_known_answers():
    assert [single.hash_answer(7, v, 4) for v in range(8)] == [0, 3, 1, 1, 0, 0, 3, 2]
    assert single.hash_answer(2**32 - 1, 40_000, 65_536) == 34_280


@pytest.mark.parametrize(("epsilon", "g"), [(1, 2), (400_000, 2), (500_000, 3), (10**6, 4)])
def test_answers_are_hashed_to_about_one_plus_e_to_the_epsilon_values(epsilon, g):
    assert hash_range(epsilon) == g
    assert abs(g - 1 - math.exp(epsilon / 1e6)) <= 0.5
    assert hash_range(40_000_000) == 65_536


@given(st.integers(0, 2**32 - 2001), st.integers(2, 70))
def test_two_answers_share_a_hash_about_as_often_as_chance_has_it(first, g):
    shared = sum(
        single.hash_answer(seed, 3, g) == single.hash_answer(seed, 4, g)
        for seed in range(first, first + 2000)
    )
    assert abs(shared - 2000 / g) < 6 * math.sqrt(2000 / g)


def test_words_of_the_incomplete_last_lap_are_drawn_again():
    # 2^64 = 1 mod 3, so the word 0 is redrawn; 7 mod 3 = 1, which is beyond the truth 0.
    source = fed([0, 0, 7])
    assert single.report_symbol(0, 3, epsilon=1_000_000, words=source) == bytes([2])
    source = fed([5, 2**64 - 1, 0, 0, 8])  # null among three values: 8 mod 3 = 2
    assert single.report_hash(-1, 9, epsilon=500_000, words=source)[4] == 2
    source = fed([7, 0, 0, 8])  # the answer 0 hashes to 0 of four values; 8 mod 3 = 2 is beyond
    assert single.report_hash(0, 9, epsilon=1_000_000, words=source)[4] == 3


def test_a_word_at_a_threshold_is_not_below_it():
    noise, lie = lie_threshold(1_000_000, 1), lie_threshold(1_000_000, 3)
    for below in (0, 1):
        words = fed([2**63 - below, noise - below])  # of the true bit, and of another
        assert single.report_unary(0, 2, epsilon=1_000_000, words=words) == bytes([3 * below])
        words = fed([lie - below, 1])  # 2^64 = 1 mod 3, so the word 1 is the first that stands
        assert single.report_symbol(0, 3, epsilon=1_000_000, words=words) == bytes([2 * below])


@pytest.mark.parametrize("name", NAMES)
def test_the_support_of_an_oracle_is_that_of_its_row(name):
    for n_answers in (2, 9):
        oracle = oracle_of(name, 1_000_000, n_answers)
        assert oracle.support == row_of(name).support(1_000_000, n_answers)
        assert oracle.support == (oracle.p, oracle.q)


def test_null_is_one_more_symbol_and_lies_like_any_other():
    truth, lie = fed([2**64 - 1, 7]), fed([0, 7])
    assert single.report_symbol(-1, 3, epsilon=1_000_000, words=truth) == bytes([3])
    assert single.report_symbol(-1, 3, epsilon=1_000_000, words=lie) == bytes([7 % 3])


@pytest.mark.parametrize("report", [single.report_unary, single.report_symbol, single.report_hash])
def test_what_is_no_state_is_refused_without_telling_it(report):
    for state in (-2, 40, 123_456_789):
        with pytest.raises(ValueError, match=r"one of 0\.\.39") as fault:
            report(state, 40, epsilon=1_000_000)
        assert str(state) not in str(fault.value).replace("0..39", "")
    for n_answers in (0, 65_536):
        with pytest.raises(single.SettingError, match=r"outside 1\.\.65,535"):
            report(-1, n_answers, epsilon=1_000_000)
    for n_answers in (1, 65_535):
        assert report(-1, n_answers, epsilon=1_000_000)


def test_an_unknown_oracle_and_a_lie_without_others_are_refused():
    with pytest.raises(single.SettingError, match="not one of oue, grr"):
        find_oracle("rappor")
    with pytest.raises(single.SettingError, match="not one of oue, grr, olh, auto, small"):
        check_wish("binary")
    with pytest.raises(ValueError, match="at least one other"):
        lie_threshold(1_000_000, 0)


def test_symbols_nobody_may_send_support_nothing():
    packed = np.array([[0], [4], [5], [255]], np.uint8)
    assert GRR(1_000_000, 5).aggregate(packed, n_answers=5).counts.tolist() == [1, 0, 0, 0, 1]
