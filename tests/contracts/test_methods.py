"""What every method promises, checked for every row of the table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrasyn import METHODS, synthesize
from retrasyn.engines.base import LocalEngine
from retrasyn.errors import SettingError
from retrasyn.interpretation import SAFE
from retrasyn.methods import configure, find_method, parts_of, settings_of
from retrasyn.run_settings import RunSettings
from retrasyn.simulation.city import CITY_BOX, demo_city
from retrasyn.simulation.population import SimulatedDevices
from retrasyn.simulation.stream import Live
from retrasyn.space import Box, Grid, StateSpace
from retrasyn.synthesis.lifecycle import Immortal
from support.public_maps import map_for
from support.streams import BOX, recordings, sizes

NAMES = list(METHODS)
PRIVATE = [name for name, row in METHODS.items() if row.division.private]
SIZED = [
    name
    for name, row in METHODS.items()
    if not isinstance(row.lifecycle, Immortal) and row.presence != "hidden"
]


@pytest.fixture(scope="module")
def city():
    return demo_city(n_users=400, n_timestamps=60, seed=2)


def columns(trajectories):
    return [
        getattr(trajectories, name).tobytes()
        for name in ("stream_ids", "begins", "starts", "x", "y")
    ]


def check_shape(synthetic, grid):
    """Streams have consecutive t, stay in the box, and step only to neighbouring cells."""
    assert np.isfinite(synthetic.x).all()
    assert np.isfinite(synthetic.y).all()
    cells, n_outside = grid.locate(synthetic.x, synthetic.y)
    assert n_outside == 0
    inner = np.ones(synthetic.n_points, np.bool_)
    inner[synthetic.starts[:-1]] = False
    rows = np.flatnonzero(inner)
    assert (StateSpace(grid).moves(cells[rows - 1], cells[rows]) >= 0).all()
    assert (synthetic.lengths > 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_synthetic_streams_are_well_formed(name, city):
    synthetic, _ = synthesize(
        city, name, box=CITY_BOX, window=10, seed=0, **map_for(name, CITY_BOX)
    )
    check_shape(synthetic, Grid(CITY_BOX, 6))


@pytest.mark.parametrize("name", SIZED)
def test_every_timestamp_has_as_many_points_as_the_real_one(name, city):
    synthetic, _ = synthesize(
        city, name, box=CITY_BOX, window=10, seed=0, **map_for(name, CITY_BOX)
    )
    span = (city.first_t, city.last_t)
    assert sizes(synthetic, *span) == sizes(city, *span)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=3)
@given(n_shards=st.integers(2, 7))
def test_any_number_of_shards_makes_the_same_bytes(name, city, n_shards):
    one, _ = synthesize(city, name, box=CITY_BOX, window=10, seed=0, **map_for(name, CITY_BOX))
    keywords = {"box": CITY_BOX, "window": 10, "seed": 0} | map_for(name, CITY_BOX)
    many, _ = synthesize(city, name, engine=LocalEngine(n_shards), **keywords)
    assert columns(one) == columns(many)


@pytest.mark.parametrize("name", NAMES)
def test_any_number_of_threads_makes_the_same_bytes(name, city, monkeypatch):
    monkeypatch.setattr("retrasyn.synthesis.shard.MIN_SLICE", 32)
    keywords = {"box": CITY_BOX, "window": 10, "seed": 0} | map_for(name, CITY_BOX)
    one, two = (
        columns(synthesize(city, name, engine=LocalEngine(1, n), **keywords).synthetic)
        for n in (1, 2)
    )
    assert one == two


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(name, city):
    first, again, other = (
        columns(
            synthesize(
                city, name, box=CITY_BOX, window=10, seed=seed, **map_for(name, CITY_BOX)
            ).synthetic
        )
        for seed in (3, 3, 4)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize("name", NAMES)
def test_a_run_stopped_and_resumed_gives_the_same_bytes(name, city, tmp_path):
    whole = synthesize(city, name, box=CITY_BOX, window=10, seed=0, **map_for(name, CITY_BOX))

    def stop(done, total):
        if done in (1, 25, 40):
            raise KeyboardInterrupt

    keywords = {"box": CITY_BOX, "window": 10, "seed": 0} | map_for(name, CITY_BOX)
    keywords |= {"checkpoint": tmp_path / "kept", "resume": True}
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            synthesize(city, name, progress=stop, **keywords)
    resumed = synthesize(city, name, **keywords)
    assert columns(resumed.synthetic) == columns(whole.synthetic)
    assert resumed.receipt == whole.receipt


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(real=recordings(), window=st.integers(1, 20), faithful=st.booleans(), data=st.data())
def test_no_window_is_over_epsilon_in_the_declared_unit_and_key(name, real, window, faithful, data):
    unit = data.draw(st.sampled_from(["position", "transition"]))
    ledger = data.draw(st.sampled_from(["user", "stream"]))
    jump = data.draw(st.sampled_from([None, "split", "clamp"]))
    faithful = faithful and METHODS[name].of_paper
    asked = {} if faithful else {"unit": unit, "ledger": ledger, "jump": jump}
    asked |= map_for(name, BOX)
    synthetic, receipt = synthesize(
        real, name, box=BOX, grid=3, window=window, faithful=faithful, seed=0, **asked
    )
    check_shape(synthetic, Grid(Box(*BOX), 3))
    if name in PRIVATE:
        assert receipt.within_guarantee
        assert receipt.worst_window.declared.epsilon <= 1.0
    else:
        assert receipt.worst_window.declared.epsilon is None
        assert "NOT PRIVATE" in receipt.guarantee


@pytest.mark.parametrize("name", PRIVATE)
@settings(max_examples=40)
@given(real=recordings(max_users=25), window=st.integers(1, 20), seed=st.integers(0, 99))
def test_by_default_no_person_exceeds_epsilon_in_any_window_of_positions(name, real, window, seed):
    keywords = {"box": BOX, "grid": 3, "window": window, "seed": seed} | map_for(name, BOX)
    _, receipt = synthesize(real, name, **keywords)
    assert receipt.worst_window.person_position.epsilon <= 1.0


@pytest.mark.parametrize("name", [name for name, row in METHODS.items() if row.cells])
def test_every_person_has_one_role_and_spends_at_most_epsilon_and_the_worst_exactly_it(
    name, city, monkeypatch
):
    told, honest = {}, SimulatedDevices.answers_to

    def answers_to(self, grant):
        for person in self.persons_of(grant).tolist():
            told.setdefault(person, []).append((grant.t, grant.question.about))
        return honest(self, grant)

    monkeypatch.setattr(SimulatedDevices, "answers_to", answers_to)
    _, receipt = synthesize(city, name, box=CITY_BOX, window=10, seed=3, **map_for(name, CITY_BOX))
    states = {"transition", "move", "enter", "quit"}
    roles = [{"state" if about in states else about for _, about in said} for said in told.values()]
    assert all(len(role) == 1 for role in roles)
    n_cells, n_speeds = (sum(role == {about} for role in roles) for about in ("cell", "faster"))
    assert n_cells == pytest.approx(0.45 * len(roles), rel=0.2)
    assert n_speeds == pytest.approx(0.05 * len(roles) * METHODS[name].speeds, rel=0.8)
    for said in told.values():
        times = sorted(t for t, _ in said)
        assert min(np.diff(times), default=11) >= 11
    assert receipt.worst_window.person_position.epsilon == 1.0


@pytest.mark.parametrize("name", SIZED)
@settings(max_examples=25)
@given(real=recordings(), side=st.integers(1, 7))
def test_awkward_streams_keep_their_sizes(name, real, side):
    keywords = {"box": BOX, "grid": side, "window": 3, "seed": 0} | map_for(name, BOX)
    synthetic, _ = synthesize(real, name, **keywords)
    span = (real.first_t, real.last_t)
    assert sizes(synthetic, *span) == sizes(real, *span)


def test_a_faithful_receipt_shows_its_true_worst_case(city):
    _, receipt = synthesize(city, "retrasyn-p", box=CITY_BOX, window=20, faithful=True, seed=0)
    assert receipt.worst_window.declared.epsilon == 1.0
    assert receipt.worst_window.person_position.epsilon > 1.0
    assert receipt.length_scale_from_data
    assert any("several streams" in item for item in receipt.not_protected)


@pytest.mark.parametrize("name", ["retrasyn-p", "retrasyn-b", "lpa-eq", "lbd-eq"])
def test_real_reports_run_through_the_same_curator(name, city):
    synthetic, receipt = synthesize(city, name, box=CITY_BOX, window=10, door="reports", seed=0)
    assert synthetic.n_points == city.n_points
    assert receipt.worst_window.person_position.epsilon <= 1.0


def test_settings_reach_their_parts():
    row, reading = configure(
        find_method("retrasyn-p"), SAFE, {"alpha": "4", "p_max": "0.3", "warm_up": "1"}
    )
    assert row.mechanism.portion.gain == 4.0
    assert row.mechanism.portion.max_portion == 0.3
    assert reading.warm_up == 1


def test_every_setting_of_a_row_can_be_given_and_a_share_of_zero_stays_one():
    row, _ = configure(find_method("steered"), SAFE, {"age_share": "0", "steers": "false"})
    assert (row.division.selection.age_share, row.steers) == (0.0, False)
    settings_ = [name for part in parts_of(row) for name in settings_of(part)]
    assert settings_ == ["age_share", "cell_share", "steers", "continuous"]
    flags = [name for part in parts_of(METHODS["steered-flags"]) for name in settings_of(part)]
    assert flags == ["cell_share", "steers", "continuous"]
    roads = [name for part in parts_of(METHODS["steered-roads"]) for name in settings_of(part)]
    assert roads == ["age_share", "cell_share", "speed_share", "steers", "continuous"]


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"beta": "1"}, "no setting 'beta'"),
        ({"kappa": "x"}, "not a whole number"),
        ({"kappa": "99"}, "outside 1..31"),
        ({"surplus": "never"}, "not one of cell-before, newest-cell"),
        ({"ratio_floor": "2"}, "outside 0..1"),
    ],
)
def test_settings_without_sense_are_refused(settings_, message):
    with pytest.raises(SettingError, match=message):
        configure(find_method("retrasyn-p"), SAFE, settings_)


@pytest.mark.parametrize(
    "answer",
    [
        {"deviation_terms": "kappa-plus-one"},
        {"unselected": "kept"},
        {"quit": "plain"},
        {"warm_up": "1"},
        {"surplus": "newest-cell"},
        {"ratio_floor": "1"},
        {"size_target": "active-and-quitting"},
    ],
    ids=str,
)
def test_every_reading_runs_and_makes_a_difference(answer, city):
    usual = synthesize(city, "retrasyn-p", box=CITY_BOX, window=10, seed=0)
    other = synthesize(city, "retrasyn-p", box=CITY_BOX, window=10, settings=answer, seed=0)
    check_shape(other.synthetic, Grid(CITY_BOX, 6))
    assert columns(usual.synthetic) != columns(other.synthetic)


@pytest.mark.parametrize("name", ["retrasyn-b", "uniform-b"])
def test_a_jump_as_the_authors_read_it_is_never_declared_per_person(name, city):
    with pytest.raises(SettingError, match="may report twice"):
        synthesize(city, name, box=CITY_BOX, settings={"jump": "authors"}, seed=0)


@pytest.mark.parametrize("name", ["retrasyn-p", "retrasyn-b", "allupdate-p"])
def test_adaptive_methods_do_not_fall_silent_for_ever(name):
    still = demo_city(n_users=3000, n_timestamps=120, seed=1)
    times = []
    curator_steps = Live.start(RunSettings.of(name, grid=Grid(CITY_BOX, 1), window=10, seed=0))
    t, traj_id, user_id = still.t, still.traj_id, still.user_id
    for now in range(120):
        rows = t == now
        columns_now = [column[rows].tolist() for column in (traj_id, still.x, still.y, user_id)]
        times += [r.t for r in curator_steps.step(now, *columns_now) if r.n_reports]
    assert max(np.diff([*times, 120])) <= 11


@pytest.mark.parametrize(
    "change",
    [
        {"age_share": "0.3"},
        {"cell_share": "0.2"},
        {"steers": "false"},
        {"continuous": "false"},
    ],
    ids=str,
)
def test_every_part_of_steered_can_be_changed_alone(change, city):
    usual = synthesize(city, "steered", box=CITY_BOX, window=10, seed=0)
    other = synthesize(city, "steered", box=CITY_BOX, window=10, settings=change, seed=0)
    check_shape(other.synthetic, Grid(CITY_BOX, 6))
    assert columns(usual.synthetic) != columns(other.synthetic)
    assert other.receipt.within_guarantee
    (name,) = change
    assert str(other.receipt.settings[name]).lower() == change[name]
