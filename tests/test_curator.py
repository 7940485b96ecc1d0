"""The curator by itself: one call per timestamp, all memory in one state."""

import contextlib

import numpy as np
import pytest

from retrasyn import METHODS, Box, Curator, Grid, Roster
from retrasyn.errors import SettingError
from retrasyn.mechanisms.base import drive
from retrasyn.messages import MICRO, Aggregate, Ask, Flags, Grant, Question
from retrasyn.oracles.registry import n_answers, oracle_for
from retrasyn.run_settings import RunSettings, micro_nats
from support.public_maps import map_for

GRID = Grid(Box(0, 0, 1, 1), 3)


def roster(n):
    keys = np.arange(n)
    return Roster(keys=keys, addresses=keys.astype(np.uint64), slots=np.zeros(n, np.int64))


def answer(curator):
    """Return a collect function that perturbs invented states."""

    def collect(grant, lane):
        n_states = n_answers(grant.question, curator.states)
        states = (grant.reporters * 7 % n_states).astype(np.int32)
        if not grant.private:
            return Aggregate(counts=np.bincount(states, minlength=n_states), n=states.size)
        oracle = oracle_for(grant)
        packed = oracle.perturb(
            states, grant.reporters.astype(np.uint64), key=grant.t, n_answers=n_states
        )
        return oracle.aggregate(packed, n_answers=n_states)

    return collect


def run(curator, times):
    return [
        curator.step(
            t,
            size=20 + t % 3,
            roster=roster(60),
            collect=answer(curator),
            flags=Flags(n_entering=4, ages_of_quitters=np.array([1, 3, 9])),
        )
        for t in times
    ]


def settings_of(name):
    return RunSettings.of(name, grid=GRID, window=4, seed=1, **map_for(name, GRID.box))


@pytest.mark.parametrize("name", METHODS)
def test_a_saved_and_restored_state_goes_on_alike(name):
    one = Curator(settings_of(name))
    run(one, range(10))
    other = Curator(settings_of(name))
    other.state.load_arrays(one.state.to_arrays())
    for ours, theirs in zip(run(one, range(10, 25)), run(other, range(10, 25)), strict=True):
        assert ours.ids.tobytes() == theirs.ids.tobytes()
        assert ours.x.tobytes() == theirs.x.tobytes()
        assert (ours.n_reports, ours.epsilon_t) == (theirs.n_reports, theirs.epsilon_t)


@pytest.mark.parametrize("name", METHODS)
def test_a_dialogue_depends_on_its_view_and_the_answers_alone(name):
    curator = Curator(settings_of(name))
    run(curator, range(15))
    answers = {}

    def ask(question):
        if question not in answers:
            grant = curator.grant(question, t=15, roster=roster(60))
            empty = grant.reporters.size == 0
            answers[question] = (
                None
                if empty
                else curator.estimate(question, grant, answer(curator)(grant, question.lane))
            )
        return answers[question]

    before = curator.state.to_arrays()
    flags = Flags(n_entering=4, ages_of_quitters=np.array([1, 3, 9]))
    flags = flags if METHODS[name].presence == "flags" else None
    first, again = (
        drive(curator.begin(15, size=20, n_enrolled=60, flags=flags), ask) for _ in range(2)
    )

    assert answers
    assert np.array_equal(first.released, again.released)
    after = curator.state.to_arrays()
    for part in before:
        if not part.startswith("ledger"):  # charged by the grants
            assert np.array_equal(before[part], after[part], equal_nan=True), part


@pytest.mark.parametrize("name", METHODS)
def test_where_nobody_is_nobody_is_asked_or_charged_and_time_goes_on(name, monkeypatch):
    curator = Curator(settings_of(name))
    run(curator, range(6))
    before = {key: array.copy() for key, array in curator.state.ledger.to_arrays().items()}
    monkeypatch.setattr(type(curator.state.ledger), "grant", None)  # would be called in vain
    nobody = Flags(n_entering=0, ages_of_quitters=np.empty(0, np.int64))

    release = curator.step(6, size=0, roster=Roster.empty(), collect=answer(curator), flags=nobody)

    assert (release.t, release.n_reports, release.epsilon_t) == (6, 0, 0.0)
    after = curator.state.ledger.to_arrays()
    assert all(np.array_equal(before[key], after[key]) for key in before)


def test_a_fresh_state_survives_saving():
    one, other = (
        Curator(RunSettings.of(grid=GRID, seed=0)),
        Curator(RunSettings.of(grid=GRID, seed=0)),
    )
    other.state.load_arrays(one.state.to_arrays())
    assert other.state.t is None
    assert other.state.memory.released is None


def test_timestamps_come_one_after_the_other():
    curator = Curator(RunSettings.of(grid=GRID, seed=0))
    run(curator, [5])
    with pytest.raises(SettingError, match="timestamp 7 follows 5"):
        run(curator, [7])


def test_reporters_who_stay_silent_are_charged_all_the_same():
    curator = Curator(RunSettings.of("sample-p", grid=GRID, window=3, seed=0))
    nothing = Aggregate(counts=np.zeros(curator.states.n_states, np.int64), n=0)
    release = curator.step(0, size=5, roster=roster(9), collect=lambda grant, lane: nothing)
    assert release.n_reports == 9
    assert not curator.state.ledger.available(3, np.arange(9)).any()
    assert curator.state.memory.released is None


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), 1e-9, 41])
def test_budgets_without_sense_are_refused(epsilon):
    with pytest.raises(SettingError, match="epsilon="):
        micro_nats(epsilon)


@pytest.mark.parametrize(("epsilon", "micro"), [(1, 1_000_000), (0.1, 100_000), (2.3, 2_300_000)])
def test_budgets_are_whole_micro_nats(epsilon, micro):
    assert micro_nats(epsilon) == micro


def test_a_window_of_nothing_is_refused():
    with pytest.raises(SettingError, match="window=0"):
        Curator(RunSettings.of(grid=GRID, window=0, seed=0))


def test_a_negative_ledger_key_is_refused():
    who = Roster(keys=np.array([-1]), addresses=np.zeros(1, np.uint64), slots=np.zeros(1, np.int64))
    with pytest.raises(SettingError, match="negative"):
        Curator(RunSettings.of(grid=GRID, seed=0)).step(0, size=1, roster=who, collect=None)


def one_sum(curator, n, *, epsilon=MICRO, about="transition", seed=0):
    """Return a grant to n devices, and the sum of their reports."""
    states = np.random.default_rng(seed).integers(9, size=n).astype(np.int32)
    grant = Grant(
        t=0,
        epsilon=epsilon,
        reporters=np.arange(n),
        question=Question(about=about),
        n_answers=curator.states.n_states,
    )
    oracle = oracle_for(grant)
    packed = oracle.perturb(
        states, np.arange(n, dtype=np.uint64), key=seed, n_answers=grant.n_answers
    )
    return grant, oracle.aggregate(packed, n_answers=grant.n_answers)


def test_fewer_reports_than_the_fewest_wait_and_are_added_to_the_next():
    curator = Curator(RunSettings.of(grid=Grid(Box(0, 0, 1, 1), 2), fewest=50))
    (grant, first), (_, second) = one_sum(curator, 30, seed=1), one_sum(curator, 25, seed=2)
    ask = Ask(share=1.0)

    assert curator.estimate(ask, grant, first) is None
    assert curator.state.n_waiting == 30
    found = curator.estimate(ask, grant, second)

    whole = oracle_for(grant).estimate(first + second)
    assert (found.n, found.variance) == (55, whole.variance)
    assert np.array_equal(found.frequencies, whole.frequencies)
    assert curator.state.n_waiting == 0
    assert curator.estimate(ask, grant, first) is None  # and so on


def test_sums_of_different_budgets_are_estimated_apart_and_averaged_by_precision():
    curator = Curator(RunSettings.of("retrasyn-b", grid=Grid(Box(0, 0, 1, 1), 2), fewest=50))
    budgets = {300_000: 20, 700_000: 20, 500_000: 20}
    sums = [one_sum(curator, n, epsilon=e, seed=e) for e, n in budgets.items()]
    *waiting, found = [curator.estimate(Ask(share=1.0), *each) for each in sums]

    assert waiting == [None, None]
    apart = [oracle_for(grant).estimate(aggregate) for grant, aggregate in sums]
    precisions = np.array([1 / estimate.variance for estimate in apart])
    mean = sum(p * e.frequencies for p, e in zip(precisions, apart, strict=True)) / precisions.sum()
    assert found.n == 60
    assert found.variance == pytest.approx(1 / precisions.sum())
    assert found.frequencies == pytest.approx(mean)
    assert curator.state.waiting == {}


def test_lanes_wait_apart_and_what_a_mechanism_adds_up_itself_does_not_wait():
    curator = Curator(RunSettings.of("lpd", grid=Grid(Box(0, 0, 1, 1), 2), fewest=50))
    grant, aggregate = one_sum(curator, 30)
    for lane in ("probe", "publish"):
        assert curator.estimate(Ask(share=1.0, lane=lane), grant, aggregate) is None
    assert curator.state.n_waiting == 60
    at_once = curator.estimate(Ask(share=1.0, lane="older/2", adds_up=True), grant, aggregate)
    assert at_once.n == 30
    dialogue = Curator(RunSettings.of(grid=GRID)).begin(0)
    asks = [next(dialogue)]
    with contextlib.suppress(StopIteration):
        while True:
            asks.append(dialogue.send(None))
    assert [ask.adds_up for ask in asks] == [ask.question.about == "older" for ask in asks]


def test_sums_that_wait_survive_saving():
    settings = RunSettings.of(grid=Grid(Box(0, 0, 1, 1), 2), fewest=50)
    one, other = Curator(settings), Curator(settings)
    grant, first = one_sum(one, 30, seed=1)
    _, second = one_sum(one, 30, seed=2)
    one.estimate(Ask(share=1.0, lane="a/b"), grant, first)
    other.state.load_arrays(one.state.to_arrays())
    ours, theirs = (
        each.estimate(Ask(share=1.0, lane="a/b"), grant, second) for each in (one, other)
    )
    assert ours.n == theirs.n == 60
    assert np.array_equal(ours.frequencies, theirs.frequencies)


def test_estimates_of_nobody_are_refused():
    with pytest.raises(SettingError, match="fewest=0"):
        RunSettings.of(grid=GRID, fewest=0)
