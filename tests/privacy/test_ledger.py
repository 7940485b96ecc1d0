"""Ledgers refuse; the replay recounts without them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from retrasyn.errors import BudgetExceeded
from retrasyn.messages import Ask, Grant, Question, Roster
from retrasyn.methods import METHODS
from retrasyn.privacy.division import BudgetDivision, NoPrivacy, UserDivision
from retrasyn.privacy.ledger import RoundLedger, UserLedger
from retrasyn.privacy.replay import Replay
from retrasyn.privacy.selection import OwnSlot, UniformDraw

EPSILON = 1_000_000


def roster(n, slots=0):
    keys = np.arange(n)
    return Roster(keys=keys, addresses=keys.astype(np.uint64), slots=np.full(n, slots, np.int64))


@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, EPSILON)), max_size=40),
)
def test_the_round_ledger_spends_what_the_plain_loop_says_remains_and_no_more(gap, wishes):
    ledger, spent, t = RoundLedger(epsilon=EPSILON, gap=gap), {}, 0
    for advance, wish in wishes:
        t += advance
        remaining = naive.budget_remaining(spent, t, gap, EPSILON) - spent.get(t, 0)
        assert ledger.remaining(t) == remaining
        if wish > remaining:
            with pytest.raises(BudgetExceeded, match=f"at t={t}"):
                ledger.charge(t, wish)
        else:
            ledger.charge(t, wish)
            spent[t] = spent.get(t, 0) + wish
    assert naive.worst_window(list(spent.items()), gap) <= EPSILON


def test_the_round_ledger_does_not_go_back_in_time():
    ledger = RoundLedger(epsilon=EPSILON, gap=3)
    ledger.charge(5, 1)
    with pytest.raises(BudgetExceeded, match="must not go back"):
        ledger.charge(4, 1)


def test_the_round_ledger_counts_empty_timestamps():
    ledger = RoundLedger(epsilon=EPSILON, gap=3)
    ledger.charge(0, EPSILON)
    assert [ledger.remaining(t) for t in (1, 2, 3)] == [0, 0, EPSILON]


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 2), st.sets(st.integers(0, 8))), max_size=30),
)
def test_the_user_ledger_lets_nobody_report_before_the_gap_has_passed(gap, rounds):
    ledger, last, t = UserLedger(epsilon=EPSILON, gap=gap), {}, 0
    reports: dict[int, list[tuple[int, int]]] = {}
    for advance, users in rounds:
        t += advance
        keys = np.array(sorted(users), np.int64)
        free = naive.available(last, sorted(users), t, gap)
        assert keys[ledger.available(t, keys)].tolist() == free
        if len(free) < len(users):
            before = ledger.last.copy()
            with pytest.raises(BudgetExceeded, match="reported less than"):
                ledger.charge(t, keys)
            assert np.array_equal(ledger.last[: before.size], before)
        else:
            ledger.charge(t, keys)
            for user in users:
                last[user] = t
                reports.setdefault(user, []).append((t, EPSILON))
    assert all(naive.worst_window(spent, gap) <= EPSILON for spent in reports.values())


def test_a_user_listed_twice_is_refused():
    with pytest.raises(BudgetExceeded, match="1 are listed twice"):
        UserLedger(epsilon=EPSILON, gap=2).charge(0, np.array([3, 3]))


@given(
    st.integers(1, 6),
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.integers(1, EPSILON),
            st.lists(st.integers(0, 5), max_size=8),
        ),
        max_size=40,
    ),
)
def test_the_replay_finds_every_users_worst_window(span, grants):
    replay, reports, t = Replay(span=span), {user: [] for user in range(6)}, 0
    for advance, epsilon, users in grants:
        t += advance
        replay.observe(t, epsilon, np.array(users, np.int64))
        for user in users:
            reports[user].append((t, epsilon))
    expected = {user: naive.worst_window(spent, span) for user, spent in reports.items()}
    peaks = [*replay.peaks().tolist(), *[0] * 6]  # nobody beyond the last who reported spent any
    assert dict(zip(reports, peaks, strict=False)) == expected
    assert replay.worst == max(expected.values())
    assert replay.n_reports == sum(map(len, reports.values()))


def test_budget_division_grants_everybody_a_part_of_what_remains():
    ledger = BudgetDivision().open_ledger(epsilon=EPSILON, gap=4)
    first = ledger.grant(Ask(share=0.5), t=0, roster=roster(3), seed=0)
    second = ledger.grant(Ask(share=0.5), t=1, roster=roster(3), seed=0)
    whole = ledger.grant(Ask(share=0.5, of="whole"), t=2, roster=roster(3), seed=0)
    assert [first.epsilon, second.epsilon, whole.epsilon] == [500_000, 250_000, 250_000]
    assert first.reporters.tolist() == [0, 1, 2]


def test_nobody_present_costs_nothing():
    ledger = RoundLedger(epsilon=EPSILON, gap=4)
    ask = Ask(share=1.0, question=Question(about="move"))
    grant = ledger.grant(ask, t=7, roster=roster(0), seed=0)
    assert (grant.t, grant.epsilon, grant.question) == (7, 0, ask.question)
    assert grant.reporters.size == 0
    assert ledger.remaining(7) == EPSILON


@given(st.integers(0, 200), st.floats(0, 1), st.integers(0, 9))
def test_population_division_draws_the_floor_of_the_share_of_the_available(n, share, seed):
    ledger = UserLedger(epsilon=EPSILON, gap=4)
    grant = ledger.grant(Ask(share=share), t=0, roster=roster(n), seed=seed)
    assert grant.reporters.size == int(share * n + 1e-9)
    assert np.unique(grant.reporters).size == grant.reporters.size
    again = ledger.grant(Ask(share=1.0), t=3, roster=roster(n), seed=seed)
    assert set(again.reporters.tolist()) == set(range(n)) - set(grant.reporters.tolist())


def test_a_draw_does_not_depend_on_the_order_of_the_roster():
    forward, backward = roster(100), roster(100)
    backward = Roster(
        keys=forward.keys[::-1].copy(),
        addresses=forward.addresses[::-1].copy(),
        slots=forward.slots,
    )
    everyone = np.ones(100, np.bool_)
    draws = [
        UniformDraw().draw(who, everyone, ask=Ask(share=0.3), t=5, gap=4, seed=1).tolist()
        for who in (forward, backward)
    ]
    assert draws[0] == draws[1]
    assert len(draws[0]) == 30


def test_own_slots_come_round_every_gap():
    who, everyone = roster(4, slots=7), np.ones(4, np.bool_)
    times = [
        t
        for t in range(20)
        if OwnSlot().draw(who, everyone, ask=Ask(share=1.0), t=t, gap=5, seed=0).size == 4
    ]
    assert times == [7, 12, 17]


def test_an_offer_leaves_room_for_grants_that_are_not_charged_yet_and_charges_nothing():
    rounds = RoundLedger(epsilon=EPSILON, gap=3)
    open_rounds = [Grant(t=t, epsilon=300_000, reporters=roster(0).keys) for t in (3, 4, 5, 6)]
    offered = rounds.offer(Ask(share=0.5), t=6, roster=roster(2), seed=0, unpaid=open_rounds)
    assert offered.epsilon == 200_000  # those of t=4 and t=5 are within the gap and before
    more = [Grant(t=5, epsilon=EPSILON + 1, reporters=roster(0).keys)]
    assert rounds.offer(Ask(share=1.0), t=6, roster=roster(2), seed=0, unpaid=more).epsilon == 0
    assert rounds.remaining(6) == EPSILON

    users = UserLedger(epsilon=EPSILON, gap=3)
    drawn = [Grant(t=5, epsilon=EPSILON, reporters=np.array([key])) for key in (1, 3)]
    offered = users.offer(Ask(share=1.0), t=6, roster=roster(5), seed=0, unpaid=drawn)
    assert (offered.reporters.tolist(), offered.epsilon) == ([0, 2, 4], EPSILON)
    assert users.available(6, roster(5).keys).all()


def test_whoever_spends_a_part_of_epsilon_may_always_answer():
    ledger = RoundLedger(epsilon=EPSILON, gap=3)
    ledger.charge(0, EPSILON)
    available = ledger.available(0, np.array([4, 9]), lookback=7)
    assert available.dtype == np.bool_, "a mask, and no list of places"
    assert available.tolist() == [True, True]


@pytest.mark.parametrize("ledger", [RoundLedger, UserLedger])
def test_what_is_admitted_is_granted_as_it_was_reported(ledger):
    keys, question = np.array([2, 5]), Question(about="move")
    ask = Ask(share=1.0, question=question)

    grant = ledger(epsilon=EPSILON, gap=3).admit(ask, t=7, epsilon=EPSILON, reporters=keys)

    assert (grant.t, grant.epsilon, grant.question) == (7, EPSILON, question)
    assert grant.reporters is keys


@pytest.mark.parametrize("ledger", [RoundLedger, UserLedger])
def test_an_offer_is_about_the_question_and_the_timestamp_that_were_asked(ledger):
    ask = Ask(share=1.0, question=Question(about="move"))

    offered = ledger(epsilon=EPSILON, gap=3).offer(ask, t=7, roster=roster(2), seed=0)

    assert (offered.t, offered.epsilon, offered.question) == (7, EPSILON, ask.question)
    assert offered.reporters.tolist() == [0, 1]


def test_a_refused_charge_says_what_was_asked_and_what_is_left():
    ledger = RoundLedger(epsilon=EPSILON, gap=3)
    ledger.charge(5, 400_000)

    with pytest.raises(BudgetExceeded) as refusal:
        ledger.charge(6, 700_000)

    said = "epsilon_t=0.7 at t=6 would exceed the 0.6 left of epsilon=1 over 3 timestamps"
    assert said in str(refusal.value)


def test_the_round_ledger_keeps_what_a_window_can_still_touch_and_no_more():
    ledger = RoundLedger(epsilon=EPSILON, gap=3)
    for t in range(7):
        ledger.charge(t, 100_000)

    assert sorted(ledger.spent) == [4, 5, 6]


@pytest.mark.parametrize("name", METHODS)
def test_a_ledger_goes_on_from_its_arrays(name):
    division = METHODS[name].division
    one, other = (division.open_ledger(epsilon=EPSILON, gap=3) for _ in range(2))
    one.grant(Ask(share=0.5), t=5, roster=roster(8, slots=5), seed=1)
    other.load_arrays({key: array.copy() for key, array in one.to_arrays().items()})
    for t in (6, 7, 8):
        grants = [
            ledger.grant(Ask(share=0.5), t=t, roster=roster(8, slots=5), seed=1)
            for ledger in (one, other)
        ]
        assert grants[0].reporters.tolist() == grants[1].reporters.tolist()
        assert grants[0].epsilon == grants[1].epsilon


def test_the_arrays_of_what_nobody_spent_are_whole_numbers_too():
    arrays = RoundLedger(epsilon=EPSILON, gap=3).to_arrays() | Replay(span=3).to_arrays("replay")

    assert {name: array.dtype for name, array in arrays.items()} == dict.fromkeys(arrays, np.int64)
    assert (arrays["spent"].shape, arrays["replay_recent"].shape) == ((0, 2), (0, 5))


def test_a_division_says_how_devices_learn_whether_to_report():
    sampling = {name: row.division.sampling for name, row in METHODS.items()}
    assert {name for name, how in sampling.items() if how == "phase"} == {
        "random-p", "steered", "steered-map", "steered-roads", "steered-flags", "steered-length",
        "steered-hidden",
    }  # fmt: skip
    others = {name: row.division.other_shares for name, row in METHODS.items()}
    assert {name: shares for name, shares in others.items() if shares} == {
        "steered": (0.1, 0.45),
        "steered-map": (0.1, 0.05, 0.45),
        "steered-roads": (0.1, 0.05, 0.45),
        "steered-flags": (0.45,),
        "steered-length": (0.45,),
        "steered-hidden": (0.2, 0.45),
    }


@pytest.mark.parametrize("division", [BudgetDivision(), UserDivision(), NoPrivacy()])
def test_a_division_opens_a_ledger_of_its_budget_and_gap(division):
    ledger = division.open_ledger(epsilon=EPSILON, gap=3)

    assert (ledger.epsilon, ledger.gap) == (EPSILON, 3)


def test_no_privacy_is_marked_on_its_grants():
    ledger = NoPrivacy().open_ledger(epsilon=EPSILON, gap=4)
    ask = Ask(share=1.0, question=Question(about="move"))
    grant = ledger.grant(ask, t=7, roster=roster(2), seed=0)
    assert grant.private is False
    assert (grant.t, grant.epsilon, grant.question) == (7, 0, ask.question)
    assert grant.reporters.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("t", "spend"), [(4, 1), (6, 600_001), (6, -1)], ids=["back in time", "too much", "negative"]
)
def test_a_refused_charge_leaves_the_ledger_as_it_was(t, spend):
    rounds = RoundLedger(epsilon=EPSILON, gap=3)
    rounds.charge(5, 400_000)
    with pytest.raises(BudgetExceeded):
        rounds.charge(t, spend)
    assert (rounds.spent, rounds.remaining(6)) == ({5: 400_000}, 600_000)

    users = UserLedger(epsilon=EPSILON, gap=3)
    users.charge(5, np.array([1]))
    for keys in ([1, 2], [2, 2]):
        with pytest.raises(BudgetExceeded):
            users.charge(6, np.array(keys))
        assert users.available(6, np.array([1, 2])).tolist() == [False, True]


def test_a_key_the_replay_never_heard_of_spent_nothing():
    replay = Replay(span=2)
    replay.observe(0, 5, np.array([1]))
    assert replay.peaks().tolist() == [0, 5]


def test_a_timestamp_may_cost_nothing():
    ledger = RoundLedger(epsilon=5, gap=2)
    ledger.charge(3, 0)
    assert ledger.remaining(3) == 5


def test_reports_that_open_together_are_restored_together():
    replay, again = Replay(span=3), Replay(span=3)
    for keys in ([1, 2], [2], [2, 3]):
        replay.observe(4, 5, np.array(keys))
    again.load_arrays("x", replay.to_arrays("x"))
    assert again.peaks().tolist() == replay.peaks().tolist()
    assert again.peaks()[:4].tolist() == [0, 5, 15, 5]


def test_a_report_that_looks_far_back_is_added_to_what_seemed_over():
    replay = Replay(span=3)
    for t, lookback in ((0, 1), (0, 1), (3, 1), (4, 5)):
        replay.observe(t, 5, np.array([1]), lookback)
    assert replay.peaks().tolist() == [0, 15], "twice at 0, and the last one reaches back to it"


def test_a_key_that_is_listed_twice_is_found_wherever_it_stands():
    ledger = UserDivision().open_ledger(epsilon=5, gap=2)
    keys = np.array([0, 2, 1, 2])
    ledger.available(0, keys)
    with pytest.raises(BudgetExceeded, match="1 are listed twice"):
        ledger.charge(0, keys)


def test_a_restored_recount_goes_on_in_the_same_window():
    replay, again = Replay(span=3), Replay(span=3)
    for lookback in (3, 1, 1):
        replay.observe(4, 5, np.array([1]), lookback)
    replay.observe(66, 5, np.array([2]))  # what looks back furthest has opened, the others wait
    again.load_arrays("x", replay.to_arrays("x"))
    again.observe(66, 5, np.array([2]))
    again.observe(200, 5, np.array([3]))
    assert again.peaks().tolist() == [0, 15, 10, 5]
