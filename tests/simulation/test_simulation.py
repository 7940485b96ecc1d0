"""Who is asked what, and what a release is made of: never of where anybody is, but by reports."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrasyn import METHODS
from retrasyn.curator import Curator
from retrasyn.data.trajectories import Trajectories
from retrasyn.mechanisms.base import drive
from retrasyn.messages import Flags, Grant
from retrasyn.oracles.registry import n_answers
from retrasyn.run_settings import RunSettings
from retrasyn.simulation.city import CITY_BOX, demo_city
from retrasyn.simulation.population import Recording, Step
from retrasyn.simulation.run import SimulatedRun
from retrasyn.space import Box, Grid
from support.public_maps import map_for
from support.streams import BOX, recordings

STEERED = [name for name in METHODS if name.startswith("steered")]
PRIVATE = [name for name, row in METHODS.items() if row.division.private]
GRID = Grid(Box(*BOX), 5)


@dataclass(slots=True)
class Watching:
    """A report source that lets everything through and writes down what was asked and answered."""

    source: object
    asked: list = field(default_factory=list)
    sums: dict = field(default_factory=dict)

    def collect(self, grant, states, addresses, *, lane):
        self.asked.append((grant.t, grant.question, grant.epsilon, lane, grant.reporters.tolist()))
        answer = self.source.collect(grant, states, addresses, lane=lane)
        self.sums[grant.t, lane] = answer
        return answer


@dataclass(slots=True)
class Repeating:
    """A report source that gives the sums of another run, whatever the devices say."""

    sums: dict

    def collect(self, grant, states, addresses, *, lane):
        return self.sums[grant.t, lane]


def watch(name, real, *, window=3, seed=0, source=None, **options):
    """Run a method over recorded data; return the simulation and its releases."""
    options |= {"window": window, "seed": seed, **map_for(name, GRID.box)}
    settings = RunSettings.of(name, grid=GRID, **options)
    run = SimulatedRun.of(real, settings)
    simulation = run.simulation
    simulation.source = Watching(simulation.source if source is None else source)
    return simulation, list(run.releases())


def elsewhere(real, seed):
    """Return the same presence at other places."""
    x, y = np.random.default_rng(seed).random((2, real.n_points))
    return Trajectories(real.stream_ids, real.begins, real.starts, x, y, real.user_of_stream)


def shape(release):
    return [part.tobytes() for part in (release.ids, release.cells, release.x, release.y)]


@pytest.mark.parametrize("name", STEERED)
@settings(max_examples=25)
@given(
    real=recordings(),
    window=st.integers(1, 6),
    jump=st.sampled_from([None, "split", "clamp"]),
    ledger=st.sampled_from(["user", "stream"]),
    seed=st.integers(0, 99),
)
def test_who_is_asked_what_and_when_does_not_depend_on_where_anybody_goes(
    name, real, window, jump, ledger, seed
):
    options = {"jump": jump, "ledger": ledger, "window": window, "seed": seed}
    one, _ = watch(name, real, **options)
    other, _ = watch(name, elsewhere(real, seed), **options)
    assert one.source.asked == other.source.asked


@pytest.mark.parametrize("name", STEERED)
def test_jumps_of_a_whole_city_do_not_show_in_who_is_asked(name):
    city = demo_city(n_users=300, n_timestamps=40, seed=5)
    low, high = np.array(CITY_BOX[:2]), np.array(CITY_BOX[2:])
    inside = Trajectories(
        city.stream_ids, city.begins, city.starts,
        (city.x - low[0]) / (high - low)[0], (city.y - low[1]) / (high - low)[1],
        city.user_of_stream,
    )  # fmt: skip
    for jump in ("split", "clamp"):
        one, _ = watch(name, inside, jump=jump, window=4)
        other, _ = watch(name, elsewhere(inside, 1), jump=jump, window=4)
        assert one.source.asked
        assert one.source.asked == other.source.asked


@given(recordings(), st.integers(1, 6), st.integers(0, 99))
def test_where_presence_is_hidden_who_reports_does_not_depend_on_it(real, window, seed):
    settings = RunSettings.of("steered-hidden", grid=GRID, window=window, seed=seed)
    random = np.random.default_rng(seed)
    asked = []
    for changed in (False, True):
        simulation = SimulatedRun.of(real, settings).simulation
        simulation.source = Watching(simulation.source)
        for step in Recording.of(real, GRID).steps():
            there = random.random(step.streams.size) < (0.5 if changed else 2.0)
            simulation.step(Step(step.t, step.streams[there], step.cells[there]))
        asked.append(simulation.source.asked)
    assert asked[0] == asked[1]


def test_where_presence_is_hidden_everybody_enrolled_answers_once_a_gap_absent_or_not():
    n, window = 200, 4
    real = Trajectories.from_columns(
        traj_id=np.arange(n), t=np.arange(n) % 15, x=np.full(n, 0.5), y=np.full(n, 0.5)
    )
    simulation, _ = watch("steered-hidden", real, window=window)
    for first in range(15 - window):
        within = [
            key
            for t, _, _, _, keys in simulation.source.asked
            for key in keys
            if first <= t < first + window + 1
        ]
        assert sorted(within) == list(range(n))


@pytest.mark.parametrize("name", PRIVATE)
@settings(max_examples=10)
@given(real=recordings(), jump=st.sampled_from(["split", "clamp"]), seed=st.integers(0, 99))
def test_a_release_depends_on_positions_only_through_sums_of_reports(name, real, jump, seed):
    one, releases = watch(name, real, jump=jump, seed=seed)
    repeating = Repeating(one.source.sums)
    _, others = watch(name, elsewhere(real, seed), jump=jump, seed=seed, source=repeating)
    assert [shape(release) for release in releases] == [shape(release) for release in others]


@pytest.mark.parametrize("name", STEERED)
def test_sums_sizes_and_flags_alone_make_the_release(name):
    city = demo_city(n_users=400, n_timestamps=30, seed=3)
    options = {"window": 5, "seed": 2, **map_for(name, CITY_BOX)}
    settings = RunSettings.of(name, grid=Grid(CITY_BOX, 4), **options)
    told = []
    simulation = SimulatedRun.of(city, settings).simulation
    simulation.source = Watching(simulation.source)
    releases = []
    for step in Recording.of(city, settings.grid, topics=METHODS[name].topics).steps():
        releases.append(simulation.step(step))
        population = simulation.population
        flags = Flags(
            n_entering=population.n_entering, ages_of_quitters=population.ages_of_quitters
        )
        told.append((step.t, population.size, population.roster().keys.size, flags))
    curator = Curator(settings)
    hidden = settings.method.presence == "hidden"
    public = settings.method.presence == "flags"
    for release, (t, size, n_enrolled, known) in zip(releases, told, strict=True):
        size = 999 if hidden else size  # noqa: PLW2901 - it must not matter
        n_enrolled = n_enrolled if hidden else 0  # noqa: PLW2901 - the same
        flags = known if public else None

        def answer(ask, t=t):
            sums = simulation.source.sums.get((t, ask.lane))
            grant = Grant(
                t=t, epsilon=1_000_000, reporters=np.empty(0, np.int64), question=ask.question
            )
            return None if sums is None else curator.estimate(ask, grant, sums)

        dialogue = curator.begin(t, size=size, n_enrolled=n_enrolled, flags=flags)
        again = curator.end(t, drive(dialogue, answer), size=size, granted=[], flags=flags)
        assert shape(again) == shape(release)


@pytest.mark.parametrize("name", STEERED)
@settings(max_examples=15)
@given(real=recordings(), jump=st.sampled_from(["split", "clamp"]), side=st.integers(1, 5))
def test_real_reports_and_sums_of_them_have_the_same_shape(name, real, jump, side):
    grid = Grid(Box(*BOX), side)
    options = {"grid": grid, "jump": jump, "window": 2, "seed": 1, **map_for(name, BOX)}
    simulations = [
        SimulatedRun.of(real, RunSettings.of(name, door=door, **options)).simulation
        for door in ("counts", "reports")
    ]
    for simulation in simulations:
        simulation.source = Watching(simulation.source)
        for step in Recording.of(real, grid, topics=METHODS[name].topics).steps():
            simulation.step(step)
    counts, reports = (simulation.source for simulation in simulations)
    assert counts.asked == reports.asked
    for t, question, _, lane, keys in counts.asked:
        for source in (counts, reports):
            assert source.sums[t, lane].n == len(keys)
            assert source.sums[t, lane].counts.size == n_answers(
                question, simulations[0].curator.states
            )
