"""The settings of a run: built and checked once, written down and read back."""

import dataclasses
import json

import numpy as np
import pytest

import retrasyn
from retrasyn import METHODS, Box, Grid, RunSettings
from retrasyn.errors import CheckpointError, SettingError
from retrasyn.simulation.city import CITY_BOX
from support.public_maps import map_for, public_map

GRID = Grid(CITY_BOX, 3)


@pytest.fixture(scope="module")
def city():
    return retrasyn.demo_city(n_users=80, n_timestamps=20, seed=2)


@pytest.mark.parametrize("name", METHODS)
def test_what_is_written_down_is_read_back(name):
    settings = RunSettings.of(
        name,
        grid=GRID,
        epsilon=2,
        window=7,
        seed=5,
        unit="transition",
        door="reports",
        **map_for(name, CITY_BOX),
    )
    written = json.loads(json.dumps(settings.to_dict()))
    assert RunSettings.from_dict(written, public_map=settings.public_map) == settings
    assert "row" not in written


@pytest.mark.parametrize(
    "options",
    [
        {"faithful": True},
        {"faithful": True, "jump": "split", "ledger": "user"},
        {"settings": {"alpha": "4", "unselected": "kept"}, "oracle": "auto"},
        {"length_scale": 12.0, "outside": "drop"},
    ],
)
def test_every_option_is_read_back(options):
    settings = RunSettings.of("retrasyn-p", grid=GRID, seed=0, **options)
    assert RunSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


@pytest.mark.parametrize("asked", [{}, {"seed": "random"}], ids=["by default", "asked for"])
def test_a_secret_seed_is_neither_written_down_nor_shown(asked):
    settings = RunSettings.of(grid=GRID, **asked)
    assert settings.seed_is_secret
    assert settings.seed != RunSettings.of(grid=GRID, **asked).seed
    assert settings.to_dict()["seed"] == "random"
    assert str(settings.seed) not in repr(settings)
    assert settings.public_seed is None
    assert RunSettings.from_dict(settings.to_dict()) != settings
    assert RunSettings.from_dict(settings.to_dict(), seed=settings.seed) == settings


def test_a_row_of_ones_own_is_told_part_by_part_and_given_again():
    row = dataclasses.replace(METHODS["retrasyn-p"], endpoints=False)
    settings = RunSettings.of(row, grid=GRID, seed=0)
    written = json.loads(json.dumps(settings.to_dict()))
    assert written["row"]["endpoints"] is False
    assert written["row"]["mechanism"]["portion"]["is"] == "Adaptive"
    assert written["row"]["mechanism"]["update"] == "select_significant"
    assert RunSettings.from_dict(written, row=row) == settings
    with pytest.raises(SettingError, match="not in the table of methods"):
        RunSettings.from_dict(written)


@pytest.mark.parametrize("values", [{}, {"method": "steered", "seed": 0, "settings": 3}])
def test_what_are_no_settings_is_refused(values):
    with pytest.raises(SettingError, match="no settings of a run"):
        RunSettings.from_dict(values)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"epsilon": 0}, "epsilon=0 must lie above 0"),
        ({"window": 0}, "window=0 must be at least 1"),
        ({"oracle": "rappor"}, "'rappor' is not one of"),
        ({"faithful": True}, "not a method of the paper"),
    ],
)
def test_settings_are_checked_however_they_are_made(changes, says):
    with pytest.raises(SettingError, match=says):
        RunSettings.of("steered", grid=GRID, **changes)
    with pytest.raises(SettingError, match=says):
        dataclasses.replace(RunSettings.of("steered", grid=GRID, seed=0), **changes)


def test_a_name_a_row_and_whole_settings_make_the_same_run(city):
    options = {"window": 5, "seed": 3}
    by_name = retrasyn.synthesize(city, "retrasyn-b", grid=GRID, **options)
    by_row = retrasyn.synthesize(city, METHODS["retrasyn-b"], grid=GRID, **options)
    whole = RunSettings.of("retrasyn-b", grid=GRID, **options)
    by_settings = retrasyn.synthesize(city, whole)
    for synthetic, receipt in (by_row, by_settings):
        assert receipt == by_name.receipt
        assert np.array_equal(synthetic.x, by_name.synthetic.x)


@pytest.mark.parametrize("more", [{"epsilon": 2}, {"grid": 4}, {"box": CITY_BOX}])
def test_beside_whole_settings_no_other_may_be_given(city, more):
    with pytest.raises(SettingError, match="give a RunSettings alone"):
        retrasyn.synthesize(city, RunSettings.of(grid=GRID, seed=0), **more)


def test_a_checkpoint_of_another_row_of_the_same_name_is_refused(city, tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    row = dataclasses.replace(METHODS["retrasyn-p"], name="mine")
    other = dataclasses.replace(row, jump="clamp")
    with pytest.raises(KeyboardInterrupt):
        retrasyn.synthesize(city, row, grid=GRID, checkpoint=tmp_path, progress=stop, seed=0)
    with pytest.raises(CheckpointError, match="jump='split', this run has 'clamp'"):
        retrasyn.synthesize(city, other, grid=GRID, checkpoint=tmp_path, resume=True, seed=0)
    again = retrasyn.synthesize(city, row, grid=GRID, checkpoint=tmp_path, resume=True, seed=0)
    assert again.receipt == retrasyn.synthesize(city, row, grid=GRID, seed=0).receipt


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([3.0, 3.0, 3.0], [7.0, 7.0, 7.0]),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ([1.0, 2.0, 4.0], [5.0, 5.0, 5.0]),
        ([-1e9, -1e9, -1e9], [1.0, 2.0, 3.0]),
        ([1.0, 2.0, 4.0], [5.0, 6.0, 9.0]),
    ],
)
@pytest.mark.filterwarnings("ignore::retrasyn.simulation.run.BoxInferredWarning")
def test_synthesize_validate_and_evaluate_agree_on_the_box_of_data(x, y):
    from retrasyn.data.validation import validate
    from retrasyn.metrics.suite import grid_over

    real = retrasyn.Trajectories.from_columns(traj_id=[1, 1, 1], t=[0, 1, 2], x=x, y=y)
    box = Box.around(real.x, real.y)
    synthetic, receipt = retrasyn.synthesize(real, grid=2, window=2, seed=0)
    assert receipt.box == validate(real, grid=2).box == grid_over(real, 2).box == box
    assert receipt.box_inferred_from_data
    assert retrasyn.evaluate(real, synthetic, grid=2, span=2).to_dict()
    assert box.x0 <= min(x) <= max(x) <= box.x1
    assert box.y0 <= min(y) <= max(y) <= box.y1


def test_a_public_map_chooses_the_row_that_uses_it():
    plain, roads = public_map(CITY_BOX), public_map(CITY_BOX, roads=True)
    for name in (None, "steered"):
        assert RunSettings.of(name, grid=GRID).method.name == "steered"
        assert RunSettings.of(name, grid=GRID, public_map=plain).method.name == "steered-map"
        assert RunSettings.of(name, grid=GRID, public_map=roads).method.name == "steered-roads"
    assert RunSettings.of("steered-map", grid=GRID, public_map=roads).method.name == "steered-map"
    by_row = RunSettings.of(METHODS["steered-map"], grid=GRID, public_map=plain)
    assert by_row.method.topics == ("transition", "older", "faster", "cell")


@pytest.mark.parametrize(
    ("method", "known", "said"),
    [
        ("steered-map", None, "steered-map needs a public map; without one use steered"),
        ("steered-roads", None, "steered-roads needs a public map; without one use steered"),
        ("steered-roads", public_map(CITY_BOX), "needs a public map with roads; use steered-map"),
        ("retrasyn-p", public_map(CITY_BOX), "retrasyn-p uses no public map; steered does"),
        ("steered-flags", public_map(CITY_BOX), "steered-flags uses no public map"),
        (METHODS["steered"], public_map(CITY_BOX), "steered uses no public map; steered does"),
        (None, public_map((0, 0, 1, 2)), "is of the box 0,0,1,2, the grid of .*; make both of one"),
    ],
)
def test_a_map_that_does_not_fit_and_a_method_without_its_map_are_refused(method, known, said):
    with pytest.raises(SettingError, match=said):
        RunSettings.of(method, grid=GRID, public_map=known)


def test_a_run_without_a_box_takes_the_public_one_of_its_map(city):
    known = public_map((-1, -1, 30, 31))
    released = retrasyn.synthesize(city, seed=0, window=5, public_map=known)
    assert released.receipt.box == known.box
    assert not released.receipt.box_inferred_from_data
