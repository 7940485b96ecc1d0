"""The mobility model, its updates and its standard errors against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import naive
from retrasyn.interpretation import SAFE
from retrasyn.messages import Estimate
from retrasyn.mobility.model import (
    MobilityModel,
    masses,
    normalised,
    replace_all,
    select_significant,
    standard_errors,
)
from retrasyn.space import Box, Grid, StateSpace

SIDE = 3
STATES = StateSpace(Grid(Box(0, 0, 1, 1), SIDE))
weights = st.one_of(st.just(0.0), st.floats(1e-6, 1.0))
frequencies = hnp.arrays(np.float64, STATES.n_states, elements=weights)
estimates = hnp.arrays(np.float64, STATES.n_states, elements=st.floats(-0.5, 0.5))


@given(frequencies)
def test_the_model_is_equation_6(released):
    model, expected = (
        MobilityModel.from_frequencies(released, STATES),
        naive.mobility_model(released.tolist(), SIDE),
    )
    table = STATES.grid.neighbour_table
    for cell in range(STATES.grid.n_cells):
        for direction in range(9):
            other = int(table[cell, direction])
            probability = expected.move[cell, other] if other >= 0 else 0.0
            assert model.move[cell, direction] == pytest.approx(probability, abs=1e-12)
    np.testing.assert_allclose(model.quit_hazard, expected.quit_hazard, atol=1e-12)
    np.testing.assert_allclose(model.enter, expected.enter, atol=1e-12)
    np.testing.assert_allclose(model.quit_share, expected.quit_share, atol=1e-12)


def test_no_report_at_all_makes_a_model_of_zeros():
    model = MobilityModel.from_frequencies(None, STATES)
    assert not model.move.any()
    assert not model.enter.any()


@given(frequencies)
def test_masses_are_what_goes_on_and_what_quits(released):
    going_on, quitting = masses(released, STATES)
    scale = naive.length_scale([released.tolist()], SIDE)
    expected = 1000.0 if quitting <= 0 else min(max(going_on / quitting, 2.0), 1000.0)
    assert scale == pytest.approx(expected)


@given(frequencies, estimates, st.floats(0, 0.1))
def test_selection_renews_what_equation_7_says(previous, estimated, variance):
    estimate = Estimate(frequencies=estimated, variance=variance, n=5)
    released, n_significant = select_significant(previous, estimate, SAFE)
    expected, n_expected = naive.select_significant(previous.tolist(), estimated.tolist(), variance)
    np.testing.assert_allclose(released, expected, atol=1e-12)
    assert n_significant == n_expected


def test_unselected_states_stay_as_they_are_when_read_as_printed():
    previous = np.array([0.5, 0.3, 0.2])
    estimate = Estimate(frequencies=np.array([0.9, 0.31, 0.19]), variance=0.01, n=5)
    released, n_significant = select_significant(previous, estimate, SAFE.answer(unselected="kept"))
    np.testing.assert_allclose(released, np.array([0.9, 0.3, 0.2]) / 1.4)
    assert n_significant == 1


@given(estimates)
def test_replacing_everything_clips_and_normalises(estimated):
    estimate = Estimate(frequencies=estimated, variance=0.01, n=5)
    expected = naive.replace_all(estimated.tolist())
    fresh = normalised(estimate)
    assert (fresh is None) == (expected is None)
    if fresh is not None and expected is not None:
        np.testing.assert_allclose(fresh, expected, atol=1e-12)


def test_an_estimate_with_nothing_positive_leaves_the_release():
    previous = np.array([0.25, 0.75])
    estimate = Estimate(frequencies=np.array([-0.1, 0.0]), variance=0.01, n=5)
    released, n_renewed = replace_all(previous, estimate, SAFE)
    assert released is previous
    assert n_renewed == 0


GRID = Grid(Box(0, 0, 1, 1), 3)
NEAR = GRID.neighbour_table >= 0


@given(st.integers(0, 9999))
def test_a_cell_is_as_uncertain_as_its_arrivals_the_drawing_and_the_gap_of_its_points(seed):
    random = np.random.default_rng(seed)
    counts = random.integers(0, 50, GRID.n_cells)
    mass = random.random(NEAR.shape) * NEAR
    mass /= mass.sum()
    of_moves = random.random(NEAR.shape) * NEAR * 1e-4
    of_arrivals = random.random(GRID.n_cells) * 1e-3

    known = standard_errors(counts, mass, (of_moves, of_arrivals), GRID)

    n_points = max(counts.sum(), 1)
    for cell in range(GRID.n_cells):
        arriving = sum(
            mass[origin, k]
            for origin in range(GRID.n_cells)
            for k in range(9)
            if GRID.neighbour_table[origin, k] == cell
        )
        share = counts[cell] / n_points
        square = of_arrivals[cell] + share * (1 - share) / n_points + (share - arriving) ** 2
        assert known.cell_errors[cell] ** 2 == pytest.approx(square)
        assert known.cell_shares[cell] == share
        for k in range(9):
            flow = mass[cell, k]
            square = of_moves[cell, k] + flow * (1 - flow) / n_points
            assert known.flow_errors[cell, k] ** 2 == pytest.approx(square)
    assert known.flow_shares is mass


def test_points_that_are_where_they_should_be_are_less_uncertain_than_others():
    mass = NEAR / NEAR.sum()
    arriving = np.bincount(GRID.neighbour_table[NEAR], mass[NEAR], GRID.n_cells)
    variances = 1e-6 * NEAR, np.full(GRID.n_cells, 1e-6)
    there = standard_errors(np.round(1e6 * arriving).astype(np.int64), mass, variances, GRID)
    elsewhere = standard_errors(np.eye(9, dtype=np.int64)[0] * 1_000_000, mass, variances, GRID)
    assert (there.cell_errors < elsewhere.cell_errors).all()


def test_nobody_anywhere_has_no_share_and_finite_errors():
    variances = 1e-6 * NEAR, np.full(9, 1e-6)
    known = standard_errors(np.zeros(9, np.int64), NEAR / NEAR.sum(), variances, GRID)
    assert not known.cell_shares.any()
    assert np.isfinite(known.cell_errors).all()
    assert np.isfinite(known.flow_errors).all()
