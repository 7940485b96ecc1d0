"""The curator by itself: one call per timestamp, all memory in one state."""

import numpy as np
import pytest

from retrasyn import METHODS, Box, Curator, Grid, Roster
from retrasyn.errors import SettingError
from retrasyn.mechanisms.base import drive
from retrasyn.messages import Aggregate, Flags
from retrasyn.oracles.registry import n_answers, oracle_for
from retrasyn.run_settings import RunSettings, micro_nats

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


@pytest.mark.parametrize("name", METHODS)
def test_a_saved_and_restored_state_goes_on_alike(name):
    one = Curator(RunSettings.of(name, grid=GRID, window=4, seed=1))
    run(one, range(10))
    other = Curator(RunSettings.of(name, grid=GRID, window=4, seed=1))
    other.state.load_arrays(one.state.to_arrays())
    for ours, theirs in zip(run(one, range(10, 25)), run(other, range(10, 25)), strict=True):
        assert ours.ids.tobytes() == theirs.ids.tobytes()
        assert ours.x.tobytes() == theirs.x.tobytes()
        assert (ours.n_reports, ours.epsilon_t) == (theirs.n_reports, theirs.epsilon_t)


@pytest.mark.parametrize("name", METHODS)
def test_a_dialogue_depends_on_its_view_and_the_answers_alone(name):
    curator = Curator(RunSettings.of(name, grid=GRID, window=4, seed=1))
    run(curator, range(15))
    answers = {}

    def ask(question):
        if question not in answers:
            grant = curator.grant(question, t=15, roster=roster(60))
            empty = grant.reporters.size == 0
            answers[question] = (
                None if empty else curator.estimate(grant, answer(curator)(grant, question.lane))
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
