"""The kernels of the log-linear model against plain loops in the space of cells."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from retrasyn.mobility import estimator, kernels
from retrasyn.mobility.estimator import Hypotheses, Prior
from retrasyn.space import Box, Grid, StateSpace
from support.tuning import TUNING

N_EXAMPLES = 15  # matrices in plain loops are slow
MANY_ROUNDS = 60
seeds = st.integers(0, 9999)
small = st.sampled_from([1, 2, 3])
levels = st.integers(0, 1)
weights = st.sampled_from([0.0, 0.3, 50.0, 1e4, 1e6])


FIELDS = (TUNING.field, TUNING.deviation_field)  # of the base, and of deviations from it
KINDS = (TUNING.kind_spreads, TUNING.kind_deviations)


def prior_on(side, level=0):
    return Prior.of_deviations(side) if level else Prior.of(side)


def moves_on(side):
    return Hypotheses.of(StateSpace(Grid(Box(0, 0, 1, 1), side))).moves


def precision_of(side, level):
    return naive.prior_precision(side, FIELDS[level], KINDS[level])


def shares_at(heights, side):
    """Return the shares of all moves."""
    shares = np.empty(len(moves_on(side)))
    kernels.shares_of(heights, moves_on(side), shares)
    return shares


def variances_of(shares, prior, hessian, side):
    """Return what a curvature leaves open of moves and of arrivals."""
    of_moves, of_arrivals = np.zeros(shares.size), np.zeros(side * side)
    covariance = kernels.covariance_of(hessian, prior.spreads)
    kernels.add_variances(shares, moves_on(side), prior.modes, covariance, of_moves, of_arrivals)
    return of_moves, of_arrivals


def close(found, expected, rtol=1e-7):
    """Compare, however large the numbers: to that part of the largest one."""
    most = np.abs(expected).max() if np.size(expected) else 0.0
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * most + 1e-12)


def reports_on(side, weight, arrival_weight, seed):
    """Return noisy means of both kinds of reports, as they are once they are balanced."""
    random = np.random.default_rng(seed)
    moves = naive.grid_moves(side)
    truth = random.dirichlet(np.full(len(moves), 0.3))
    noisy = truth + random.normal(0, min((weight + 1e-9) ** -0.5, 1.0), truth.size)
    cells = np.array(naive.arriving(truth.tolist(), side))
    cells += random.normal(0, min((arrival_weight + 1e-9) ** -0.5, 1.0), cells.size)
    return naive.Reports(
        naive.balanced_mean(noisy.tolist(), 1.0 if weight else 0.0),
        weight,
        naive.balanced_mean(cells.tolist(), 1.0 if arrival_weight else 0.0),
        arrival_weight,
    )


def heights_on(side, seed):
    """Return heights of cells and of kinds of move."""
    return np.random.default_rng(seed).normal(0, 1.5, side * side + 2)


def in_cells(prior, vectors):
    """Return what parameters [n, n_modes + 2] do in the space of cells [n, n_cells + 2]."""
    n_modes = prior.modes.shape[1]
    return np.hstack([vectors[:, :n_modes] @ prior.modes.T, vectors[:, n_modes:]])


def fitted(prior, reports, rounds, base=None, standard=None):
    """Run the kernel; return heights, shares and curvature."""
    n_parameters, side = prior.spreads.size, math.isqrt(prior.base.size - 2)
    heights, hessian = np.empty(prior.base.size), np.empty((n_parameters, n_parameters))
    kernels.fit(
        prior.base if base is None else base,
        prior.modes,
        prior.spreads,
        moves_on(side),
        np.array(reports.moves),
        reports.weight,
        np.array(reports.arrivals),
        reports.arrival_weight,
        rounds,
        np.zeros(n_parameters) if standard is None else standard,
        heights,
        hessian,
    )
    return heights, shares_at(heights, side), hessian


@given(st.sampled_from([1, 2, 3, 6]), seeds)
def test_shares_of_moves_equal_the_plain_loop(side, seed):
    heights = heights_on(side, seed)
    close(shares_at(heights, side), naive.move_shares(heights.tolist(), side), 1e-12)


@pytest.mark.parametrize("steep", [1e3, -1e3, 1e9])
def test_shares_of_the_steepest_heights_are_finite_and_sum_to_one(steep):
    heights = np.zeros(11)
    heights[4] = steep
    shares = shares_at(heights, 3)
    assert shares.sum() == pytest.approx(1.0)
    assert (shares >= 0).all()


@given(small, seeds)
def test_slopes_of_the_plain_loop_are_those_of_its_shares(side, seed):
    theta, step = heights_on(side, seed), 1e-6
    slopes = np.array(naive.share_slopes(naive.move_shares(theta.tolist(), side), side))
    for k in range(theta.size):
        moved = np.eye(theta.size)[k] * step
        above, below = (
            np.array(naive.move_shares((theta + sign * moved).tolist(), side)) for sign in (1, -1)
        )
        np.testing.assert_allclose((above - below) / (2 * step), slopes[:, k], atol=1e-8)


@settings(max_examples=N_EXAMPLES)
@given(small, levels, st.sampled_from([0.0, 3.0, 400.0]), st.sampled_from([0.0, 3.0, 400.0]), seeds)
def test_the_gradient_of_the_plain_loop_is_that_of_its_posterior(
    side, level, weight, arrival_weight, seed
):
    reports, theta = reports_on(side, weight, arrival_weight, seed), heights_on(side, seed + 1)
    base, precision, step = heights_on(side, seed + 2).tolist(), precision_of(side, level), 1e-5
    slope = naive.posterior_slope(theta.tolist(), base, precision, reports, side)
    for k in range(theta.size):
        moved = np.eye(theta.size)[k] * step
        above, below = (
            naive.log_posterior((theta + sign * moved).tolist(), base, precision, reports, side)
            for sign in (1, -1)
        )
        assert (above - below) / (2 * step) == pytest.approx(slope[k], rel=1e-4, abs=1e-4)


@settings(max_examples=N_EXAMPLES)
@given(st.sampled_from([1, 2, 3, 6]), weights, weights, seeds)
def test_curvature_and_slopes_equal_the_plain_loop(side, weight, arrival_weight, seed):
    prior, theta = prior_on(side), heights_on(side, seed)
    shares, n = shares_at(theta, side), prior.spreads.size
    hessian, mean, slopes = np.empty((n, n)), np.empty(n), np.empty((side * side, n))
    kernels.curvature(
        shares, moves_on(side), prior.modes, weight, arrival_weight, hessian, mean, slopes
    )
    reports = reports_on(side, weight, arrival_weight, seed)
    there = in_cells(prior, in_cells(prior, hessian).T)
    close(there, naive.report_curvature(theta.tolist(), reports, side))
    by_move = naive.share_slopes(shares.tolist(), side)
    arriving = np.array(naive.arriving(shares.tolist(), side))
    mean_effect = shares @ np.array(naive.effects(side))
    close(in_cells(prior, mean[None])[0], mean_effect, 1e-10)
    without_common = naive.arriving_slopes(by_move, side) + np.outer(arriving, mean_effect)
    close(in_cells(prior, slopes), without_common, 1e-10)


@settings(max_examples=N_EXAMPLES)
@given(small, levels, weights, weights, st.sampled_from([1, 2, 6]), seeds)
def test_the_fit_equals_the_plain_loop_round_by_round(
    side, level, weight, arrival_weight, rounds, seed
):
    prior, reports = prior_on(side, level), reports_on(side, weight, arrival_weight, seed)
    base = heights_on(side, seed + 1)
    standard = np.random.default_rng(seed).normal(0, 0.3, prior.spreads.size)
    moved = in_cells(prior, (standard * prior.spreads)[None])[0]
    heights, shares, hessian = fitted(prior, reports, rounds, base, standard)
    expected = naive.most_probable(
        base.tolist(),
        (base + moved).tolist(),
        precision_of(side, level),
        reports,
        side,
        TUNING,
        rounds,
    )
    close(heights, expected.theta, 1e-6)
    close(shares, naive.move_shares(expected.theta, side), 1e-6)
    close(in_cells(prior, in_cells(prior, hessian).T), expected.curvature, 1e-6)
    kept = in_cells(prior, (standard * prior.spreads)[None])[0]
    close(base + kept, heights, 1e-9)


@pytest.mark.parametrize("few_or_many", [30.0, 3e5])
def test_the_fit_of_six_cells_a_side_equals_the_plain_loop(few_or_many):
    prior, reports = prior_on(6), reports_on(6, few_or_many, 2 * few_or_many, 5)
    heights, _, _ = fitted(prior, reports, 3)
    base = prior.base.tolist()
    expected = naive.most_probable(base, base, precision_of(6, 0), reports, 6, TUNING, 3)
    close(heights, expected.theta, 1e-6)


@settings(max_examples=N_EXAMPLES)
@given(small, levels, weights, weights, seeds)
def test_reports_that_the_model_can_explain_lead_to_the_most_probable_parameters(
    side, level, weight, arrival_weight, seed
):
    prior = prior_on(side, level)
    random = np.random.default_rng(seed)
    truth = prior.base + random.normal(0, 0.5, prior.base.size)
    shares = naive.move_shares(truth.tolist(), side)
    reports = naive.Reports(shares, weight, naive.arriving(shares, side), arrival_weight)
    heights, _, _ = fitted(prior, reports, MANY_ROUNDS)
    base, precision = prior.base.tolist(), precision_of(side, level)
    here = naive.log_posterior(heights.tolist(), base, precision, reports, side)
    for size in (0.2, 1.0):
        near = heights + random.normal(0, size, heights.size)
        assert naive.log_posterior(near.tolist(), base, precision, reports, side) < here


def test_without_reports_the_fit_stays_at_the_prior():
    prior = prior_on(3)
    heights, shares, hessian = fitted(prior, reports_on(3, 0.0, 0.0, 1), 6)
    close(heights, prior.base, 1e-12)
    close(shares, naive.move_shares(prior.base.tolist(), 3), 1e-12)
    assert not hessian.any()


@settings(max_examples=N_EXAMPLES)
@given(small, levels, weights, weights, seeds)
def test_variances_are_what_the_curvature_leaves_open(side, level, weight, arrival_weight, seed):
    prior, theta = prior_on(side, level), heights_on(side, seed)
    shares, n = shares_at(theta, side), prior.spreads.size
    hessian = np.empty((n, n))
    kernels.curvature(
        shares,
        moves_on(side),
        prior.modes,
        weight,
        arrival_weight,
        hessian,
        np.empty(n),
        np.empty((side * side, n)),
    )
    found = variances_of(shares, prior, hessian, side)
    reports = reports_on(side, weight, arrival_weight, seed)
    curvature = naive.report_curvature(theta.tolist(), reports, side)
    covariance = naive.inverse(naive.plus(curvature, precision_of(side, level)))
    for ours, plain in zip(
        found, naive.share_variances(shares.tolist(), covariance, side), strict=True
    ):
        close(ours, plain, 1e-6)
        assert (ours >= 0).all()


def test_the_more_is_reported_the_less_is_left_open():
    prior = prior_on(4)
    found = []
    for weight in (1.0, 1e2, 1e4):
        _, shares, hessian = fitted(prior, reports_on(4, weight, weight, 2), MANY_ROUNDS)
        found.append(variances_of(shares, prior, hessian, 4)[1].mean())
    assert found[0] > found[1] > found[2]


@pytest.mark.parametrize("side", [1, 2, 6, 10, 12])
def test_modes_are_orthonormal_and_as_many_as_can_be_told_apart(side):
    prior = prior_on(side)
    n_modes = min(side * side, estimator.MOST_MODES)
    assert prior.modes.shape == (side * side, n_modes)
    assert prior.spreads.shape == (n_modes + 2,)
    np.testing.assert_allclose(prior.modes.T @ prior.modes, np.eye(n_modes), atol=1e-12)


def test_above_nine_cells_a_side_there_are_fewer_modes_than_cells():
    assert prior_on(9).modes.shape == (81, 81)
    assert prior_on(10).modes.shape == (100, 81)


@pytest.mark.parametrize("side", [1, 2, 3, 6])
def test_all_modes_together_have_the_variance_of_the_field(side):
    for level, (variance, _, nugget) in enumerate(FIELDS):
        prior = prior_on(side, level)
        cells = (prior.modes * prior.spreads[:-2]) ** 2
        assert cells.sum() == pytest.approx((variance + nugget) * side * side)


@pytest.mark.parametrize("side", [1, 2, 3, 6])
def test_every_wave_keeps_the_variance_that_the_field_gives_it(side):
    for level in (0, 1):
        prior = prior_on(side, level)
        scaled = prior.modes * prior.spreads[:-2]
        expected = sum(
            naive.wave_variance(wave, FIELDS[level], side) * np.outer(wave, wave)
            for wave in naive.waves(side)
        )
        np.testing.assert_allclose(scaled @ scaled.T, expected, atol=1e-12)
        assert tuple(prior.spreads[-2:]) == KINDS[level]


def test_on_fine_grids_the_smoothest_waves_are_kept():
    prior = prior_on(10)
    row, column = np.divmod(np.arange(100), 10)

    def wave(up, across):
        up, across = up * (row + 0.5), across * (column + 0.5)
        return np.cos(math.pi * up / 10) * np.cos(math.pi * across / 10)

    smooth, rough = wave(2, 3), wave(9, 9)
    np.testing.assert_allclose(prior.modes @ (prior.modes.T @ smooth), smooth, atol=1e-12)
    np.testing.assert_allclose(prior.modes.T @ rough, 0.0, atol=1e-12)


def test_on_fine_grids_the_fit_is_the_most_probable_sum_of_modes():
    prior, random = prior_on(10), np.random.default_rng(3)
    n = prior.spreads.size
    truth = np.append(random.normal(0, 1, n - 2), [0.5, -0.5]) * prior.spreads
    shares = shares_at(prior.base + in_cells(prior, truth[None])[0], 10)
    reports = naive.Reports(shares.tolist(), 1e6, naive.arriving(shares.tolist(), 10), 1e6)
    standard = np.zeros(n)
    fitted(prior, reports, MANY_ROUNDS, standard=standard)

    def log_posterior(standard):
        said = shares_at(prior.base + in_cells(prior, (standard * prior.spreads)[None])[0], 10)
        arriving = np.bincount(moves_on(10)[:, 1], said - shares, 100)
        off = ((said - shares) ** 2).sum() + (arriving**2).sum()
        return -0.5 * (standard**2).sum() - 0.5e6 * off

    for k in range(0, n, 7):
        moved = np.eye(n)[k] * 1e-4
        slope = (log_posterior(standard + moved) - log_posterior(standard - moved)) / 2e-4
        assert slope == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize("side", [1, 2, 6])
@pytest.mark.parametrize("weight", [1e-30, 1.0, 1e9, 1e16, 1e24])
@pytest.mark.parametrize("kind", ["both", "moves", "arrivals"])
def test_the_most_extreme_reports_give_finite_shares_that_sum_to_one(side, weight, kind):
    prior = prior_on(side)
    all_in_one = np.zeros(len(moves_on(side)))
    all_in_one[0] = 1.0
    everywhere = np.full(all_in_one.size, 1 / all_in_one.size)
    far_off = everywhere + 1e3 * np.linspace(-1, 1, all_in_one.size)
    for seen in (all_in_one, everywhere, far_off):
        reports = naive.Reports(seen.tolist(), weight, naive.arriving(seen.tolist(), side), weight)
        if kind == "moves":
            reports = dataclasses.replace(reports, arrival_weight=0.0)
        if kind == "arrivals":
            reports = dataclasses.replace(reports, weight=0.0)
        standard = np.zeros(prior.spreads.size)
        for _ in range(20):  # timestamps
            _, shares, hessian = fitted(prior, reports, 2, standard=standard)
            assert np.isfinite(shares).all()
            assert shares.sum() == pytest.approx(1.0)
        for found in variances_of(shares, prior, hessian, side):
            assert np.isfinite(found).all()
            assert (found >= 0).all()


def test_all_mass_in_one_cell_is_found_there():
    prior = prior_on(3)
    shares = np.zeros(len(moves_on(3)))
    shares[(moves_on(3)[:, :2] == 4).all(axis=1)] = 1.0
    reports = naive.Reports(shares.tolist(), 1e5, naive.arriving(shares.tolist(), 3), 1e5)
    _, found, _ = fitted(prior, reports, MANY_ROUNDS)
    assert naive.arriving(found.tolist(), 3)[4] > 0.97
