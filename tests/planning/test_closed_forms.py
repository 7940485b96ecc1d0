"""Closed forms: noise of a timestamp, detail a coarse grid loses, what privacy adds up to."""

import math

import numpy as np
import pytest

from retrasyn import METHODS, Box, Grid, StateSpace
from retrasyn.oracles.oue import OUE
from retrasyn.planning.closed_forms import (
    ENROLLED,
    FINEST,
    ExpectedNoise,
    expected_noise,
    lost_detail,
    totals,
)

MICRO = 1_000_000
PRIVATE = [row for row in METHODS.values() if row.division.private]


def noise_of(name, *, n_users=21_000, epsilon=MICRO, gap=21):
    return expected_noise(METHODS[name], n_users=n_users, epsilon=epsilon, gap=gap)


def test_steered_hears_everybody_once_per_gap_but_for_those_asked_something_else():
    noise = noise_of("steered")
    assert (noise.n_reports, noise.n_cell_reports) == pytest.approx((450, 450))
    assert noise.state_error == pytest.approx(math.sqrt(OUE(MICRO).variance(450)))
    assert noise.direct_error == pytest.approx(math.sqrt(OUE(MICRO).variance(450)))
    assert noise_of("uniform-p").direct_error == noise_of("uniform-b").direct_error == math.inf


def test_the_error_of_a_cell_weighs_those_who_tell_it_and_those_who_tell_their_state():
    states, noise = StateSpace(Grid(Box(0, 0, 1, 1), 6)), noise_of("steered")
    summed = ExpectedNoise(noise.n_reports, noise.epsilon, noise.state_error).cell_error(states)
    both = 1 / math.sqrt(1 / summed**2 + 1 / noise.direct_error**2)
    assert noise.cell_error(states) == pytest.approx(both)
    assert both < min(summed, noise.direct_error)
    assert noise_of("uniform-b", epsilon=20).cell_error(states) == math.inf


def test_dividing_epsilon_hears_everybody_with_a_part_of_it():
    noise = noise_of("uniform-b")
    assert noise.n_reports == 21_000
    assert noise.epsilon == pytest.approx(1 / 21, abs=1e-6)
    assert noise.state_error > noise_of("uniform-p").state_error


def test_the_absent_add_noise_where_presence_is_hidden():
    hidden, open_ = noise_of("steered-hidden"), noise_of("steered-length")
    less = 0.35 / 0.55  # a fifth tells its presence
    assert hidden.n_reports == pytest.approx(ENROLLED * less * open_.n_reports)
    ratio = (hidden.state_error / open_.state_error) ** 2
    assert ratio == pytest.approx(ENROLLED / less)


def test_a_budget_too_small_to_split_leaves_everything_unknown():
    noise = noise_of("uniform-b", epsilon=20)
    assert noise.state_error == math.inf
    assert math.isnan(noise_of("uniform-b").worth(noise))


def test_worth_counts_users():
    assert noise_of("steered", n_users=42_000).worth(noise_of("steered")) == pytest.approx(2)
    assert noise_of("steered", gap=42).worth(noise_of("steered")) == pytest.approx(0.5)


def test_the_error_of_a_cell_is_that_of_reports_drawn_and_added_up():
    states, n = StateSpace(Grid(Box(0, 0, 1, 1), 6)), 2_000
    generator, oracle = np.random.default_rng(1), OUE(MICRO)
    nobody = np.zeros(states.n_states, np.int64)
    drawn = [
        oracle.estimate(oracle.draw_counts(nobody, n, generator=generator)).frequencies
        for _ in range(400)
    ]
    inside = np.zeros((states.n_states, states.grid.n_cells))
    inside[np.arange(states.n_moves), states.destinations] = 1
    inside[states.n_moves + np.arange(states.grid.n_cells), np.arange(states.grid.n_cells)] = 1
    measured = math.sqrt(np.mean(np.square(np.array(drawn) @ inside)))
    noise = noise_of("uniform-p", n_users=n * 21)
    assert noise.cell_error(states) == pytest.approx(measured, rel=0.05)  # 14,400 draws


@pytest.mark.parametrize("row", PRIVATE, ids=lambda row: row.name)
def test_every_private_method_has_a_noise_that_falls_with_users_and_epsilon(row):
    def error(**means):
        return expected_noise(row, **({"n_users": 1_000, "epsilon": MICRO, "gap": 21} | means))

    now = error()
    assert 0 < now.state_error < math.inf
    assert error(n_users=4_000).state_error == pytest.approx(now.state_error / 2)
    assert error(epsilon=2 * MICRO).state_error < now.state_error < error(gap=42).state_error


@pytest.fixture
def lumpy():
    shares = np.random.default_rng(3).gamma(0.5, size=(FINEST, FINEST))
    return shares / shares.sum()


def divergence(one, other):
    middle = (one + other) / 2
    return sum(np.sum(side * np.log(side / middle)) for side in (one, other)) / 2


def in_blocks(fine, side):
    """Return the same map with every cell of a coarser grid levelled, by plain means."""
    size = FINEST // side
    means = fine.reshape(side, size, side, size).mean(axis=(1, 3))
    return np.kron(means, np.ones((size, size)))


@pytest.mark.parametrize("side", [2, 3, 4, 6, 8, 12])
def test_detail_is_the_divergence_from_levelled_cells(side, lumpy):
    assert lost_detail(lumpy, side) == pytest.approx(divergence(lumpy, in_blocks(lumpy, side)))


def test_a_finer_grid_loses_less_and_the_finest_nothing(lumpy):
    lost = [lost_detail(lumpy, side) for side in (2, 4, 8, 24)]
    assert lost == sorted(lost, reverse=True)
    assert lost[-1] == pytest.approx(0)


def test_a_grid_that_does_not_divide_the_finest_loses_about_as_much(lumpy):
    assert lost_detail(lumpy, 12) < lost_detail(lumpy, 10) < lost_detail(lumpy, 6)


def test_error_of_the_coarse_map_and_lost_detail_add_up(lumpy):
    coarse = in_blocks(lumpy, 6)
    wrong = 1 + 0.3 * np.random.default_rng(1).uniform(-1, 1, (6, 6))
    off = coarse * np.kron(wrong, np.ones((4, 4)))
    off /= off.sum()
    assert divergence(lumpy, off) == pytest.approx(
        divergence(coarse, off) + lost_detail(lumpy, 6), rel=0.02
    )


MINUTE = 60_000_000


def test_a_day_of_ten_minutes_touches_seven_gaps():
    day, week, month = totals(period=10 * MINUTE, epsilon=1.0, gap=21)
    assert (day.n_timestamps, day.n_windows, day.epsilon) == (144, 7, 7.0)
    assert (week.n_windows, month.n_windows) == (48, 206)


def test_a_report_costs_epsilon_however_rare_timestamps_are():
    day, _, month = totals(period=3 * 86_400_000_000, epsilon=0.5, gap=21)
    assert day.epsilon == month.epsilon == 0.5
    assert month.n_timestamps == 10


@pytest.mark.parametrize("gap", [2, 21, 1000])
def test_nobody_can_report_more_often_than_counted(gap):
    for total in totals(period=7 * MINUTE, epsilon=1.0, gap=gap):
        reports = range(0, total.n_timestamps, gap)  # as often as a rest of one gap allows
        assert len(reports) == total.n_windows
