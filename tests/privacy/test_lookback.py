"""Reports that look back further rest longer, and the recount knows how far each one reached."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from retrasyn import METHODS
from retrasyn.errors import BudgetExceeded
from retrasyn.interpretation import SAFE
from retrasyn.messages import Ask, Question, Roster
from retrasyn.privacy.division import UserDivision
from retrasyn.privacy.ledger import UserLedger
from retrasyn.privacy.replay import Replay
from retrasyn.privacy.selection import PhaseSlots

EPSILON = 1_000_000
FURTHEST = 9
RECOUNTS = {
    "position": naive.worst_window_of_positions,
    "transition": naive.worst_window_of_transitions,
}
units = st.sampled_from(list(RECOUNTS))
wishes = st.lists(
    st.tuples(
        st.integers(0, 6),  # timestamps since the last wish
        st.integers(1, FURTHEST),  # lookback
        st.lists(st.integers(0, 4), max_size=4),  # who
        st.integers(1, EPSILON),
    ),
    max_size=30,
)


@given(st.integers(1, 6), units, wishes)
def test_no_window_is_read_by_two_reports_whatever_their_lookbacks(window, unit, asked):
    gap = SAFE.answer(unit=unit).gap(window)
    ledger, t = UserLedger(epsilon=EPSILON, gap=gap), 0
    reports = {key: [] for key in range(5)}
    for advance, lookback, keys, _ in asked:
        t += advance
        who = np.array(sorted(set(keys)), np.int64)
        free = who[ledger.available(t, who, lookback)]
        if free.size < who.size:
            with pytest.raises(BudgetExceeded, match=f"less than {gap + lookback - 1} timestamps"):
                ledger.charge(t, who, lookback)
        ledger.charge(t, free, lookback)
        for key in free.tolist():
            reports[key].append((t, lookback, EPSILON))
    for spent in reports.values():
        assert RECOUNTS[unit](spent, window) <= EPSILON


@given(st.integers(1, 6), units, st.integers(1, FURTHEST), st.integers(1, FURTHEST))
def test_the_rest_is_as_short_as_it_can_be(window, unit, before, lookback):
    ledger = UserLedger(epsilon=EPSILON, gap=SAFE.answer(unit=unit).gap(window))
    rest, recount = ledger.rest(lookback), RECOUNTS[unit]
    enough = [(0, before, 1), (rest, lookback, 1)]
    too_soon = [(0, before, 1), (rest - 1, lookback, 1)]
    assert recount(enough, window) == 1
    if rest > 1:  # two reports at one timestamp are refused for another reason
        assert recount(too_soon, window) == 2
    assert rest == window + lookback - (unit == "transition")


@given(st.integers(1, 6), units, wishes, st.integers(0, 30))
def test_the_recount_equals_a_count_over_all_windows(window, unit, asked, pause):
    span = SAFE.answer(unit=unit).gap(window)
    replay, reports, t = Replay(span, FURTHEST), {key: [] for key in range(5)}, 0
    for number, (advance, lookback, keys, epsilon) in enumerate(asked):
        t += advance
        replay.observe(t, epsilon, np.array(keys, np.int64), lookback)
        for key in keys:
            reports[key].append((t, lookback, epsilon))
        if number == pause:  # a checkpoint, and a run that goes on from it
            assert replay.worst == worst_of_all(reports, unit, window)
            arrays = replay.to_arrays("declared")
            replay = Replay(span, FURTHEST)
            replay.load_arrays("declared", arrays)
    peaks = [*replay.peaks().tolist(), *[0] * 5]
    for key, spent in reports.items():
        assert peaks[key] == RECOUNTS[unit](spent, window)
    assert replay.worst == worst_of_all(reports, unit, window)
    assert replay.n_reports == sum(map(len, reports.values()))


def worst_of_all(reports, unit, window):
    return max(RECOUNTS[unit](spent, window) for spent in reports.values())


def test_asking_for_the_worst_window_changes_nothing():
    asked = Replay(3, 5)
    silent = Replay(3, 5)
    for t, lookback in enumerate([1, 5, 2, 1, 4]):
        for replay in (asked, silent):
            replay.observe(3 * t, 7, np.array([0, t % 2]), lookback)
        assert asked.worst >= 7
    assert asked.worst == silent.worst


@pytest.mark.parametrize("lookback", [0, 6])
def test_a_lookback_the_recount_was_not_told_of_is_refused(lookback):
    with pytest.raises(ValueError, match=r"outside 1\.\.5"):
        Replay(3, 5).observe(0, 1, np.array([0]), lookback)


@pytest.mark.parametrize("name", METHODS)
def test_only_population_division_asks_what_looks_back_further_than_a_state(name):
    row = METHODS[name]
    if not row.division.splits_users:
        assert row.furthest_lookback(21) == 1


def test_a_grant_of_the_division_charges_the_lookback_of_its_question():
    keys = np.arange(300)
    roster = Roster(keys=keys, addresses=keys.astype(np.uint64), slots=np.zeros(300, np.int64))
    gap = 4
    ledger = UserDivision(PhaseSlots(age_share=0.9)).open_ledger(epsilon=EPSILON, gap=gap)
    ledger.charge(0, keys)  # everybody has just reported a transition
    first = {}
    for t, threshold in itertools.product(range(1, 40), (2, 6, 8)):
        ask = Ask(share=1.0, question=Question(about="older", threshold=threshold))
        grant = ledger.grant(ask, t=t, roster=roster, seed=3)
        assert grant.question == ask.question
        for key in grant.reporters.tolist():
            first.setdefault(key, (t, threshold))
    assert len(first) > 200
    assert all(t >= gap + threshold - 1 for t, threshold in first.values())
    assert min(t for t, _ in first.values()) == gap + 2 - 1
