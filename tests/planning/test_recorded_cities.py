"""Predicted beside measured: the plan of `steered` at epsilon 1, w 20, on recorded cities.

The data sets are named by RETRASYN_DATA. A plan knows nothing of them but the number of people.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from retrasyn import Box, Grid, read, synthesize
from retrasyn.metrics.density import density_error
from retrasyn.planning.forecast import forecast

DATA = os.environ.get("RETRASYN_DATA")
SEEDS = (1, 2, 3)
BOXES = {"tdrive": Box(116.15, 39.75, 116.60, 40.10), "oldenburg": Box(281, 3935, 23854, 30851)}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(DATA is None, reason="RETRASYN_DATA names no folder with data"),
]


@pytest.mark.parametrize("name", BOXES)
def test_predicted_density_errors_are_within_a_factor_of_one_and_a_half(name):
    real = read(Path(DATA) / f"{name}.parquet")
    n_active = round(real.n_points / (real.last_t - real.first_t + 1))
    shown = forecast(n_active)
    for side in (4, 6, 10):
        grid = Grid(BOXES[name], side)
        errors = [
            density_error(real, synthesize(real, grid=grid, seed=seed)[0], grid) for seed in SEEDS
        ]
        ratio = shown.row(side).density.expected / np.mean(errors)
        assert 1 / 1.5 <= ratio <= 1.5, (side, shown.row(side).density, errors)


@pytest.mark.parametrize("name", BOXES)
def test_a_method_of_the_paper_is_predicted_within_a_factor_of_two(name):
    real, grid = read(Path(DATA) / f"{name}.parquet"), Grid(BOXES[name], 6)
    n_active = round(real.n_points / (real.last_t - real.first_t + 1))
    shown = forecast(n_active, "retrasyn-p")
    error = density_error(real, synthesize(real, "retrasyn-p", grid=grid, seed=1)[0], grid)
    assert 0.5 <= shown.row(6).density.expected / error <= 2
