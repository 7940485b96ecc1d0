"""What can be learnt with so many people: limits that follow from the noise, and hold."""

import numpy as np
import pytest

from retrasyn import METHODS, Box, Grid, RunSettings, StateSpace
from retrasyn.metrics import kernels
from retrasyn.metrics.density import cell_counts
from retrasyn.metrics.divergence import mean_known
from retrasyn.metrics.pair import Pair
from retrasyn.planning.closed_forms import FINEST, expected_noise
from retrasyn.planning.outlook import REMEMBERED, Outlook
from retrasyn.planning.trial import built_in_cities, run_trial
from retrasyn.simulation.city import CITY_BOX
from support.public_maps import map_for

PRIVATE = [name for name, row in METHODS.items() if row.division.private]


def outlook(n_users, side=6, method="steered", n_timestamps=None, **options):
    box = Box(0, 0, 1, 1)
    settings = RunSettings.of(method, grid=Grid(box, side), **map_for(method, box), **options)
    return Outlook.of(settings, n_users, n_timestamps)


def variance(n_users, side, gap=21):
    noise = expected_noise(METHODS["steered"], n_users=n_users, epsilon=1_000_000, gap=gap)
    return noise.cell_error(StateSpace(Grid(Box(0, 0, 1, 1), side))) ** 2


def test_beyond_the_finest_grid_the_noise_of_a_window_is_that_of_a_whole_map():
    found = outlook(336)
    sides = found.finest, found.finest + 1
    over_a_window = [side**2 * variance(336, side) / 21 for side in sides]
    assert over_a_window[0] <= 1 < over_a_window[1]


def test_up_to_the_clearest_grid_a_cell_is_known_to_its_own_share():
    found = outlook(3_000)
    relative = [
        side**2 * np.sqrt(variance(3_000, side) / REMEMBERED)
        for side in (found.clearest, found.clearest + 1)
    ]
    assert relative[0] <= 1 < relative[1]
    assert outlook(3_000, found.clearest).cell_error == pytest.approx(relative[0])


def test_few_timestamps_are_all_that_can_be_remembered():
    assert outlook(3_000, n_timestamps=10).clearest < outlook(3_000).clearest
    assert outlook(3_000, n_timestamps=10**6) == outlook(3_000)


@pytest.mark.parametrize("method", PRIVATE)
def test_more_people_never_learn_less_with_any_method(method):
    sides = [outlook(n, method=method).finest or 0 for n in (0.3, 30, 300, 3_000, 300_000)]
    assert sides == sorted(sides)
    assert sides[0] == 0
    assert sides[-1] > 0
    assert max(sides) <= FINEST


def test_a_grid_finer_than_any_that_is_planned_is_judged_too():
    assert outlook(10**7, 40).verdict == "enough"
    assert outlook(1_000, 40).verdict == "too few"


def test_a_budget_too_small_to_divide_learns_nothing():
    found = outlook(1_000, method="uniform-b", epsilon=1e-5)
    assert (found.verdict, found.to_dict()["cell_error"]) == ("too few", None)


@pytest.mark.parametrize(
    ("n_users", "side", "verdict", "says"),
    [
        (0.3, 6, "too few", "too few: 0.27 reports in a window tell no map from a uniform one"),
        (84, 6, "too few", "try --grid 3, over a smaller box"),
        (336, 6, "outlines", "--grid 3 would tell them"),
        (84, 3, "outlines", "of 3 x 3 cells each is known to +- 120% of a mean share"),
        (4_630, 6, "enough", "enough for 6 x 6 cells: 4,167 reports in a window"),
    ],
)
def test_the_sentence_says_what_can_be_learnt_or_what_to_try(n_users, side, verdict, says):
    found = outlook(n_users, side)
    assert found.verdict == found.to_dict()["verdict"] == verdict
    assert says in found.words


def test_what_to_try_is_enough():
    assert outlook(84, outlook(84).best).verdict != "too few"
    assert outlook(3_000, outlook(3_000).best).verdict == "enough"
    assert outlook(1).best is None


@pytest.mark.parametrize(
    ("n_users", "side", "closer"), [(84, 3, True), (336, 6, True), (20, 4, False)]
)
def test_in_the_built_in_cities_a_release_is_closer_than_a_uniform_map_within_the_limit(
    n_users, side, closer
):
    settings = RunSettings.of(grid=Grid(CITY_BOX, side), seed=3)
    errors = []
    for city in built_in_cities(n_timestamps=240):
        few = city.of_size(n_users)
        pair = Pair.of(few.trips, few.trips, settings.grid)
        counts = cell_counts(pair.real, pair.n_timestamps, side**2)
        even = np.ones_like(counts)
        uniform = mean_known(kernels.divergences(counts[counts.any(1)], even[counts.any(1)]))
        errors.append((run_trial(few, settings, tick=lambda: None).density_error, uniform))
    released, uniform = np.mean(errors, axis=0)
    assert bool(released < uniform) is closer
    assert (Outlook.of(settings, n_users).verdict != "too few") is closer
