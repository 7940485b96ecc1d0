"""What is unusual: by arrays whose chance is known, and by a simulated city that keeps quiet."""

import numpy as np
import pytest

from retrasyn import Box, Grid, RunSettings, Trajectories
from retrasyn.service.alerts.departures import UsualTimes, departures
from retrasyn.service.viewing.recordings import InMemory
from retrasyn.simulation.replicas import Replicas
from retrasyn.simulation.run import SimulatedRun

GRID = Grid(Box(0, 0, 1, 1), side=4)
WINDOW, ROUNDS, QUIET, CROWD = 8, 30, 100, 40
FIRST = 2 * (WINDOW + 1) + ROUNDS + WINDOW + 1  # the first round that is judged


def drawn(dice, mean, n_replicas=20):
    """Return counts of a release around a mean, and of replicas that differ from it as much."""
    release = dice.poisson(mean, mean.shape)
    return np.stack([release, *dice.poisson(mean, (n_replicas, *mean.shape))])


def test_a_crowd_is_named_with_what_was_usual_and_nothing_else_is():
    dice, mean = np.random.default_rng(1), np.array([100.0, 10.0, 40.0])
    before = [drawn(dice, mean) for _ in range(20)]
    (found,) = departures(drawn(dice, np.array([400.0, 10.0, 40.0])), before, band=0.5, level=0.01)
    assert (found.zone, found.is_above) == (0, True)
    assert found.usual == pytest.approx(100, rel=0.1)
    assert found.low < 50
    assert 150 < found.high < found.count


def test_a_zone_that_empties_is_named():
    dice, mean = np.random.default_rng(2), np.array([400.0, 400.0])
    before = [drawn(dice, mean) for _ in range(20)]
    (found,) = departures(drawn(dice, np.array([400.0, 20.0])), before, band=0.5, level=0.01)
    assert (found.zone, found.is_above) == (1, False)
    assert found.count < found.low < 200


def test_what_is_within_the_band_is_usual_however_sure():
    before = [np.full((11, 1), 1000) for _ in range(5)]
    assert not departures(np.full((11, 1), 1499), before, band=0.5, level=0.01)
    assert departures(np.full((11, 1), 1506), before, band=0.5, level=0.01)
    assert not departures(np.full((11, 1), 0), before, band=1.0, level=0.01)


def test_what_chance_does_is_usual_however_narrow_the_band():
    dice, mean = np.random.default_rng(3), np.full(36, 30.0)
    before = [drawn(dice, mean) for _ in range(20)]
    n_rounds = sum(
        bool(departures(drawn(dice, mean), before, band=0, level=0.01)) for _ in range(400)
    )
    assert n_rounds <= 4, "the level is that of a round, over all zones"


def test_where_nobody_ever_is_a_single_one_is_no_crowd():
    before = [np.zeros((5, 1), int) for _ in range(5)]
    assert not departures(np.array([[3], [0], [0], [0], [0]]), before, band=0.5, level=0.01)
    assert departures(np.array([[9], [0], [0], [0], [0]]), before, band=0.5, level=0.01)


def test_where_one_was_at_times_nobody_is_no_void():
    before = [np.array([[t % 2], [0], [1], [0], [1]]) for t in range(10)]
    assert not departures(np.zeros((5, 1), int), before, band=0, level=0.5)


def test_the_usual_is_the_same_time_of_earlier_days_or_else_the_last_rounds():
    walk = Trajectories.from_columns(
        traj_id=np.zeros(100, int), t=np.arange(100), x=np.full(100, 0.5), y=np.full(100, 0.5)
    )
    source = InMemory.of_recording(walk, GRID)
    times = UsualTimes(per_day=24, days=3, rounds=10, gap=4)
    assert times.before(source, 99) == [75, 51, 27]
    assert times.before(source, 40) == [16]
    assert times.before(source, 31) == list(range(17, 27)), "the first two gaps are no day"
    assert times.before(source, 22) == list(range(8, 18))
    assert times.before(source, 21) == [], "too little is known"
    assert UsualTimes(per_day=24, days=0, rounds=10, gap=4).before(source, 99)[0] == 85
    assert times.before(InMemory(GRID), 0) == []


def walkers(n, n_rounds, seed):
    """Return people who stroll about their homes; from a round on some gather in a corner."""
    dice = np.random.default_rng(seed)
    homes = np.clip(dice.normal(0.5, 0.25, (n, 2)), 0.01, 0.99)
    places, here = np.empty((n_rounds, n, 2)), homes.copy()
    for t in range(n_rounds):
        wanted, pull = homes.copy(), np.full((n, 1), 0.1)
        if t >= FIRST + QUIET:
            wanted[: n // 4], pull[: n // 4] = 0.12, 0.4
        here = np.clip(here + pull * (wanted - here) + dice.normal(0, 0.04, (n, 2)), 0.001, 0.999)
        places[t] = here
    columns = places.transpose(1, 0, 2).reshape(-1, 2).T
    return Trajectories.from_columns(
        traj_id=np.repeat(np.arange(n), n_rounds),
        t=np.tile(np.arange(n_rounds), n),
        x=columns[0],
        y=columns[1],
    )


@pytest.mark.system
def test_a_hundred_quiet_rounds_send_nothing_and_a_crowd_is_seen_within_two_windows():
    settings = RunSettings.of(grid=GRID, window=WINDOW, seed=5)
    run = SimulatedRun.of(walkers(6000, FIRST + QUIET + CROWD, 4), settings)
    run.simulation.replicas = replicas = Replicas.of(run.simulation.curator, 20)
    counts, unusual = [], {}
    for release in run.releases():
        counts.append(
            np.stack(
                [np.bincount(one.cells, minlength=16) for one in (release, *replicas.releases)]
            )
        )
        last = release.t - WINDOW - 1
        if release.t >= FIRST:
            before = counts[last - ROUNDS : last]
            unusual[release.t] = departures(counts[-1], before, band=0.5, level=0.01)
    crowd = FIRST + QUIET
    assert sum(t < crowd for t in unusual) == QUIET
    assert not any(found for t, found in unusual.items() if t < crowd)
    seen = next(t for t, found in unusual.items() if any(one.zone == 0 for one in found))
    assert crowd < seen <= crowd + 2 * WINDOW
