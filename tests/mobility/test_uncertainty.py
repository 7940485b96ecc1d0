"""Standard errors per cell and flow."""

import numpy as np
import pytest

from retrasyn.mobility.model import standard_errors
from retrasyn.space import Box, Grid

GRID = Grid(Box(0, 0, 1, 1), 3)
NEAR = GRID.neighbour_table >= 0


def test_a_cell_is_as_uncertain_as_what_arrives_there_and_the_drawing_of_points():
    generator = np.random.default_rng(1)
    counts = generator.integers(0, 50, GRID.n_cells)
    mass = generator.random(NEAR.shape) * NEAR
    mass /= mass.sum()
    variance = generator.random(NEAR.shape) * NEAR * 1e-4

    known = standard_errors(counts, mass, variance, GRID)

    for cell in range(GRID.n_cells):
        arriving = sum(
            variance[origin, k]
            for origin in range(GRID.n_cells)
            for k in range(9)
            if GRID.neighbour_table[origin, k] == cell
        )
        share = counts[cell] / counts.sum()
        drawing = share * (1 - share) / counts.sum()
        assert known.cell_errors[cell] ** 2 == pytest.approx(3 * arriving + drawing)
        assert known.cell_shares[cell] == share
    drawing = mass * (1 - mass) / counts.sum()
    assert known.flow_errors**2 == pytest.approx(3 * variance + drawing)
    assert known.flow_shares is mass


def test_nobody_anywhere_has_no_share_and_finite_errors():
    known = standard_errors(np.zeros(9, np.int64), NEAR / NEAR.sum(), 1e-6 * NEAR, GRID)
    assert not known.cell_shares.any()
    assert np.isfinite(known.cell_errors).all()
