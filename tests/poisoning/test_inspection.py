"""Fakes are caught, honest crowds are left alone. All rounds are seeded."""

import numpy as np
import pytest

from retrasyn.errors import InputError, SettingError
from retrasyn.oracles.oue import OUE
from retrasyn.poisoning import influence_of_one, inspect, trimmed
from support.poisoned_rounds import (
    ATTACKS,
    EPSILON,
    ESCAPING,
    HONEST,
    N_STATES,
    Q,
    honest,
    pack,
    poisoned,
)

pytestmark = pytest.mark.system

N, N_FAKES = 10_000, 200


def rounds_caught(attack, n_rounds, seed):
    random = np.random.default_rng(seed)
    crowds = HONEST[:4]
    return sum(
        inspect(
            poisoned(N, N_FAKES, attack, random, crowds[number % 4]), N_STATES, epsilon=EPSILON
        ).alarmed
        for number in range(n_rounds)
    )


@pytest.mark.parametrize("name", ATTACKS)
def test_two_percent_of_fakes_raise_the_alarm(name):
    assert rounds_caught(ATTACKS[name], 8, seed=1) == 8


@pytest.mark.long
@pytest.mark.parametrize("name", ATTACKS)
def test_two_percent_of_fakes_raise_the_alarm_in_95_of_100_rounds(name):
    assert rounds_caught(ATTACKS[name], 400, seed=2) >= 0.95 * 400


@pytest.mark.parametrize("crowd", HONEST)
def test_honest_crowds_of_any_shape_raise_no_alarm(crowd):
    random = np.random.default_rng(6)
    rounds = [honest(N, random, crowd=crowd) for _ in range(6)]
    assert sum(inspect(packed, N_STATES, epsilon=EPSILON).alarmed for packed in rounds) == 0


@pytest.mark.long
@pytest.mark.parametrize("crowd", HONEST)
def test_at_most_one_honest_round_in_a_hundred_raises_the_alarm(crowd):
    random = np.random.default_rng(4)
    n_rounds = 1_000
    alarmed = 0
    for _ in range(n_rounds):
        alarmed += inspect(honest(N, random, crowd=crowd), N_STATES, epsilon=EPSILON).alarmed
    assert alarmed <= 0.01 * n_rounds


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("5 target states", 0.8, 1), ("2 target states", 0.15, 0.7), ("1 target state", 0, 0.03)],
)
def test_few_targets_escape_as_the_documents_say(name, least, most):
    caught = rounds_caught(ESCAPING[name], 400, seed=5) / 400
    assert least <= caught <= most


@pytest.mark.parametrize(
    ("n", "n_states", "epsilon"),
    [(200, 328, EPSILON), (1_000, 24, EPSILON), (3_000, 328, 100_000), (300, 328, 6_000_000)],
)
def test_small_rounds_and_other_budgets_raise_no_alarm_either(n, n_states, epsilon):
    random = np.random.default_rng(16)
    for number in range(12):
        packed = honest(n, random, crowd=HONEST[number % 6], n_states=n_states, epsilon=epsilon)
        assert not inspect(packed, n_states, epsilon=epsilon).alarmed


@pytest.mark.parametrize("name", ["identical vectors", "all ones", "20 target states"])
def test_the_fakes_are_named_and_hardly_anybody_else(name):
    random = np.random.default_rng(7)
    packed = poisoned(N, N_FAKES, ATTACKS[name], random)
    suspects = inspect(packed, N_STATES, epsilon=EPSILON).suspects
    assert np.count_nonzero(suspects >= N - N_FAKES) >= 0.98 * N_FAKES
    assert np.count_nonzero(suspects < N - N_FAKES) <= 0.02 * N


def test_a_trimmed_sum_is_closer_to_the_truth_than_the_whole():
    random = np.random.default_rng(8)
    true = honest(N - N_FAKES, random, crowd="even")
    packed = np.concatenate([true, ATTACKS["20 target states"](N_FAKES, random)])
    inspection = inspect(packed, N_STATES, epsilon=EPSILON)

    oracle = OUE(EPSILON)
    wanted = oracle.estimate(oracle.aggregate(true, n_answers=N_STATES)).frequencies
    kept = oracle.estimate(
        trimmed(packed, N_STATES, epsilon=EPSILON, inspection=inspection)
    ).frequencies
    whole = oracle.estimate(oracle.aggregate(packed, n_answers=N_STATES)).frequencies

    assert np.abs(kept - wanted).sum() < 0.2 * np.abs(whole - wanted).sum()


def test_an_honest_round_is_added_up_whole():
    packed = honest(500, np.random.default_rng(9))
    inspection = inspect(packed, N_STATES, epsilon=EPSILON)
    aggregate = trimmed(packed, N_STATES, epsilon=EPSILON, inspection=inspection)
    assert aggregate.n == 500
    bits = np.unpackbits(packed, axis=1, count=N_STATES, bitorder="little")
    assert np.array_equal(aggregate.counts, bits.sum(axis=0))


@pytest.mark.parametrize("epsilon", [100_000, 500_000, 1_000_000, 2_000_000, 4_000_000])
def test_one_fake_moves_a_state_by_no_more_than_is_documented(epsilon):
    grown = np.exp(epsilon / 1e6)
    assert influence_of_one(epsilon) == pytest.approx(2 * grown / (grown - 1), rel=1e-12)
    oracle = OUE(epsilon)
    counts = np.round(1_000 * oracle.q * np.ones(3))  # a thousand devices in other states
    before = (counts / 1_000 - oracle.q) / (0.5 - oracle.q)
    after = ((counts - oracle.q + 1) / 1_000 - oracle.q) / (0.5 - oracle.q)  # one lies for good
    assert 1_000 * (after - before) == pytest.approx(influence_of_one(epsilon))


def test_a_state_that_grows_beyond_its_drift_raises_the_alarm():
    random = np.random.default_rng(10)
    packed = poisoned(N, 600, ESCAPING["1 target state"], random, crowd="even")
    expected = np.full(N_STATES, 1 / N_STATES)

    assert not inspect(packed, N_STATES, epsilon=EPSILON).alarmed
    inspection = inspect(packed, N_STATES, epsilon=EPSILON, expected=expected, drift=0.01)

    (alarm,) = inspection.alarms
    assert alarm.test == "bits"
    assert alarm.suspects.size == inspection.suspects.size == 0
    assert "plausible" in alarm.reason


def test_the_previous_release_raises_no_alarm_in_an_honest_round():
    for seed in range(20, 30):
        packed = honest(N, np.random.default_rng(seed), crowd="even")
        expected = np.full(N_STATES, 1 / N_STATES)
        inspection = inspect(packed, N_STATES, epsilon=EPSILON, expected=expected, drift=0.0)
        assert not inspection.alarmed


def test_a_bit_that_is_never_set_raises_the_alarm():
    bits = np.random.default_rng(11).random((2_000, N_STATES)) < Q
    bits[:, 17] = False
    inspection = inspect(pack(bits), N_STATES, epsilon=EPSILON)
    assert [alarm.test for alarm in inspection.alarms] == ["bits"]
    assert "bit 17 " in inspection.alarms[0].reason


def test_reports_without_any_noise_are_equal_and_alarming():
    packed = pack(np.zeros((1_000, N_STATES), bool))
    tests = {alarm.test for alarm in inspect(packed, N_STATES, epsilon=EPSILON).alarms}
    assert tests == {"duplicates", "weights", "bits"}


def test_what_a_round_is_too_small_for_is_said():
    inspection = inspect(honest(1, np.random.default_rng(12)), N_STATES, epsilon=EPSILON)
    tests = [line.partition(":")[0] for line in inspection.not_tested]
    assert tests[:3] == ["duplicates", "pairs", "spectrum"]
    nothing = inspect(np.empty((0, 41), np.uint8), N_STATES, epsilon=EPSILON)
    assert len(nothing.not_tested) == 5
    assert not nothing.alarmed
    few_bits = inspect(honest(1_000, np.random.default_rng(13), n_states=24), 24, epsilon=EPSILON)
    assert "by chance" in few_bits.not_tested[0]
    many = inspect(np.zeros((9, 126), np.uint8), 1_001, epsilon=EPSILON)
    assert [line for line in many.not_tested if "the most 1,000" in line] == [
        "pairs: 1,001 states are too many, the most 1,000",
        "spectrum: 1,001 states are too many, the most 1,000",
    ]


def test_large_rounds_are_looked_at_block_by_block_with_the_same_result(monkeypatch):
    packed = poisoned(N, N_FAKES, ATTACKS["10 target states"], np.random.default_rng(14))
    whole = inspect(packed, N_STATES, epsilon=EPSILON)
    monkeypatch.setattr("retrasyn.poisoning.evidence._BITS_AT_ONCE", 328 * 999)
    parts = inspect(packed, N_STATES, epsilon=EPSILON)
    assert [a.reason for a in parts.alarms] == [a.reason for a in whole.alarms]
    assert np.array_equal(parts.suspects, whole.suspects)


@pytest.mark.parametrize(
    ("packed", "n_states"),
    [
        (np.zeros((3, 40), np.uint8), 328),
        (np.zeros(41, np.uint8), 328),
        (np.zeros((3, 41), np.int64), 328),
        (np.zeros((3, 0), np.uint8), 0),
    ],
    ids=["short", "flat", "wide", "none"],
)
def test_what_is_no_round_of_reports_is_refused(packed, n_states):
    with pytest.raises(InputError, match="rows of"):
        inspect(packed, n_states, epsilon=EPSILON)


@pytest.mark.parametrize("expected", [np.zeros(3), np.full(N_STATES, np.nan)], ids=["few", "nan"])
def test_expected_frequencies_must_be_one_number_per_state(expected):
    with pytest.raises(InputError, match="expected"):
        inspect(honest(9, np.random.default_rng(0)), N_STATES, epsilon=EPSILON, expected=expected)


@pytest.mark.parametrize("options", [{"drift": -1}, {"drift": 2}, {"false_alarms": 0}])
def test_settings_that_mean_nothing_are_refused(options):
    with pytest.raises(SettingError, match="drift"):
        inspect(honest(9, np.random.default_rng(0)), N_STATES, epsilon=EPSILON, **options)


def test_a_sum_is_trimmed_by_its_own_inspection_only():
    packed = honest(20, np.random.default_rng(15))
    inspection = inspect(packed, N_STATES, epsilon=EPSILON)
    with pytest.raises(InputError, match="saw 20 reports"):
        trimmed(packed[1:], N_STATES, epsilon=EPSILON, inspection=inspection)
