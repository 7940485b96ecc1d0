"""A run with any oracle: chosen once from public settings, stated, and of the right law."""

import numpy as np
import pytest

from retrasyn import Box, Curator, Grid, synthesize
from retrasyn.errors import SettingError
from retrasyn.messages import Ask, Grant, Roster
from retrasyn.oracles.registry import choose_oracle, find_oracle, oracle_for
from retrasyn.run_settings import RunSettings
from retrasyn.simulation.city import CITY_BOX, demo_city
from retrasyn.simulation.report_sources import Counts, Reports

MILLION = 1_000_000


@pytest.fixture(scope="module")
def city():
    return demo_city(n_users=300, n_timestamps=25, seed=2)


def columns(trajectories):
    return trajectories.x.tobytes(), trajectories.y.tobytes()


@pytest.mark.parametrize("method", ["steered", "retrasyn-b", "steered-flags"])
@pytest.mark.parametrize("oracle", ["oue", "grr", "olh", "auto", "small"])
@pytest.mark.parametrize("door", ["counts", "reports"])
def test_every_oracle_runs_and_stands_in_the_receipt(method, oracle, door, city):
    settings = {"box": CITY_BOX, "grid": 4, "window": 5, "door": door, "seed": 0}
    synthetic, receipt = synthesize(city, method, oracle=oracle, **settings)
    assert receipt.within_guarantee
    assert synthetic.n_points == receipt.n_points_out > 0
    assert receipt.oracle == {"auto": "oue", "small": "olh"}.get(oracle, oracle)
    usual = synthesize(city, method, **settings)
    assert usual.receipt.oracle == "oue"
    assert (columns(usual.synthetic) == columns(synthetic)) == (receipt.oracle == "oue")


def test_a_run_without_noise_has_no_oracle(city):
    assert synthesize(city, "exact", box=CITY_BOX, oracle="auto", seed=0).receipt.oracle == "none"


def test_where_epsilon_is_divided_the_choice_is_made_for_a_part_of_it():
    grid = Grid(Box(0, 0, 1, 1), 1)
    states = RunSettings.of("retrasyn-p", grid=grid).states.n_states
    assert choose_oracle("auto", 4 * MILLION, 12) == "grr"
    assert choose_oracle("auto", 4 * MILLION // 21, 12) == "oue"
    curator = Curator(
        RunSettings.of("retrasyn-b", grid=Grid(Box(0, 0, 1, 1), 2), epsilon=4, oracle="auto")
    )
    assert curator.oracle == "oue"
    assert states == 3
    assert (
        Curator(RunSettings.of("retrasyn-p", grid=grid, epsilon=4, oracle="auto")).oracle == "grr"
    )


def test_a_grant_says_how_to_answer_and_yes_or_no_stays_one_bit():
    curator = Curator(RunSettings.of("retrasyn-p", grid=Grid(Box(0, 0, 1, 1), 4), oracle="grr"))
    keys = np.arange(50)
    roster = Roster(keys=keys, addresses=keys.astype(np.uint64), slots=keys)
    grant = curator.grant(Ask(share=1.0), t=0, roster=roster)
    assert (grant.oracle, grant.n_answers) == ("grr", 132)
    assert oracle_for(grant) == find_oracle("grr").at(MILLION, 132)
    states = np.zeros(grant.reporters.size, np.int32)
    for door in (Counts(1), Reports(1)):
        aggregate = door.collect(
            grant, states, keys[: states.size].astype(np.uint64), lane="publish"
        )
        assert aggregate.n == states.size
        assert aggregate.counts.sum() <= aggregate.n  # one symbol each


@pytest.mark.parametrize("method", ["lbd", "lpa-steered"])
def test_a_method_that_foresees_errors_of_unary_encoding_keeps_to_it(method):
    grid = Grid(Box(0, 0, 1, 1), 2)
    assert RunSettings.of(method, grid=grid).oracle == "oue"
    with pytest.raises(SettingError, match='use `oracle="oue"`, not grr'):
        RunSettings.of(method, grid=grid, oracle="grr")


def test_an_unknown_oracle_is_refused():
    with pytest.raises(SettingError, match="not one of oue, grr, olh, auto, small"):
        RunSettings.of(grid=Grid(Box(0, 0, 1, 1), 2), oracle="rappor")
    with pytest.raises(SettingError, match="not one of oue, grr, olh"):
        find_oracle("auto").at(MILLION, 4)


@pytest.mark.parametrize("source", [Counts, Reports])
def test_two_asks_of_a_timestamp_have_noise_of_their_own(source):
    def collected(*, seed=1, t=0, lane="probe"):
        grant = Grant(t=t, epsilon=MILLION, reporters=np.arange(200), n_answers=40)
        states, addresses = np.zeros(200, np.int32), np.arange(200, dtype=np.uint64)
        return source(seed).collect(grant, states, addresses, lane=lane).counts.tolist()

    first = collected()

    assert collected() == first
    assert collected(lane="publish") != first
    assert collected(t=1) != first
    assert collected(seed=2) != first
