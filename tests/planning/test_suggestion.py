"""Settings that fit recorded data, and data of which nothing can be learnt as it is."""

import json
import time

import numpy as np
import pytest

import retrasyn
from retrasyn import Grid, RunSettings, demo_city, evaluate
from retrasyn.data.activity import Activity
from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import InputError
from retrasyn.metrics import kernels
from retrasyn.metrics.density import cell_counts
from retrasyn.metrics.divergence import mean_known
from retrasyn.metrics.pair import Pair
from retrasyn.planning.suggestion import rounded_box, suggest
from retrasyn.simulation.run import SimulatedRun
from retrasyn.sinks.collected import Collected
from support import sparse_people
from support.command_line import run
from support.folding import with_clock

TEXT = ",".join(map(str, sparse_people.BOX))


@pytest.fixture(scope="module")
def fixes(tmp_path_factory):
    """182 people over four years, a fix every three minutes of some trips."""
    return sparse_people.write_fixes(tmp_path_factory.mktemp("sparse") / "fixes.csv")


@pytest.fixture(scope="module")
def recorded(fixes):
    """The same as `convert` makes them, three minutes a timestamp."""
    path = fixes.with_name("trips.parquet")
    retrasyn.write(retrasyn.read(fixes, "auto", every="3min"), path)
    return path


def test_data_of_almost_nobody_are_said_to_be_too_few_by_every_command(recorded):
    checked = run("validate", recorded, "--box", TEXT)
    planned = run("plan", "--users", 1, "--no-simulation")
    begun = time.perf_counter()
    made = run("synthesize", recorded, "-o", recorded.with_name("s.csv"), "--box", TEXT)

    assert time.perf_counter() - begun < 5  # a second on a quiet machine, and no minutes
    assert checked.code == 0
    assert "0.23 people active at a time (median 0, least 0)" in checked.out
    assert "too few: 0.21 reports in a window" in checked.out
    assert "Too few: 0.9 reports in a window" in planned.out
    assert made.code == 2
    assert made.err.count("\n") == 1
    for words in ("too few", "timestamps are empty", "--fold day", "suggest FILE", "--anyway"):
        assert words in made.err


def heard(simulation, grid, states):
    """Collect the mean of all reports so far about cells, each as sure as it is."""
    sums, estimate = [np.zeros(grid.n_cells), 0.0], simulation.curator.estimate

    def listen(ask, grant, aggregate):
        found = estimate(ask, grant, aggregate)
        if found is not None and ask.lane in ("cell", "transition"):
            shares, n_moves = found.frequencies, states.n_moves
            precision = 1 / found.variance
            if ask.lane == "transition":
                entering = shares[n_moves : n_moves + grid.n_cells]
                moved = np.bincount(states.destinations, shares[:n_moves], grid.n_cells)
                shares, precision = moved + entering, precision / (n_moves / grid.n_cells + 1)
            sums[0] += precision * shares
            sums[1] += precision
        return found

    simulation.curator.estimate = listen
    return sums


@pytest.mark.parametrize("seed", range(3))
def test_what_is_suggested_for_them_is_closer_than_both_trivial_crowds(seed, fixes):
    found = suggest(retrasyn.read(fixes, "auto", every="1min"))
    assert (found.fold, found.grid) == ("day", 3)
    real, grid = retrasyn.read(fixes, "auto", every=found.every), Grid(found.box, found.grid)
    settings = RunSettings.of(grid=grid, window=found.window, fold=found.fold, seed=seed)
    made, collected, means = SimulatedRun.of(real, settings), Collected(), []
    sums = heard(made.simulation, grid, settings.states)
    for release in made.releases():
        collected.write(release)
        mean = np.maximum(sums[0], 0.0)
        means.append(mean / mean.sum() if mean.sum() > 0 else np.full(mean.size, 1 / mean.size))

    synthetic, folded = collected.trajectories(), real.folded()
    pair = Pair.of(folded, synthetic, grid)
    counts = cell_counts(pair.real, pair.n_timestamps, grid.n_cells)
    rng = np.random.default_rng(seed)
    sizes = counts.sum(axis=1)
    uniform = rng.multinomial(sizes, np.full(grid.n_cells, 1 / grid.n_cells))
    static = np.array([rng.multinomial(n, mean) for n, mean in zip(sizes, means, strict=True)])
    released = evaluate(folded, synthetic, grid=grid)["density_error"]
    trivial = [mean_known(kernels.divergences(counts, crowd)) for crowd in (uniform, static)]

    assert released < 0.9 * trivial[0]
    assert released < 0.9 * trivial[1]
    assert made.receipt().within_epsilon_per_person


def test_enough_people_are_not_folded_and_their_grid_is_the_clearest():
    found = suggest(demo_city(n_users=5_000, n_timestamps=60, seed=1))
    assert (found.fold, found.every, found.as_recorded) == (None, None, True)
    assert found.grid == found.outlook.clearest
    assert found.outlook.verdict == "enough"
    assert found.reasons["every"] == "timestamps are taken as they are: the data has no clock"


def test_the_step_is_the_longest_at_which_people_move_by_at_most_a_cell():
    rng = np.random.default_rng(1)
    n, length = 3_000, 240  # minutes
    walk = np.clip(np.cumsum(rng.normal(0, 0.012, (2, n, length)), axis=2) + 0.5, 0, 1)
    columns = {
        "traj_id": np.repeat(np.arange(n), length),
        "t": np.tile(np.arange(length), n),
        "x": walk[0].ravel(),
        "y": walk[1].ravel(),
    }
    clock = retrasyn.data.metadata.Clock("2026-03-01T00:00:00+00:00", 60.0)
    found = suggest(Trajectories.from_columns(**columns, clock=clock))
    minutes = round(found.period / 60)

    def moved(k):
        steps = np.abs(np.diff(walk[:, :, k - 1 :: k], axis=2)).max(axis=0)
        return found.grid * steps.mean()

    longer = [k for k in (1, 2, 3, 5, 10, 15, 20, 30, 60, 120) if k > minutes]
    assert moved(minutes) <= 1.1  # of the box that was found, which is a little larger or smaller
    assert all(moved(k) > 0.9 for k in longer)


def test_days_are_folded_only_where_they_are_of_somebody():
    real = with_clock(demo_city(n_users=40, n_timestamps=60, seed=1))
    nameless = Trajectories(real.stream_ids, real.begins, real.starts, real.x, real.y)
    with pytest.raises(InputError, match="too few: at no step are there enough people"):
        suggest(nameless)


def test_stray_points_do_not_make_the_box():
    rng = np.random.default_rng(2)
    x, y = rng.uniform(116.2, 116.5, 1000), rng.uniform(39.8, 40.0, 1000)
    everybody, none = rounded_box(x, y)
    assert none == 0
    assert everybody.x0 <= x.min() < x.max() <= everybody.x1
    box, outside = rounded_box(np.append(x, -74.0), np.append(y, 40.7))
    assert outside == pytest.approx(1 / 1001)
    assert box.x1 - box.x0 < 0.4


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_a_box_has_round_figures_at_any_scale_and_holds_everybody(factor):
    rng = np.random.default_rng(3)
    x, y = factor * rng.uniform(-3, 11, 500), factor * rng.uniform(5, 9, 500)
    box, outside = rounded_box(x, y)
    assert outside == 0
    assert len(f"{box.x1:g}") <= len(f"{factor * 11:g}") + 2
    assert box.x1 - box.x0 < factor * 16


def test_the_command_prints_what_can_be_copied_and_what_is_not_public(fixes):
    shown = run("suggest", fixes)
    values = json.loads(run("suggest", fixes, "--json").out)

    assert shown.code == 0
    assert f"retrasyn convert {fixes} -o fixes.20min.parquet --every 20min" in shown.out
    assert all(command in shown.out for command in values["commands"])
    assert "--fold day" in values["options"]
    assert values["outlook"]["verdict"] == "enough"
    assert set(values["reasons"]) == {"every", "box", "grid", "window", "fold"}
    for words in ("None of this is public", "The box matters most", "before the first report"):
        assert words in shown.out


def test_a_converted_file_is_taken_as_it_is_where_its_step_fits(tmp_path):
    path = tmp_path / "city.parquet"
    retrasyn.write(demo_city(n_users=5_000, n_timestamps=60, seed=1), path)
    shown = run("suggest", path)
    assert f"\nretrasyn synthesize {path} -o synthetic.parquet --box 0,0,10,10 --grid" in shown.out
    assert "retrasyn convert" not in shown.out


def test_another_step_needs_what_a_file_was_converted_from(recorded):
    assert "(RAW: the file it was converted from" in run("suggest", recorded).out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["no.csv"], "does not exist"),
        (["{fixes}", "--epsilon", "0"], "epsilon=0"),
        (["{fixes}", "--finest", "soon"], "'soon' is not a length of time"),
        (["{fixes}", "--user", "who"], "who"),
    ],
)
def test_what_cannot_be_suggested_is_one_line(arguments, says, fixes):
    done = run("suggest", *(word.format(fixes=fixes) for word in arguments))
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert done.err.count("\n") == 1


def test_the_release_of_folded_days_is_compared_with_folded_days(fixes, tmp_path):
    found = suggest(retrasyn.read(fixes, "auto", every="1min"))
    real, made = tmp_path / "real.parquet", tmp_path / "made.parquet"
    retrasyn.write(retrasyn.read(fixes, "auto", every=found.every), real)
    done = run("synthesize", real, "-o", made, *found.options.split(), "--seed", 0)

    assert done.code == 0
    folded = retrasyn.read(real).folded()
    assert Activity.of(folded).words in done.out
    assert found.outlook.words in done.out
    assert "people active" not in made.with_name("made.parquet.receipt.json").read_text()
    grid = Grid(found.box, found.grid)
    ours = evaluate(folded, retrasyn.read(made), grid=grid)["density_error"]
    told = run("evaluate", real, made, "--grid", found.grid, "--json")
    assert json.loads(told.out)["density_error"] == pytest.approx(ours)
    again = run("compare", real, made, "--grid", found.grid, "--json")
    assert json.loads(again.out)["made"]["density_error"] == pytest.approx(ours)
