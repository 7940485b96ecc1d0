"""The filter bank against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from retrasyn.messages import Estimate
from retrasyn.mobility.estimator import ENTER, MOVE, N_GROUPS, QUIT, STAY, FilterBank, groups_of
from retrasyn.oracles import OUE
from retrasyn.space import Box, Grid, StateSpace

NAMES = {STAY: "stay", MOVE: "move", ENTER: "enter", QUIT: "quit"}


def space(side, *, endpoints=True):
    return StateSpace(Grid(Box(0, 0, 1, 1), side), endpoints=endpoints)


def estimates(n_states, numbers, epsilon, seed):
    """Return a stream of noisy frequencies, one for each number of reports."""
    random = np.random.default_rng(seed)
    oracle = OUE(int(epsilon * 1e6))
    truth = random.dirichlet(np.ones(n_states))
    for n in numbers:
        variance = oracle.variance(n)
        y = truth + random.normal(0, np.sqrt(variance), n_states)
        yield Estimate(frequencies=y, variance=variance, n=n)


@pytest.mark.parametrize("side", range(1, 7))
@pytest.mark.parametrize("endpoints", [True, False])
def test_every_state_belongs_to_the_group_its_name_says(side, endpoints):
    expected = []
    for kind, *cells in naive.all_states(side, endpoints):
        stays = kind == "move" and cells[0] == cells[1]
        expected.append("stay" if stays else kind)
    groups = groups_of(space(side, endpoints=endpoints)).tolist()
    assert [NAMES[group] for group in groups] == expected


@settings(max_examples=30)
@given(
    st.integers(1, 3),
    st.lists(st.integers(1, 500), min_size=1, max_size=8),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.integers(0, 999),
)
def test_sums_trust_and_readings_equal_the_plain_loop(side, numbers, epsilon, seed):
    groups = groups_of(space(side))
    bank = FilterBank.empty(groups)
    expected = naive.empty_bank([NAMES[group] for group in groups.tolist()])
    v1 = naive.variance_of_one(epsilon)
    for estimate in estimates(groups.size, numbers, epsilon, seed):
        bank.update(estimate)
        expected = naive.bank_step(expected, estimate.frequencies.tolist(), estimate.n, v1)
    np.testing.assert_allclose(bank.sums, expected.sums, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(bank.weights, expected.weights, rtol=1e-12)
    for group in range(N_GROUPS):
        name = NAMES[group]
        if name not in expected.groups:  # a grid of one cell has no moves to others
            np.testing.assert_allclose(bank.trust[:, group], 1 / len(naive.FACTORS))
            continue
        trust = [by_group[name] for by_group in expected.trust]
        np.testing.assert_allclose(bank.trust[:, group], trust, rtol=1e-8, atol=1e-12)
        assert bank.trust[:, group].sum() == pytest.approx(1.0)
        frequencies, variance = naive.bank_estimate(expected, name, v1)
        found, found_variance = bank.read(group)
        np.testing.assert_allclose(found, frequencies, rtol=1e-9, atol=1e-12)
        assert found_variance == pytest.approx(variance, rel=1e-9)


@given(st.lists(st.integers(1, 500), min_size=1, max_size=8), st.integers(0, 99))
def test_the_mean_over_all_time_weighs_every_report_alike(numbers, seed):
    groups = groups_of(space(2))
    bank, total = FilterBank.empty(groups), np.zeros(groups.size)
    for estimate in estimates(groups.size, numbers, 1.0, seed):
        bank.update(estimate)
        total += estimate.n * estimate.frequencies
    found, variance = bank.read_all_time()
    np.testing.assert_allclose(found, total / sum(numbers), rtol=1e-9, atol=1e-12)
    assert variance == pytest.approx(OUE(1_000_000).variance(sum(numbers)), rel=1e-9)


def test_a_bank_without_reports_has_not_started_and_remembers_nothing():
    bank = FilterBank.empty(groups_of(space(2)))
    assert not bank.started
    assert not bank.sums.any()
    assert not bank.weights.any()


def test_the_first_estimate_is_read_as_it_is_at_every_speed():
    bank = FilterBank.empty(groups_of(space(2)))
    (estimate,) = estimates(bank.groups.size, [50], 1.0, 3)
    bank.update(estimate)
    assert bank.started
    for group in range(N_GROUPS):
        found, variance = bank.read(group)
        np.testing.assert_allclose(found, estimate.frequencies, rtol=1e-12)
        assert variance == pytest.approx(estimate.variance)


def test_after_a_change_the_bank_trusts_what_forgets():
    bank = FilterBank.empty(groups_of(space(1)))
    for t in range(40):
        y = np.array([0.9, 0.05, 0.05]) if t < 30 else np.array([0.1, 0.45, 0.45])
        bank.update(Estimate(frequencies=y, variance=OUE(1_000_000).variance(2000), n=2000))
    frequencies, variance = bank.read(STAY)
    assert abs(frequencies[0] - 0.1) < 0.02
    assert variance > bank.read_all_time()[1]


def test_a_bank_carried_over_as_arrays_reads_alike():
    one, other = (FilterBank.empty(groups_of(space(2))) for _ in range(2))
    for estimate in estimates(one.groups.size, [40, 1, 7], 1.0, 5):
        one.update(estimate)
    other.load_arrays(one.to_arrays())
    (late,) = estimates(one.groups.size, [9], 1.0, 6)
    one.update(late)
    other.update(late)
    for group in range(N_GROUPS):
        assert one.read(group)[0].tobytes() == other.read(group)[0].tobytes()
        assert one.read(group)[1] == other.read(group)[1]
