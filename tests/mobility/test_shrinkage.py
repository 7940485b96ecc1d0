"""Empirical Bayes against plain loops: cells, directions, density, endpoints."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive
from retrasyn.mechanisms.filtered import _balanced
from retrasyn.mobility import estimator, kernels
from retrasyn.mobility.estimator import ShrinkageMemory
from retrasyn.space import Box, Grid, StateSpace

N_EXAMPLES = 25  # EM in plain loops is slow
sides = st.integers(1, 6)
seeds = st.integers(0, 9999)
noises = st.sampled_from([1e-6, 1e-4, 1e-2, 1.0])


def grid_of(side):
    return Grid(Box(0, 0, 1, 1), side)


def readings(side, noise, seed):
    """Return noisy frequencies of moves, [n_cells, 9], zero where there is no neighbour."""
    random = np.random.default_rng(seed)
    near = grid_of(side).neighbour_table >= 0
    truth = near * random.gamma(0.5, size=near.shape[:1])[:, None] * random.random(9)
    return near * (truth / truth.sum() + random.normal(0, noise**0.5, near.shape))


def uniform_priors(n):
    return np.full((n, kernels.N_POINTS), 1 / kernels.N_POINTS)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=N_EXAMPLES)
@given(
    st.integers(1, 30),
    st.sampled_from([0.0, 1e-9, 0.3, 1.2, 8.0]),
    st.sampled_from([1e-6, 1e-2, 1.0, np.inf]),
    st.integers(0, 25),
    seeds,
)
def test_npmle_equals_the_plain_loop(n, top, variance, rounds, seed):
    random = np.random.default_rng(seed)
    y = random.normal(0.1, 0.3, n)
    scale = random.random(n) * (random.random(n) < 0.9)  # some say nothing of theta
    variances = variance * (1 + random.random(n))
    prior = random.dirichlet(np.ones(kernels.N_POINTS))
    expected = naive.npmle(
        y.tolist(), scale.tolist(), variances.tolist(), top, prior.tolist(), rounds
    )
    mean, spread = np.empty(n), np.empty(n)
    kernels.npmle(y, scale, variances, top, prior, rounds, mean, spread)
    close(mean, expected.mean)
    np.testing.assert_allclose(spread, expected.variance, rtol=1e-6, atol=1e-12)  # a difference
    close(prior, expected.prior)
    assert (mean >= 0).all()


@given(sides, noises, seeds)
def test_the_rank_one_fit_equals_the_plain_loop(side, noise, seed):
    slow = readings(side, noise, seed)
    table = grid_of(side).neighbour_table
    d, kappa = np.empty(side * side), np.full(9, 1 / 9)
    kernels.rank_one(slow, table, kappa, d)
    expected_d, expected_kappa = naive.rank_one(slow.tolist(), table.tolist())
    close(d, expected_d)
    close(kappa, expected_kappa)


@settings(max_examples=N_EXAMPLES)
@given(sides, noises, noises, st.sampled_from([0.0, 0.5, 20.0]), seeds)
def test_moves_are_shrunk_as_the_plain_loop_does(side, fast_noise, slow_noise, leaving, seed):
    fast, slow = readings(side, fast_noise, seed), readings(side, slow_noise, seed + 1)
    grid, priors = grid_of(side), uniform_priors(5)
    kernel, kernel_variance = np.empty((2, grid.n_cells, 9))
    density, variance = np.empty(grid.n_cells), np.empty(grid.n_cells)
    kernels.shrink_moves(
        fast, fast_noise, slow, slow_noise, grid.neighbour_table, priors, 25, leaving, kernel,
        kernel_variance, density, variance,
    )  # fmt: skip
    _assume_not_far(slow, slow_noise, leaving)
    expected = naive.empirical_bayes_movement(
        (fast.tolist(), fast_noise), (slow.tolist(), slow_noise), side, leaving_error=leaving
    )
    close(kernel, expected.kernel)
    np.testing.assert_allclose(kernel_variance, expected.kernel_variance, rtol=1e-6, atol=1e-9)
    close(density, expected.density)
    np.testing.assert_allclose(variance, expected.density_variance, rtol=1e-6, atol=1e-12)
    close(priors, expected.priors)
    close(kernel.sum(axis=1), 1.0)
    close(density.sum(), 1.0)


def _assume_not_far(slow, variance, leaving_error):
    """Leave out where the kernel takes a limit of the truncated mean."""
    total = slow.sum()
    if leaving_error > 0 and total > 0:
        error = (leaving_error * variance) ** 0.5 / total
        assume((total - slow[:, 4].sum()) / total / error > -20)


@pytest.mark.parametrize("side", [1, 2, 5])
@pytest.mark.parametrize("variance", [1.0, np.inf])
def test_nothing_known_gives_a_uniform_density_and_positive_moves(side, variance):
    nothing = np.zeros((side * side, 9))
    moves = ShrinkageMemory().shrink_moves((nothing, variance), (nothing, variance), grid_of(side))
    close(moves.density, 1 / side**2)
    near = grid_of(side).neighbour_table >= 0
    assert (moves.kernel[near] > 0).all()
    assert (moves.kernel[~near] == 0).all()


@settings(max_examples=10)
@given(st.integers(1, 4), noises, seeds)
def test_a_memory_goes_on_from_the_priors_before(side, noise, seed):
    memory, grid = ShrinkageMemory(), grid_of(side)
    priors = uniform_priors(5).tolist()
    kept = estimator._KEPT
    for t in range(3):
        fast, slow = readings(side, noise, seed), readings(side, noise, seed + t)
        moves = memory.shrink_moves((fast, noise), (slow, noise), grid)
        begin = [[kept * p + (1 - kept) / 40 for p in prior] for prior in priors]
        expected = naive.empirical_bayes_movement(
            (fast.tolist(), noise), (slow.tolist(), noise), side,
            priors=begin, rounds=estimator._WARM_ROUNDS,
        )  # fmt: skip
        close(moves.kernel, expected.kernel)
        close(moves.mass, expected.mass)
        priors = expected.priors


@given(sides, st.lists(seeds, min_size=1, max_size=4))
def test_the_slow_density_follows_origins_and_destinations(side, many):
    memory, grid, expected = ShrinkageMemory(), grid_of(side), None
    for seed in many:
        near = grid.neighbour_table >= 0
        mass = near * np.random.default_rng(seed).random(near.shape)
        mass /= mass.sum()
        found = memory.follow(mass, grid)
        expected = naive.update_obar(expected, mass.tolist(), side)
        close(found, expected)
        close(memory.slow_density, expected)


totals = st.one_of(
    st.none(),
    st.tuples(st.sampled_from([0.0, 1e-4, 0.05, 1.0]), st.sampled_from([-0.1, 0.02, 1.0])),
)


@settings(max_examples=N_EXAMPLES)
@given(sides, st.sampled_from([1e-5, 1e-2, 1e6]), totals, seeds)
def test_endpoints_are_drawn_towards_the_density_as_in_the_plain_loop(side, noise, given_, seed):
    random = np.random.default_rng(seed)
    density = random.dirichlet(np.ones(side * side))
    x = {name: random.normal(0.02, noise**0.5, side * side) for name in ("enter", "quit")}
    if noise == 1e6:  # nobody was asked yet
        x["enter"][:] = 0.0
    memory = ShrinkageMemory(density)
    known = None if given_ is None else np.array(given_)
    found = memory.shrink_endpoints((x["enter"], noise), (x["quit"], 2 * noise), known)
    expected = naive.endpoints(
        {name: values.tolist() for name, values in x.items()},
        {"enter": noise, "quit": 2 * noise},
        density.tolist(),
        None if given_ is None else {"enter": given_[0], "quit": given_[1]},
    )
    close(found[0], expected["enter"])
    close(found[1], expected["quit"])
    assert min(found[0].min(), found[1].min()) >= 0


@given(sides, noises, st.floats(-0.5, 1.0), seeds)
def test_a_table_is_moved_to_a_known_sum_in_least_squares(side, noise, whole, seed):
    table = readings(side, noise, seed)
    found, variance = _balanced((table, noise), whole, StateSpace(grid_of(side)))
    close(found, naive.balance(table.tolist(), whole, side))
    close(found.sum(), whole)
    assert variance == noise
    near = grid_of(side).neighbour_table >= 0
    assert (found[~near] == 0).all()
    change = np.ptp((found - table)[near])  # orthogonal to all tables that sum to zero
    assert change < 1e-9


@given(st.floats(-20, 30), st.floats(1e-6, 1e3))
def test_the_mean_of_what_is_positive_equals_the_integral(z, error):
    found = kernels.positive_mean(z * error, error)
    assert found == pytest.approx(naive.positive_mean(z * error, error), rel=1e-8)
    assert found > 0


@given(st.floats(-500, -20.001))
def test_far_below_zero_the_mean_of_what_is_positive_takes_its_limit(z):
    assert kernels.positive_mean(z, 1.0) == pytest.approx(naive.positive_mean(z, 1.0), rel=0.006)


def kernels_of(side, random):
    near = grid_of(side).neighbour_table >= 0
    kernel = near * random.random(near.shape) ** 3
    kernel[:, 4] += random.random(len(kernel)) * 5
    return kernel / kernel.sum(axis=1, keepdims=True)


@given(sides, noises, st.sampled_from([0.1, 5.0]), seeds)
def test_leaving_is_brought_within_a_standard_error_of_the_sums(side, noise, leaving_error, seed):
    random = np.random.default_rng(seed)
    slow = readings(side, noise, seed)
    _assume_not_far(slow, noise, leaving_error)
    kernel = kernels_of(side, random)
    weights = random.random(side * side) * (seed % 10 > 0)
    expected = naive.calibrate(
        kernel.tolist(), weights.tolist(), slow.tolist(), noise, leaving_error
    )
    kernels.calibrate(kernel, grid_of(side).neighbour_table, weights, slow, noise, leaving_error)
    close(kernel, expected)
    close(kernel.sum(axis=1), 1.0)
    assert (kernel >= 0).all()


@pytest.mark.parametrize(("stays", "leaves"), [(0.0, 0.0), (-1.0, 0.5), (0.0, 0.5)])
def test_sums_that_say_nothing_leave_the_kernel(stays, leaves):
    random = np.random.default_rng(1)
    kernel = kernels_of(3, random)
    before = kernel.copy()
    slow = np.zeros((9, 9))
    slow[0, 4], slow[0, 5] = stays, leaves
    table = grid_of(3).neighbour_table
    kernels.calibrate(kernel, table, np.ones(9), slow, 0.1, 2.0)
    unchanged = stays + leaves <= 0
    assert (kernel == before).all() == unchanged
    kernel = before.copy()
    kernels.calibrate(kernel, table, np.zeros(9), slow, 0.1, 2.0)
    assert (kernel == before).all()


def test_rows_without_mass_become_uniform_over_the_neighbours():
    table = grid_of(2).neighbour_table
    kernel = np.zeros((4, 9))
    kernel[0, table[0] >= 0] = [1.0, 0.0, 0.0, 3.0]
    kernels.normalise_rows(kernel, table)
    assert kernel[0][table[0] >= 0].tolist() == [0.25, 0.0, 0.0, 0.75]
    assert (kernel[1:][table[1:] >= 0] == 0.25).all()
    assert (kernel[table < 0] == 0).all()
