"""The mean of all reports, `lpa` and `exact`, run with the budget of a release."""

import numpy as np
import pytest

from retrasyn import Box, Grid, RunSettings, demo_city, synthesize
from retrasyn.metrics.density import cell_counts
from retrasyn.metrics.pair import Pair
from retrasyn.metrics.suite import evaluate_pair
from retrasyn.simulation.baselines import (
    STATIC,
    mean_crowd,
    run_baselines,
    settings_of_receipt,
)
from retrasyn.simulation.city import CITY_BOX

GRID = Grid(CITY_BOX, 4)


@pytest.fixture(scope="module")
def city():
    return demo_city(n_users=3_000, n_timestamps=40, seed=1)


def test_the_mean_crowd_is_the_mean_of_the_reports_about_cells(city):
    """With a budget that hides nothing, that is the mean of where people were so far."""
    settings = RunSettings.of("steered", grid=GRID, epsilon=40.0, window=1, seed=1)
    crowd = mean_crowd(city, settings)
    pair = Pair.of(city, crowd, GRID)
    real, static = (
        cell_counts(data, pair.n_timestamps, GRID.n_cells) for data in (pair.real, pair.synthetic)
    )
    assert static.sum(axis=1).tolist() == real.sum(axis=1).tolist()
    so_far = real.cumsum(axis=0) / real.cumsum(axis=0).sum(axis=1, keepdims=True)
    drawn = static / static.sum(axis=1, keepdims=True)
    assert np.abs(drawn - so_far)[10:].mean() < 0.02
    assert crowd.lengths.max() == 1


def test_the_mean_answers_for_maps_and_the_others_for_everything(city):
    synthetic, receipt = synthesize(city, grid=GRID, seed=2)
    pair = Pair.of(city, synthetic, GRID)
    told = []
    found = run_baselines(
        city,
        settings_of_receipt(receipt.to_dict()),
        pair,
        evaluate_pair,
        progress=lambda done, total, what: told.append((done, total, what)),
    )
    assert list(found) == ["static", "lpa", "exact"]
    known = {name for name, value in found["static"].to_dict().items() if value is not None}
    assert known == set(STATIC)
    assert None not in found["lpa"].to_dict().values()
    assert found["exact"].density_error < found["static"].density_error
    for what in ("the mean", "lpa", "exact"):
        assert (40, 40, f"timestamps of {what}") in told


def test_baselines_run_with_what_the_receipt_says(city):
    _, receipt = synthesize(city, grid=GRID, seed=2, epsilon=0.5, window=7, unit="transition")
    settings = settings_of_receipt(receipt.to_dict())
    assert (settings.epsilon, settings.window, settings.grid) == (0.5, 7, GRID)
    assert settings.interpretation.unit == "transition"


@pytest.mark.parametrize(
    "receipt",
    [
        {},
        {"box": 7, "grid": 6, "epsilon": 1.0, "window": 20, "unit": "position", "ledger": "user"},
        {
            "box": [0, 0, 1, 1],
            "grid": 6,
            "epsilon": "x",
            "window": 20,
            "unit": "position",
            "ledger": "user",
        },
        {
            "box": [0, 0, 1, 1],
            "grid": 6,
            "epsilon": 1.0,
            "window": 20,
            "unit": "week",
            "ledger": "user",
        },
    ],
)
def test_a_receipt_that_does_not_tell_gives_no_settings(receipt):
    assert settings_of_receipt(receipt) is None


def test_points_outside_the_box_are_dropped_as_the_comparison_forgives_a_few(city):
    grid = Grid(Box(float(np.sort(city.x)[5]), 0.0, 10.0, 10.0), 4)
    found = run_baselines(city, RunSettings.of(grid=grid), Pair.of(city, city, grid))
    assert 0 < found["exact"].density_error < found["lpa"].density_error
