"""Replicas repeat a run on fresh noise, cost nothing of a budget, and leave the release alone."""

import dataclasses

import numpy as np
import pytest

from retrasyn import Box, Curator, Grid, Trajectories, demo_city, synthesize
from retrasyn.engines.base import LocalEngine
from retrasyn.errors import SettingError
from retrasyn.messages import Estimate, Grant
from retrasyn.methods import METHODS
from retrasyn.oracles.oue import OUE
from retrasyn.run_settings import RunSettings
from retrasyn.simulation.city import CITY_BOX
from retrasyn.simulation.replicas import Replicas, told_again
from retrasyn.simulation.rounds import Answers, Folded, Recorded
from retrasyn.simulation.run import SimulatedRun
from retrasyn.simulation.stream import Live
from support.public_maps import map_for

COLUMNS = ("stream_ids", "begins", "starts", "x", "y")
CITY = demo_city(n_users=300, n_timestamps=40, seed=4)
GRID = Grid(CITY_BOX, 4)


def settings_of(method="steered", n=2, **options):
    known = map_for(method, CITY_BOX)
    return RunSettings.of(method, grid=GRID, window=6, seed=3, replicates=n, **known, **options)


def bytes_of(trajectories):
    return [getattr(trajectories, name).tobytes() for name in COLUMNS]


@pytest.mark.parametrize("method", METHODS)
def test_replicas_of_every_method_are_other_streams_of_the_same_length(method):
    alone = synthesize(CITY, settings_of(method, 0))
    made = synthesize(CITY, settings_of(method, 2))

    assert bytes_of(made.synthetic) == bytes_of(alone.synthetic)
    assert dataclasses.replace(made.receipt, settings={}) == dataclasses.replace(
        alone.receipt, settings={}
    )
    assert len(alone.replicas) == 0
    assert len(made.replicas) == 2
    one, other = made.replicas
    assert len({*map(str, map(bytes_of, (made.synthetic, one, other)))}) == 3
    for replica in made.replicas:
        assert isinstance(replica, Trajectories)
        assert replica.last_t == made.synthetic.last_t
        if METHODS[method].presence != "hidden":  # else it is estimated who is there
            assert replica.first_t == made.synthetic.first_t


def test_the_same_seed_gives_the_same_replicas_and_more_of_them_change_none():
    two, three = synthesize(CITY, settings_of(n=2)), synthesize(CITY, settings_of(n=3))
    assert [*map(bytes_of, two.replicas)] == [*map(bytes_of, three.replicas[:2])]


def test_any_number_of_workers_gives_the_same_replicas():
    one, other = (synthesize(CITY, settings_of(), engine=LocalEngine(n)) for n in (1, 3))
    assert [*map(bytes_of, one.replicas)] == [*map(bytes_of, other.replicas)]


def test_a_replica_asks_nobody_and_has_as_many_points():
    run = SimulatedRun.of(CITY, settings_of())
    replicas = run.simulation.replicas
    for release in run.releases():
        for replica in replicas.releases:
            assert (replica.t, replica.n_points) == (release.t, release.n_points)
            assert (replica.n_reports, replica.epsilon_t) == (0, 0.0)
    assert run.simulation.curator.state.n_reports > 0
    assert all(one.state.n_reports == 0 for one in replicas.curators)
    assert run.simulation.personal.n_reports == run.simulation.curator.state.n_reports


def test_states_that_are_put_back_go_on_as_before():
    one, other = (SimulatedRun.of(CITY, settings_of()) for _ in range(2))
    steps = list(one.recording.steps())
    for step in steps[:20]:
        one.simulation.step(step)
        other.simulation.observe(step)
    other.simulation.curator.state.load_arrays(one.simulation.curator.state.to_arrays())
    other.simulation.replicas.load_arrays(one.simulation.replicas.to_arrays())
    for step in steps[20:30]:
        for run in (one, other):
            run.simulation.step(step)
        for ours, theirs in zip(one.simulation.repeated, other.simulation.repeated, strict=True):
            assert ours.x.tobytes() == theirs.x.tobytes()


def test_folded_rounds_give_the_replicas_of_the_simulation():
    run = SimulatedRun.of(CITY, settings_of())
    simulation, notes = run.simulation, []
    collect = simulation.source.collect

    class Noted:
        name = "counts"

        def collect(self, grant, states, addresses, *, lane):
            found = collect(grant, states, addresses, lane=lane)
            notes.append((grant, found))
            return found

    simulation.source = Noted()
    curator = Curator(simulation.curator.settings)
    recorded = Recorded(curator, replicas=Replicas.of(curator, 2))
    for step in run.recording.steps():
        notes.clear()
        simulation.step(step)
        recorded.step(
            Folded(
                t=step.t,
                epsilon=notes[0][0].epsilon if notes else 0,
                size=simulation.population.size,
                n_enrolled=simulation.population.roster().keys.size,
                answers={
                    grant.question: Answers(aggregate=found, keys=np.sort(grant.reporters))
                    for grant, found in notes
                    if found.n
                },
            )
        )
        for ours, theirs in zip(simulation.repeated, recorded.replicas.releases, strict=True):
            assert ours.x.tobytes() == theirs.x.tobytes()


def test_a_live_stream_has_its_replicas_for_every_timestamp():
    live = Live.start(settings_of())
    for t in (0, 3):
        releases = live.step(t, [1, 2], [1.0, 2.0], [1.0, 2.0])
        told = [[replica.t for replica in replicas] for replicas in live.repeated]
        assert told == [[release.t] * 2 for release in releases]


@pytest.mark.parametrize("around", [None, np.array([0.5, 0.3, 0.1, 0.1])])
def test_fresh_noise_has_the_mean_and_the_variance_that_the_reports_had(around):
    """Of 4,000 draws a mean and a variance, each within 4.5 of its standard errors."""
    frequencies = np.array([0.6, 0.25, 0.1, 0.05])
    grant = Grant(t=0, epsilon=1_000_000, reporters=np.arange(200), n_answers=4)
    variance = OUE(1_000_000).variance(200)
    estimate = Estimate(frequencies=frequencies, variance=variance, n=200)
    random = np.random.default_rng(5)
    drawn = [told_again(estimate, grant, around, random).frequencies for _ in range(4_000)]
    centre = frequencies if around is None else around
    on = 0.5 * centre + OUE(1_000_000).q * (1 - centre)  # chance of a bit of whoever is asked
    variance = on * (1 - on) / (200 * OUE(1_000_000).gap ** 2)
    assert np.mean(drawn, axis=0) == pytest.approx(centre, abs=4.5 * np.sqrt(0.0234 / 4_000))
    assert np.var(drawn, axis=0) == pytest.approx(variance, rel=4.5 * np.sqrt(2 / 4_000))


def test_replicas_differ_more_where_fewer_people_report():
    def spread(n_users):
        real = demo_city(n_users=n_users, n_timestamps=40, seed=4)
        made = synthesize(real, RunSettings.of(grid=GRID, seed=3, replicates=8))
        shares = [
            np.bincount(GRID.locate(one.x, one.y)[0], minlength=16) / one.n_points
            for one in made.replicas
        ]
        return np.std(shares, axis=0).mean()

    assert spread(20_000) < 0.5 * spread(200)


@pytest.mark.parametrize("n", [-1, 1_001])
def test_a_number_of_replicas_that_cannot_be_is_refused(n):
    with pytest.raises(SettingError, match=rf"replicates={n} must be from 0 to 1,000; 20 is usual"):
        settings_of(n=n)


def test_replicas_with_parts_are_refused(tmp_path):
    with pytest.raises(SettingError, match="replicas cannot go with parts: each is one file"):
        synthesize(CITY, settings_of(), parts=tmp_path / "parts.parquet")


def test_replicas_outlive_the_result_and_then_their_folder_goes():
    made = synthesize(CITY, settings_of(n=1))
    replicas, folder = made.replicas, made.replicas.sinks[0].folder
    del made
    assert replicas[-1].n_points > 0
    del replicas
    assert not folder.exists()


def test_a_replica_of_nobody_has_no_points():
    real = Trajectories.from_columns(traj_id=[1], t=[0], x=[0.5], y=[0.5])
    made = synthesize(real, "steered-hidden", grid=2, box=Box(0, 0, 1, 1), seed=0, replicates=1)
    assert made.replicas[0].n_points == made.synthetic.n_points == 0
