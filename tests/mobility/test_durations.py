"""Experts on ages against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from retrasyn.messages import Aggregate
from retrasyn.mobility import kernels
from retrasyn.mobility.durations import OLDEST, AgeMemory, expert_laws
from retrasyn.oracles.binary import BinaryResponse
from retrasyn.privacy.selection import age_thresholds

seeds = st.integers(0, 9999)
sizes = st.lists(st.one_of(st.just(0), st.integers(1, 500)), min_size=1, max_size=8)


def test_every_expert_has_the_weibull_hazard_of_its_law():
    laws, hazards = expert_laws()
    np.testing.assert_allclose(laws, naive.experts(), rtol=1e-12)
    expected = [naive.weibull_hazard(*law) for law in naive.experts()]
    np.testing.assert_allclose(hazards, expected, rtol=1e-9)


@given(st.integers(1, 3), st.integers(2, 9), sizes, seeds)
def test_histograms_grow_older_as_in_the_plain_loop(n_experts, oldest, many, seed):
    random = np.random.default_rng(seed)
    hazards = random.random((n_experts, oldest)) * 0.9
    histograms = np.zeros((n_experts, oldest))
    entering, quitting = np.empty(n_experts), np.empty(n_experts)
    expected = [[0.0] * oldest for _ in range(n_experts)]
    before = 0
    for size in many:
        kernels.step_ages(histograms, hazards, float(size), entering, quitting)
        for e in range(n_experts):
            expected[e], enters, quits = naive.age_step(expected[e], hazards[e].tolist(), size)
            assert entering[e] == pytest.approx(enters, rel=1e-9, abs=1e-9)
            assert quitting[e] == pytest.approx(quits, rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(histograms, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(histograms.sum(axis=1), size, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(before + entering - quitting, size, rtol=1e-9, atol=1e-9)
        assert (histograms >= 0).all()
        before = size


def test_nobody_falls_off_beyond_the_oldest_age():
    ages = AgeMemory(age_thresholds(21))
    for _ in range(OLDEST + 50):
        ages.step(100)
    np.testing.assert_allclose(ages.histograms.sum(axis=1), 100.0, rtol=1e-9)
    patient = int(np.argmax(expert_laws()[1][:, -1] * -1))
    assert ages.histograms[patient, -1] > ages.histograms[patient, -2]


def test_a_population_that_vanishes_and_returns_is_counted_without_a_fault():
    ages = AgeMemory(age_thresholds(2))
    for size in (50, 0, 0, 30):
        entering, quitting = ages.step(size)
        totals = ages.smooth(ages.weights(5), entering, quitting, size)
        assert np.isfinite(ages.histograms).all()
        np.testing.assert_allclose(ages.histograms.sum(axis=1), size, atol=1e-9)
    np.testing.assert_allclose(entering, 30.0)
    assert totals is not None
    assert np.isfinite(totals).all()


@settings(max_examples=8)
@given(
    sizes,
    st.sampled_from([2, 3, 21, 205]),
    st.sampled_from([0.5, 1.0]),
    st.integers(1, 300),
    seeds,
)
def test_pooled_answers_weigh_the_experts_as_in_the_plain_loop(many, gap, epsilon, window, seed):
    random = np.random.default_rng(seed)
    thresholds = list(age_thresholds(gap))
    assert thresholds == naive.age_thresholds(gap)
    laws = naive.experts()
    hazards = [naive.weibull_hazard(*law) for law in laws]
    histograms = [[0.0] * OLDEST for _ in laws]
    pool = naive.AgeReports([0] * len(thresholds), [0.0] * len(thresholds), [])
    pool.expected.extend([0.0] * len(thresholds) for _ in laws)
    expected_totals, anybody = None, False
    ages, oracle = AgeMemory(tuple(thresholds)), BinaryResponse(int(epsilon * 1e6))
    for size in many:
        entering, quitting = ages.step(size)
        steps = [naive.age_step(*pair, size) for pair in zip(histograms, hazards, strict=True)]
        histograms = [step[0] for step in steps]
        for which, threshold in enumerate(thresholds):
            bits = random.integers(0, 2, random.integers(0, min(size, 4) + 1)).tolist()
            if bits:
                sums = Aggregate(counts=np.array([sum(bits)]), n=len(bits))
                ages.pool(which, oracle.estimate(sums), size)
            reports = [(threshold, bit) for bit in bits]
            pool = naive.pool_age_reports(pool, reports, histograms, thresholds, epsilon)
        scores = [naive.expert_score(*law, window, pool, e, epsilon) for e, law in enumerate(laws)]
        expected = naive.expert_weights(scores)
        weights = ages.weights(window)
        np.testing.assert_allclose(weights, expected, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(
            ages.hazard(weights), naive.mean_hazard(expected, hazards), rtol=1e-8
        )
        now = naive.age_totals(expected, [s[1] for s in steps], [s[2] for s in steps], size)
        totals = ages.smooth(weights, entering, quitting, size)
        if anybody:
            expected_totals = naive.smooth_totals(expected_totals, now)
            assert totals is not None
            wanted = [expected_totals["enter"], expected_totals["quit"]]
            np.testing.assert_allclose(totals, wanted, rtol=1e-8, atol=1e-12)
        else:
            assert totals is None
        anybody = anybody or size > 0


def test_answers_find_the_expert_who_is_right():
    random, ages, oracle = np.random.default_rng(4), AgeMemory(age_thresholds(21)), None
    oracle = BinaryResponse(2_000_000)
    present = np.zeros(0, np.int64)
    for _ in range(80):  # a tenth of everybody quits, whatever their age
        present = present[random.random(present.size) < 0.9] + 1
        present = np.concatenate([present, np.ones(1000 - present.size, np.int64)])
        ages.step(1000)
        for which, threshold in enumerate(ages.thresholds):
            truth = np.array([np.count_nonzero(present[:200] > threshold)])
            sums = oracle.draw_counts(truth, 200, generator=random)
            ages.pool(which, oracle.estimate(sums), 1000)
        random.shuffle(present)
    hazard = ages.hazard(ages.weights(20))
    assert abs(hazard[1:30].mean() - 0.1) < 0.02


def test_ages_carried_over_as_arrays_go_on_alike():
    one, other = AgeMemory(age_thresholds(21)), AgeMemory(age_thresholds(21))
    oracle = BinaryResponse(1_000_000)
    for size in (40, 35):
        entering, quitting = one.step(size)
        one.pool(1, oracle.estimate(Aggregate(counts=np.array([3]), n=9)), size)
        one.smooth(one.weights(20), entering, quitting, size)
    other.load_arrays(one.to_arrays())
    for ages in (one, other):
        entering, quitting = ages.step(38)
        ages.smooth(ages.weights(20), entering, quitting, 38)
    assert one.weights(20).tobytes() == other.weights(20).tobytes()
    assert one.totals.tobytes() == other.totals.tobytes()
