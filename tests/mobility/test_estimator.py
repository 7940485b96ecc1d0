"""What the estimator remembers, trusts and says of its own errors, against plain loops."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from retrasyn.messages import Estimate
from retrasyn.mobility import estimator
from retrasyn.mobility.estimator import (
    FILTERS,
    KEPT,
    EndMemory,
    FlowMemory,
    Hypotheses,
    PresenceMemory,
    ReportSums,
    judged,
    mixed,
)
from retrasyn.oracles import OUE
from retrasyn.oracles.binary import BinaryResponse
from retrasyn.run_settings import MAX_EPSILON
from retrasyn.space import Box, Grid, StateSpace
from support.tuning import TUNING

N_EXAMPLES = 8  # fits in plain loops are slow
GROUPS = ("enter", "quit")
seeds = st.integers(0, 9999)
small = st.sampled_from([1, 2, 3])
numbers = st.one_of(st.just(0), st.integers(1, 900), st.just(40_000))
shares = st.sampled_from([0.05, 0.6, 1.0])


def space(side):
    return StateSpace(Grid(Box(0, 0, 1, 1), side))


def unfed(states):
    """Return a memory without reports, of somebody who has no map."""
    return FlowMemory(states, Hypotheses.of(states))


def heard(truth, n, epsilon, random):
    """Return an unbiased guess of the truth from n reports; None from nobody."""
    if n == 0:
        return None
    variance = OUE(int(epsilon * 1e6)).variance(n)
    noisy = truth + random.normal(0, math.sqrt(variance), len(truth))
    return Estimate(frequencies=noisy, variance=variance, n=n)


def as_plain(estimate):
    return None if estimate is None else (estimate.frequencies.tolist(), estimate.n)


def truth_on(states, random):
    """Return shares of moves, and of arrivals."""
    moves = random.dirichlet(np.full(states.n_moves, 0.3))
    return moves, np.bincount(states.destinations, moves, states.grid.n_cells)


def fed(states, sizes, *, epsilon=1.0, seed=0):
    """Return a memory that heard this many reports of each kind, one pair by timestamp."""
    memory, random = unfed(states), np.random.default_rng(seed)
    moves, cells = truth_on(states, random)
    for n_moves, n_cells in sizes:
        memory.update(
            heard(0.9 * moves, n_moves, epsilon, random),
            heard(cells, n_cells, epsilon, random),
            moving=0.9,
        )
        if memory.started:
            memory.fit()
    return memory


@settings(max_examples=N_EXAMPLES)
@given(
    side=small,
    epsilon=st.sampled_from([0.5, 1.0, 3.0]),
    rounds=st.lists(
        st.tuples(numbers, numbers, st.one_of(st.none(), shares), shares), min_size=1, max_size=4
    ),
    seed=seeds,
)
def test_flows_sums_and_trust_equal_the_plain_loop(side, epsilon, rounds, seed):
    states, random = space(side), np.random.default_rng(seed)
    memory, expected = unfed(states), naive.NaiveFlow(side, TUNING)
    v1 = naive.variance_of_one(epsilon)
    for n_moves, n_cells, moving, present in rounds:
        moves, cells = truth_on(states, random)
        moves = heard((moving or 0.5) * moves, n_moves, epsilon, random)
        cells = heard(present * cells, n_cells, epsilon, random)
        memory.update(moves, cells, moving=moving, present=present)
        expected.learn(as_plain(moves), as_plain(cells), moving, present, v1)
        for kind, sums in (("moves", memory.moves), ("cells", memory.arrivals)):
            np.testing.assert_allclose(sums.sums[0], expected.sums[kind], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(sums.weights[0], expected.weights[kind], rtol=1e-9)
        np.testing.assert_allclose(memory.trust, expected.trust, rtol=1e-5, atol=1e-9)
        if not memory.started:
            assert expected.weights["moves"] + expected.weights["cells"] == 0
            continue
        flow = memory.fit()
        found = flow.shares, flow.variances, flow.arrival_variances
        for ours, plain in zip(found, expected.fit(), strict=True):
            np.testing.assert_allclose(ours, plain, rtol=1e-5, atol=1e-9)
        assert flow.shares.sum() == pytest.approx(1.0)


def test_flows_of_six_cells_a_side_equal_the_plain_loop():
    states, random = space(6), np.random.default_rng(4)
    memory, expected = unfed(states), naive.NaiveFlow(6, TUNING)
    truth = truth_on(states, random)
    for _ in range(2):
        moves, cells = (heard(shares, 5_000, 1.0, random) for shares in truth)
        memory.update(moves, cells, moving=1.0)
        expected.learn(as_plain(moves), as_plain(cells), 1.0, 1.0, naive.variance_of_one(1.0))
        flow = memory.fit()
        found = flow.shares, flow.variances, flow.arrival_variances
        for ours, plain in zip(found, expected.fit(), strict=True):
            np.testing.assert_allclose(ours, plain, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("side", [1, 2, 6])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, MAX_EPSILON])
@pytest.mark.parametrize("n", [1, 10_000_000])
@pytest.mark.parametrize("kind", ["moves", "cells", "both"])
def test_no_epsilon_and_no_number_of_reports_make_anything_unknown(side, epsilon, n, kind):
    states, random = space(side), np.random.default_rng(1)
    truth = np.zeros(states.n_moves)
    truth[0] = 1.0  # all in one cell
    arriving = np.bincount(states.destinations, truth, states.grid.n_cells)
    memory = unfed(states)
    for _ in range(30):
        moves = None if kind == "cells" else heard(truth, n, epsilon, random)
        cells = None if kind == "moves" else heard(arriving, n, epsilon, random)
        memory.update(moves, cells, moving=1.0)
        flow = memory.fit()
        assert flow.shares.sum() == pytest.approx(1.0)
        assert memory.trust.sum() == pytest.approx(1.0)
        for found in (flow.shares, flow.variances, flow.arrival_variances):
            assert np.isfinite(found).all()
            assert (found >= 0).all()


def test_before_any_report_the_flow_is_that_of_the_prior():
    states = space(4)
    memory = unfed(states)
    assert not memory.started
    memory.update(None, None, moving=None)
    assert not memory.started
    expected = naive.move_shares([0.0] * 16 + list(TUNING.kinds), 4)
    for row in memory.shares:
        np.testing.assert_allclose(row, expected, rtol=1e-12)
    stays = states.origins == states.destinations
    assert memory.shares[0][stays].sum() > 0.5


def test_reports_of_moves_say_nothing_while_nobody_knows_how_many_move():
    states = space(2)
    memory, random = unfed(states), np.random.default_rng(1)
    memory.update(heard(truth_on(states, random)[0], 50, 1.0, random), None, moving=None)
    assert not memory.started


def test_without_new_reports_old_ones_fade_and_trust_stays():
    states = space(2)
    memory = fed(states, [(500, 500), (500, 500)])
    trust, weights = memory.trust.copy(), memory.moves.weights.copy()
    memory.update(None, None, moving=0.9)
    assert (memory.trust == trust).all()
    np.testing.assert_allclose(memory.moves.weights, KEPT * weights)


def test_what_was_reported_is_found():
    states, random = space(3), np.random.default_rng(8)
    heights = [*random.normal(0, 1, 9), -1.0, 0.2]
    moves = np.array(naive.move_shares(heights, 3))
    cells = np.array(naive.arriving(moves.tolist(), 3))
    memory = unfed(states)
    for _ in range(40):
        memory.update(
            heard(moves, 20_000, 2.0, random), heard(cells, 20_000, 2.0, random), moving=1.0
        )
        flow = memory.fit()
    arriving = np.bincount(states.destinations, flow.shares, 9)
    np.testing.assert_allclose(arriving, cells, atol=0.01)
    np.testing.assert_allclose(flow.shares, moves, atol=0.01)


def test_after_a_change_the_lively_filter_is_trusted():
    states = space(2)
    memory = unfed(states)
    for t in range(60):
        cells = np.array([0.7, 0.1, 0.1, 0.1] if t < 50 else [0.1, 0.1, 0.1, 0.7])
        variance = OUE(1_000_000).variance(5_000)
        memory.update(None, Estimate(frequencies=cells, variance=variance, n=5_000), moving=None)
        flow = memory.fit()
    assert memory.trust.argmax() == len(FILTERS) - 1
    assert memory.alarm == memory.trust.max()
    assert np.bincount(states.destinations, flow.shares, 4)[3] > 0.6


def test_the_narrowest_hypothesis_is_believed_while_reports_say_little_and_not_for_ever():
    states, n = space(6), 200_000
    few, many = fed(states, [(2, 2)] * 15), fed(states, [(n, n)] * 15)
    assert few.belief[-1] > 0.1
    assert many.belief[0] > 0.9
    assert many.belief[-1] < 1e-9


def test_without_reports_deviations_fade_and_become_as_uncertain_as_before_any():
    memory = fed(space(2), [(900, 900)] * 3)
    before = np.abs(memory.deviations).sum(axis=1)
    assert (before > 0).all()
    memory.update(None, None, moving=0.9)
    np.testing.assert_allclose(
        np.abs(memory.deviations).sum(axis=1), before * [kept for kept, _ in FILTERS]
    )
    for _ in range(2_000):
        memory.update(None, None, moving=0.9)
    for covariance, (_, width) in zip(memory.covariances, FILTERS, strict=True):
        np.testing.assert_allclose(covariance, width * np.eye(6), atol=1e-9)


def test_the_first_reports_of_all_tell_of_the_base_alone():
    memory = fed(space(2), [(10_000_000, 10_000_000)])
    assert not memory.deviations.any()
    assert memory.standard.any()


def test_the_better_predictor_is_trusted_more_and_the_worst_keeps_a_little():
    trust = judged(np.full(3, 1 / 3), np.array([9.0, 4.0, 1e9]), 2.0)
    assert trust[1] > trust[0] > trust[2] > 0
    assert trust.sum() == pytest.approx(1.0)
    expected = naive.judge([1 / 3] * 3, [9.0, 4.0, 1e9], 2.0, TUNING.shared)
    np.testing.assert_allclose(trust, expected, rtol=1e-12)


def test_equal_losses_leave_trust_nearly_as_it_was():
    trust = judged(np.array([0.9, 0.1]), np.array([5.0, 5.0]), 1.0)
    np.testing.assert_allclose(trust, [0.9, 0.1], atol=estimator._SHARED)


@given(st.integers(1, 12), st.sampled_from([1e-12, 1e-4, 1.0, 1e6]), seeds)
def test_variances_are_widened_as_in_the_plain_loop(n, size, seed):
    random = np.random.default_rng(seed)
    variances, given_ = size * random.random(n), random.dirichlet(np.full(n, 0.3))
    found = estimator._skewed(variances, given_)
    expected = naive.skewed(variances.tolist(), given_.tolist(), TUNING.most_relative)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (found >= variances).all()
    assert (found <= variances * math.exp(TUNING.most_relative) * (1 + 1e-12)).all()


def test_of_equally_uncertain_cells_the_quiet_one_is_not_widened_more_than_the_average():
    variances, given_ = np.full(4, 1e-3), np.array([0.0, 0.25, 0.25, 0.5])
    found = estimator._skewed(variances, given_)
    assert found[0] == found[1] == found[2] > found[3]


@given(st.integers(1, 5), st.floats(1e-3, 1e6), seeds)
def test_a_balanced_mean_is_the_nearest_with_the_sum_one(n, weight, seed):
    sums = ReportSums.empty(n, np.ones(1))
    np.testing.assert_allclose(sums.balanced()[0], 1 / n)  # nothing known
    assert sums.balanced()[1] == 0
    sums.sums[0], sums.weights[0] = np.random.default_rng(seed).normal(0, weight, n), weight
    mean, found = sums.balanced()
    assert found == weight
    assert mean.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(mean, naive.balanced_mean(sums.sums[0].tolist(), weight))
    assert np.ptp(mean - sums.sums[0] / weight) < 1e-9  # moved evenly


def test_a_share_weighs_as_least_squares_does():
    sums, random = ReportSums.empty(2, np.ones(1)), np.random.default_rng(1)
    truth, parts = np.array([0.3, 0.7]), [(40, 0.2), (7, 0.9), (100, 1.0)]
    seen = [part * truth + random.normal(0, 0.1, 2) for _, part in parts]
    for (n, part), y in zip(parts, seen, strict=True):
        sums.add(Estimate(frequencies=y, variance=1.0, n=n), part)
    above = sum(n * part * y for (n, part), y in zip(parts, seen, strict=True))
    below = sum(n * part**2 for n, part in parts)
    np.testing.assert_allclose(sums.sums[0] / sums.weights[0], above / below)


def test_a_copy_of_what_is_known_of_flows_goes_its_own_way():
    memory = fed(space(2), [(60, 40), (0, 9)])
    before = {name: array.copy() for name, array in memory.to_arrays().items()}
    twin = memory.copied()
    random = np.random.default_rng(2)
    twin.update(None, heard(np.full(4, 0.25), 900, 1.0, random), moving=0.9)
    twin.fit()
    for name, array in memory.to_arrays().items():
        assert array.tobytes() == before[name].tobytes(), name
    assert twin.shares.tobytes() != memory.shares.tobytes()


@pytest.mark.parametrize("sizes", [[], [(0, 5)], [(60, 40), (0, 9), (7, 0)]])
def test_flows_carried_over_as_arrays_go_on_alike(sizes):
    memory = fed(space(3), sizes)
    other = unfed(memory.states)
    other.load_arrays(memory.to_arrays())
    assert other.started == memory.started
    late = heard(np.full(9, 1 / 9), 30, 1.0, np.random.default_rng(7))
    for each in (memory, other):
        each.update(None, late, moving=0.9)
    one, two = memory.fit(), other.fit()
    assert one.shares.tobytes() == two.shares.tobytes()
    assert one.variances.tobytes() == two.variances.tobytes()
    assert one.arrival_variances.tobytes() == two.arrival_variances.tobytes()


totals = st.tuples(st.sampled_from([1e-3, 0.02, 0.4, 1.0]), st.sampled_from([1e-3, 0.1, 1.0]))


@settings(max_examples=40)
@given(
    side=st.integers(1, 4),
    sizes=st.lists(st.tuples(numbers, numbers, totals), min_size=1, max_size=5),
    present=st.sampled_from([0.3, 1.0]),
    alarm=st.sampled_from([0.0, 0.4, 1.0]),
    seed=seeds,
)
def test_ends_equal_the_plain_loop(side, sizes, present, alarm, seed):
    n_cells, random = side * side, np.random.default_rng(seed)
    ends, expected = EndMemory.empty(n_cells), naive.NaiveEnds(side)
    v1 = naive.variance_of_one(1.0)
    for *many, both in sizes:
        np.testing.assert_allclose(ends.totals(), list(expected.totals().values()), rtol=1e-7)
        for which, n in enumerate(many):
            if n:
                y = random.normal(0.05, math.sqrt(v1 / n), n_cells)
                ends.add(which, y, n, present)
                expected.add(GROUPS[which], y.tolist(), n, present)
        arriving = random.dirichlet(np.full(n_cells, 0.5))
        found = ends.fit(ends.follow(arriving, alarm), np.array(both), v1)
        plain = expected.fit(dict(zip(GROUPS, both, strict=True)), arriving.tolist(), v1, alarm)
        np.testing.assert_allclose(found, plain, rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(ends.tilt, expected.tilt, rtol=1e-7, atol=1e-12)
        assert found.sum() == pytest.approx(1.0)


def test_without_reports_people_enter_where_people_are():
    ends, arriving = EndMemory.empty(4), np.array([0.1, 0.2, 0.3, 0.4])
    around = ends.follow(arriving, 0.0)
    for _ in range(5):
        found = ends.fit(around, np.full(2, 0.02), 1.0)
    np.testing.assert_allclose(found, arriving)
    assert not ends.tilt.any()


def test_reports_of_entering_tilt_where_people_enter():
    ends, where = EndMemory.empty(4), np.array([0.7, 0.1, 0.1, 0.1])
    for which in (0, 1):
        ends.add(which, 0.1 * where, 10_000_000)
    around = ends.follow(np.full(4, 0.25), 0.0)
    for _ in range(20):
        found = ends.fit(around, np.full(2, 0.1), naive.variance_of_one(1.0))
    np.testing.assert_allclose(found, where, atol=0.03)
    np.testing.assert_allclose(ends.totals(), 0.1, atol=1e-6)


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e12])
def test_the_most_extreme_reports_of_ends_give_a_distribution(size):
    ends = EndMemory.empty(3)
    around = ends.follow(np.array([1.0, 0.0, 0.0]), 0.0)
    ends.add(0, np.array([-size, size, 0.0]), 1_000_000)
    for _ in range(30):
        found = ends.fit(around, np.array([1.0, 1e-3]), 1e-16)
        assert found.sum() == pytest.approx(1.0)
        assert (found >= 0).all()


def test_a_copy_of_what_is_known_of_ends_goes_its_own_way():
    ends = EndMemory.empty(2)
    ends.add(0, np.array([0.3, 0.1]), 500)
    ends.fit(ends.follow(np.array([0.5, 0.5]), 0.5), np.full(2, 0.1), 1.0)
    before = {name: array.copy() for name, array in ends.to_arrays().items()}
    twin = ends.copied()
    twin.add(1, np.array([0.0, 1.0]), 500)
    twin.fit(twin.follow(np.array([1.0, 0.0]), 0.5), np.full(2, 0.1), 1.0)
    for name, array in ends.to_arrays().items():
        assert array.tobytes() == before[name].tobytes(), name


@pytest.mark.parametrize("followed", [False, True])
def test_ends_carried_over_as_arrays_go_on_alike(followed):
    one, other = EndMemory.empty(2), EndMemory.empty(2)
    one.add(0, np.array([0.3, 0.1]), 500)
    if followed:
        one.fit(one.follow(np.array([0.5, 0.5]), 0.5), np.full(2, 0.1), 1.0)
    other.load_arrays(one.to_arrays())
    found = [
        ends.fit(ends.follow(np.array([0.9, 0.1]), 0.5), np.full(2, 0.1), 1.0)
        for ends in (one, other)
    ]
    assert found[0].tobytes() == found[1].tobytes()


def test_after_a_sudden_change_people_end_where_they_are_now():
    ends, now = EndMemory.empty(2), np.array([0.1, 0.9])
    ends.follow(np.array([0.9, 0.1]), 0.0)
    assert ends.follow(now, 1.0).tolist() == now.tolist()
    assert ends.follow(now, 0.0)[0] > 0.8


@given(st.lists(st.tuples(st.integers(1, 5_000), st.floats(-0.5, 1.5)), max_size=8))
def test_presence_equals_the_plain_loop(reports):
    presence, expected = PresenceMemory(), naive.NaivePresence(TUNING)
    binary = BinaryResponse(1_000_000)
    for n, y in reports:
        presence.update(Estimate(frequencies=np.array([y]), variance=binary.variance(n), n=n))
        expected.learn(y, n, binary.variance(n) * n)
        np.testing.assert_allclose(presence.trust, expected.trust, rtol=1e-7, atol=1e-12)
        assert presence.share == pytest.approx(expected.share(), abs=1e-9)
    assert presence.started == bool(reports)
    assert 0 <= presence.share <= 1


def test_presence_follows_who_comes_and_goes():
    presence, binary = PresenceMemory(), BinaryResponse(1_000_000)
    for t in range(60):
        y = np.array([0.9 if t < 45 else 0.2])
        presence.update(Estimate(frequencies=y, variance=binary.variance(4_000), n=4_000))
    assert presence.share == pytest.approx(0.2, abs=0.03)


def test_presence_is_copied_and_carried_over():
    presence, other = PresenceMemory(), PresenceMemory()
    one = Estimate(frequencies=np.array([0.4]), variance=0.1, n=9)
    presence.update(one)
    before = presence.share
    twin = presence.copied()
    twin.update(Estimate(frequencies=np.array([0.9]), variance=0.1, n=900))
    assert presence.share == before != twin.share
    other.load_arrays(presence.to_arrays())
    for each in (presence, other):
        each.update(one)
    assert other.share == presence.share


def test_a_map_is_believed_as_far_as_reports_speak_for_it():
    hypotheses = Hypotheses.of(space(2), np.array([0.1, 0.2, 0.3, 0.4]))
    n = len(hypotheses.priors)
    even = hypotheses.believed(np.zeros(n))
    against, speaking = (hypotheses.believed(np.append(np.zeros(n - 1), e)) for e in (-3.0, 3.0))
    assert [each.sum() for each in (even, against, speaking)] == pytest.approx([1.0] * 3)
    assert against[-1] == 0.0, "it does no harm"
    assert 0.0 < even[-1] < 0.5 < speaking[-1] < 1.0
    assert even[-1] == pytest.approx((0.5 - estimator._UNPROVEN) / (1 - estimator._UNPROVEN))
    odd = hypotheses.believed(np.array([-1e4, -1e4 + 1, -1e4, -3e4]))
    np.testing.assert_allclose(odd, [*naive.share([1, math.e, 1]), 0.0])


def test_without_a_map_hypotheses_are_believed_by_how_likely_they_make_the_reports():
    hypotheses = Hypotheses.of(space(2))
    np.testing.assert_allclose(
        hypotheses.believed(np.log([1.0, 2.0, 5.0]) + 1e3), np.array([1, 2, 5]) / 8
    )


def test_hypotheses_together_expect_the_mean_share_of_every_cell():
    heights = [np.array([0.0, 2.0, 1.0, -3.0, -6.0]), np.array([5.0, 1.0, 9.0, -2.0, -5.0])]
    together = mixed(heights, np.array([0.25, 0.75]))
    shares = [np.exp(each[:3]) / np.exp(each[:3]).sum() for each in heights]
    expected = 0.25 * shares[0] + 0.75 * shares[1]
    np.testing.assert_allclose(np.exp(together[:3]) / np.exp(together[:3]).sum(), expected)
    assert together[:3].mean() == pytest.approx(0.0)
    np.testing.assert_allclose(together[3:], [-2.25, -5.25])


def replica_of(memory, seed=0):
    """Return a replica of an estimator that has heard the same, and what it follows."""
    twin = FlowMemory(memory.states, memory.hypotheses.drawn(np.random.default_rng(seed)))
    twin.begin_apart(np.random.default_rng(seed))
    twin.follow(memory, np.random.default_rng(seed))
    return twin


def test_a_replica_follows_one_filter_by_trust_and_the_hypothesis_that_supposes_least():
    memory = fed(space(4), [(400, 400)] * 5)
    chosen = np.array([replica_of(memory, seed).lead.trust for seed in range(300)])
    assert (chosen.sum(axis=1) == 1.0).all()
    margin = 4.5 * np.sqrt(memory.trust * (1 - memory.trust) / 300)
    assert (np.abs(chosen.mean(axis=0) - memory.trust) <= margin).all()
    assert replica_of(memory).lead.belief.tolist() == [1.0, 0.0, 0.0]


def test_replicas_lie_as_far_from_the_estimator_as_it_says_that_it_may_err():
    """Arrivals after ten timestamps: root mean square over 60 replicas, mean of all cells."""
    states, sizes = space(4), [(2_000, 2_000)] * 10
    memory, random = fed(states, sizes), np.random.default_rng(7)
    flow, found = memory.fit(), []
    for seed in range(60):
        main = unfed(states)
        reports = np.random.default_rng(0)
        moves, cells = truth_on(states, reports)
        twin = replica_of(main, seed)
        for n_moves, n_cells in sizes:
            told = [heard(0.9 * moves, n_moves, 1.0, reports), heard(cells, n_cells, 1.0, reports)]
            main.update(*told, moving=0.9)
            main.fit()
            twin.follow(main, random)
            spread = np.sqrt(told[0].variance)
            again = [
                replace(one, frequencies=random.normal(one.frequencies, spread)) for one in told
            ]
            twin.update(*again, moving=0.9)
            found_flow = twin.fit()
        assert found_flow.variances.size == 0
        found.append(memory.arriving(found_flow.shares) - memory.arriving(flow.shares))
    ours, said = np.sqrt(np.mean(np.square(found))), np.sqrt(flow.arrival_variances.mean())
    assert 0.6 * said <= ours <= 1.6 * said


def test_only_a_replica_follows():
    memory = unfed(space(2))
    with pytest.raises(AssertionError, match="only a replica follows"):
        memory.follow(memory, np.random.default_rng(0))
