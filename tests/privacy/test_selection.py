"""Phase slots: everyone once per window, roles for life, and nothing looked at but presence.

And what a share is of: of the available users, or of everybody who has a state.
"""

import copy
import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import naive
from retrasyn.errors import SettingError
from retrasyn.messages import ABSENT, ENTERING, MOVING, QUITTING, SPEEDS, Ask, Question, Roster
from retrasyn.privacy import selection
from retrasyn.privacy.division import BudgetDivision, UserDivision
from retrasyn.privacy.selection import PhaseSlots, UniformDraw, age_thresholds, can_answer
from retrasyn.randomness.kernels import words_at
from retrasyn.randomness.words import address

EPSILON = 1_000_000
LEVEL = 1e-6  # significance of the tests of distributions
KINDS = {"move": MOVING, "enter": ENTERING, "quit": QUITTING}


def roster(n, kinds=None):
    keys = np.arange(n)
    return Roster(
        keys=keys,
        addresses=keys.astype(np.uint64) * np.uint64(0x1234567),
        slots=np.zeros(n, np.int64),
        kinds=None if kinds is None else np.asarray(kinds, np.uint8),
    )


def questions(about, gap):
    thresholds = {"older": age_thresholds(gap), "faster": SPEEDS}.get(about, (0,))
    return [Question(about=about, threshold=threshold) for threshold in thresholds]


def granted(slots, who, times, abouts, *, gap, seed=0):
    """Return (t, question, key) of every report granted to a roster, or to one per timestamp."""
    ledger = UserDivision(slots).open_ledger(epsilon=EPSILON, gap=gap)
    reports = []
    for t in times:
        now = who(t) if callable(who) else who
        for about in abouts:
            for question in questions(about, gap):
                ask = Ask(share=1.0, question=question)
                grant = ledger.grant(ask, t=t, roster=now, seed=seed)
                reports += [(t, question, key) for key in grant.reporters.tolist()]
    return reports


@pytest.mark.parametrize(
    ("ages", "presence", "speed", "cell"),
    [
        (0.3, 0.2, 0.3, 0.1),
        (None, 0.2, None, None),
        (0.3, None, None, 0.6),
        (None, None, None, 0.4),
        (0.3, None, None, None),
        (0.1, None, 0.5, 0.3),
    ],
)
def test_phases_roles_and_thresholds_are_words_of_seed_purpose_and_person(
    ages, presence, speed, cell
):
    who, gap, seed = roster(300), 5, 11

    def words(t, purpose):
        return words_at(np.uint64(address(seed, t, purpose)), who.addresses).tolist()

    phases, roles = words(0, "phase"), [word / 2**64 for word in words(0, "role")]
    edges = {"older": (0, ages or 0), "present": (ages or 0, (ages or 0) + (presence or 0))}
    edges["faster"] = (edges["present"][1], edges["present"][1] + (speed or 0))
    edges["cell"] = (edges["faster"][1], edges["faster"][1] + (cell or 0))
    edges["transition"] = (edges["cell"][1], 1)
    slots = PhaseSlots(age_share=ages, presence_share=presence, speed_share=speed, cell_share=cell)
    n_thresholds = {"older": len(age_thresholds(gap)), "faster": len(SPEEDS)}
    for t, about in itertools.product(range(17), edges):
        low, high = edges[about]
        period, choices = gap * (3 if about == "older" else 1), words(t, "threshold")
        for number, question in enumerate(questions(about, gap)):
            drawn = slots.draw(
                who,
                np.ones(300, np.bool_),
                ask=Ask(share=1.0, question=question),
                t=t,
                gap=gap,
                seed=seed,
            )
            assert drawn.tolist() == [
                key
                for key in range(300)
                if phases[key] % period == t % period
                and low <= roles[key] < high
                and choices[key] % n_thresholds.get(about, 1) == number
            ]


def test_a_word_between_two_shares_gives_one_role(monkeypatch):
    words = [0, 2**61, 2**62, 2**63, 3 * 2**62, 2**64 - 1]  # 0, 1/8, 1/4, 1/2, 3/4, 1
    between = np.array(words, np.uint64)
    monkeypatch.setattr(selection, "words_at", lambda *_: between)
    slots = PhaseSlots(age_share=0.125, presence_share=0.125, speed_share=0.25, cell_share=0.25)
    asked = ("older", "present", "faster", "cell", "transition")
    found = np.array([slots._in_role(roster(6), about, 0) for about in asked])
    assert found.sum(axis=0).tolist() == [1] * 6
    assert found.argmax(axis=0).tolist() == [0, 1, 2, 3, 4, 4]


@given(st.integers(1, 9), st.integers(-50, 50), st.integers(0, 99))
def test_everyone_who_is_there_reports_once_in_every_gap(gap, first, seed):
    times = range(first, first + 5 * gap)
    reports = granted(PhaseSlots(), roster(40), times, ["transition"], gap=gap, seed=seed)
    for begin in range(first, first + 4 * gap + 1):
        within = sorted(key for t, _, key in reports if begin <= t < begin + gap)
        assert within == list(range(40))


@given(st.integers(1, 6), st.integers(0, 99))
def test_who_reports_ages_does_so_every_three_gaps_and_never_a_transition(gap, seed):
    slots = PhaseSlots(age_share=0.4)
    times = range(12 * gap)
    reports = granted(slots, roster(60), times, ["transition", "older"], gap=gap, seed=seed)
    roles = {}
    for t, question, key in reports:
        roles.setdefault(key, []).append((t, question.about))
    assert roles.keys() == set(range(60))
    for spent in roles.values():
        abouts = {about for _, about in spent}
        assert len(abouts) == 1
        period = 3 * gap if abouts == {"older"} else gap
        assert {b - a for (a, _), (b, _) in itertools.pairwise(spent)} == {period}
        assert len(spent) == 12 * gap // period


@given(st.integers(1, 5), st.integers(0, 999), st.floats(0.1, 1.0))
def test_reports_are_those_of_the_plain_loop_for_people_who_come_and_go(gap, seed, present):
    random = np.random.default_rng(seed)
    n, n_timestamps = 25, 9 * gap
    there = random.random((n_timestamps + 1, n)) < present
    there[-1] = False
    slots = PhaseSlots(age_share=0.5)

    def kind(t, key):
        before = t > 0 and there[t - 1, key]
        if there[t, key]:
            return MOVING if before else ENTERING
        return QUITTING if before else ABSENT

    def who(t):
        kinds = np.array([kind(t, key) for key in range(n)])
        everyone = roster(n, kinds)
        has_state = kinds != ABSENT
        return Roster(
            keys=everyone.keys[has_state],
            addresses=everyone.addresses[has_state],
            slots=everyone.slots[has_state],
            kinds=kinds[has_state].astype(np.uint8),
        )

    abouts = ["move", "enter", "quit", "older"]
    found = granted(slots, who, range(n_timestamps), abouts, gap=gap, seed=seed)
    always = granted(slots, roster(n), range(3 * gap), ["transition", "older"], gap=gap, seed=seed)
    own = {key: (question.about, t) for t, question, key in reversed(always)}
    last, expected = {}, []
    for t in range(n_timestamps):
        for key in range(n):
            about, phase = own[key]
            now = kind(t, key)
            if about == "older":
                asked = naive.reports_age(
                    t, phase, gap, last.get(key), present=now in {ENTERING, MOVING}
                )
                name = "older"
            else:
                asked = naive.reports_transition(
                    t, phase, gap, last.get(key), has_state=now != ABSENT, waived=now == QUITTING
                )
                name = {code: name for name, code in KINDS.items()}.get(now)
            if asked:
                last[key] = t
                expected.append((t, name, key))
    assert sorted((t, question.about, key) for t, question, key in found) == sorted(expected)


@pytest.mark.parametrize("about", ["cell", "faster"])
@given(gap=st.integers(1, 6), seed=st.integers(0, 99), present=st.floats(0.1, 1.0))
def test_who_reports_a_cell_or_speed_does_so_at_its_phase_and_never_a_state(
    about, gap, seed, present
):
    random, share = np.random.default_rng(seed), {"cell": "cell_share", "faster": "speed_share"}
    slots, n, n_timestamps = PhaseSlots(**{share[about]: 0.5}), 40, 6 * gap
    there = random.random((n_timestamps, n)) < present

    def who(t):
        before = there[t - 1] if t else np.zeros(n, np.bool_)
        kinds = np.select(
            [there[t] & before, there[t], before], [MOVING, ENTERING, QUITTING], ABSENT
        )
        return roster(n, kinds)

    def here(t, key):  # a distance needs two positions, a cell one
        return there[t, key] and (about == "cell" or (t > 0 and there[t - 1, key]))

    abouts = ["move", "enter", "quit", about]
    reports = granted(slots, who, range(n_timestamps), abouts, gap=gap, seed=seed)
    always = granted(slots, roster(n), range(gap), ["transition", about], gap=gap, seed=seed)
    phases = {key: t for t, question, key in always if question.about == about}
    found = sorted((key, t) for t, question, key in reports if question.about == about)
    assert found == sorted(
        (key, t) for key, phase in phases.items() for t in range(phase, n_timestamps, gap)
        if here(t, key)
    )  # fmt: skip
    assert {key for _, question, key in reports if question.about != about}.isdisjoint(phases)


def test_roles_and_phases_are_for_life():
    slots = PhaseSlots(age_share=0.2, presence_share=0.2, cell_share=0.2, speed_share=0.2)
    abouts = ["transition", "older", "present", "cell"]
    early = granted(slots, roster(200), range(15), abouts, gap=5)
    late = granted(slots, roster(200), range(90_000, 90_015), abouts, gap=5)
    ours, theirs = (
        sorted((t % 15, question.about, key) for t, question, key in reports)
        for reports in (early, late)
    )
    assert ours == theirs


def test_phases_roles_and_thresholds_are_drawn_uniformly():
    n, gap = 30_000, 21
    slots = PhaseSlots(age_share=0.1, presence_share=0.2, speed_share=0.1, cell_share=0.2)
    who, abouts = roster(n), ["older", "present", "faster", "cell", "transition"]
    reports = granted(slots, who, range(3 * gap), abouts, gap=gap)
    roles = {about: set() for about in abouts}
    phases = {about: [] for about in roles}
    thresholds = {"older": [], "faster": []}
    for t, question, key in reports:
        if key not in roles[question.about]:
            roles[question.about].add(key)
            phases[question.about].append(t)
        thresholds.setdefault(question.about, []).append(question.threshold)
    sizes = [len(keys) for keys in roles.values()]
    assert sum(sizes) == n
    assert stats.chisquare(sizes, np.array([0.1, 0.2, 0.1, 0.2, 0.4]) * n).pvalue > LEVEL
    for about, period in zip(abouts, (3 * gap, gap, gap, gap, gap), strict=True):
        assert stats.chisquare(np.bincount(phases[about], minlength=period)).pvalue > LEVEL
    for about, known in (("older", age_thresholds(gap)), ("faster", SPEEDS)):
        assert set(thresholds[about]) == set(known)
        counts = np.unique(thresholds[about], return_counts=True)[1]
        assert stats.chisquare(counts).pvalue > LEVEL


def test_thresholds_are_drawn_anew_for_every_report():
    reports = granted(PhaseSlots(age_share=0.9), roster(400), range(300), ["older"], gap=4)
    seen = {}
    for _, question, key in reports:
        seen.setdefault(key, []).append(question.threshold)
    assert {len(thresholds) for thresholds in seen.values()} == {25}
    assert all(len(set(thresholds)) == 3 for thresholds in seen.values())
    reports = granted(PhaseSlots(speed_share=0.9), roster(400), range(600), ["faster"], gap=4)
    spoken = {}
    for _, question, key in reports:
        spoken.setdefault(key, set()).add(question.threshold)
    assert all(thresholds == set(SPEEDS) for thresholds in spoken.values())


@pytest.mark.parametrize("gap", [1, 2, 3, 8, 21, 500])
def test_an_age_asked_about_never_reaches_further_than_three_gaps_cover(gap):
    thresholds = age_thresholds(gap)
    assert list(thresholds) == naive.age_thresholds(gap)
    assert thresholds[-1] == 2 * gap
    ledger = UserDivision().open_ledger(epsilon=EPSILON, gap=gap)
    assert ledger.rest(thresholds[-1]) <= 3 * gap


def test_who_cannot_answer_is_not_asked():
    who = roster(4, [ENTERING, MOVING, QUITTING, ABSENT])
    able = {
        about: can_answer(who, Question(about=about)).tolist()
        for about in ("transition", "move", "enter", "quit", "older", "present", "faster", "cell")
    }
    assert able == {
        "transition": [True] * 4,
        "move": [False, True, False, False],
        "enter": [True, False, False, False],
        "quit": [False, False, True, False],
        "older": [True, True, False, False],
        "present": [True] * 4,
        "faster": [False, True, False, False],
        "cell": [True, True, False, False],
    }
    assert can_answer(roster(3), Question(about="older")).all()  # hidden: nobody knows


def test_a_stopping_device_waits_for_its_gap_but_not_for_its_phase():
    slots, gap = PhaseSlots(), 6

    def who(t):
        return roster(50, np.full(50, QUITTING if t in {3, 5, 9} else MOVING))

    reports = granted(slots, who, range(10), ["move", "quit"], gap=gap)
    stops = [(t, key) for t, question, key in reports if question.about == "quit"]
    moved = {key for t, question, key in reports if question.about == "move" and t < 3}
    assert {key for t, key in stops if t == 3} == set(range(50)) - moved
    assert not [key for t, key in stops if t == 5]
    assert {key for t, key in stops if t == 9} >= set(range(50)) - moved


@given(st.permutations(range(30)), st.integers(0, 20))
def test_the_order_of_the_roster_does_not_matter(order, t):
    who, order = roster(30), np.array(order)
    mixed = Roster(
        keys=who.keys[order], addresses=who.addresses[order], slots=who.slots[order], kinds=None
    )
    slots, everybody = PhaseSlots(age_share=0.3), np.ones(30, np.bool_)
    for question in [Question(), *questions("older", 4)]:
        ask = Ask(share=1.0, question=question)
        draws = [
            sorted(slots.draw(one, everybody, ask=ask, t=t, gap=4, seed=1).tolist())
            for one in (who, mixed)
        ]
        assert draws[0] == draws[1]


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ((-0.1, 0.0), "age_share=-0.1 and presence_share=0"),
        ((0.5, 0.5), "age_share=0.5 and presence_share=0.5"),
        ((None, 1.0), "presence_share=1"),
        ((0.2, None, 0.8), "age_share=0.2 and cell_share=0.8"),
        ((None, None, 1.0), "cell_share=1"),
        ((0.1, None, 0.5, 0.4), "age_share=0.1 and speed_share=0.4 and cell_share=0.5"),
    ],
)
def test_shares_that_leave_nobody_for_transitions_are_refused(shares, said):
    said += " must be shares that leave somebody"
    with pytest.raises(SettingError, match=f"^{re.escape(said)}"):
        PhaseSlots(*shares)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 12))
def test_a_share_of_everybody_counts_those_who_rest_but_never_asks_them(n, n_resting, n_parts):
    who = roster(n)
    ledger = UserDivision().open_ledger(epsilon=EPSILON, gap=5)
    resting = who.keys[: min(n_resting, n)]
    ledger.charge(0, resting)
    share = n_parts / 12
    grants = {
        of: copy.deepcopy(ledger).grant(Ask(share=share, of=of), t=1, roster=who, seed=3)
        for of in ("everybody", "whole", "remaining")
    }
    left = n - resting.size
    assert grants["everybody"].reporters.size == min(n * n_parts // 12, left)
    assert grants["whole"].reporters.size == left * n_parts // 12
    assert grants["remaining"].reporters.size == left * n_parts // 12
    for grant in grants.values():
        assert not set(grant.reporters.tolist()) & set(resting.tolist())


@pytest.mark.parametrize(("of", "second"), [("everybody", 500_000), ("remaining", 250_000)])
def test_a_share_of_everybody_is_of_all_epsilon_where_that_is_divided(of, second):
    ledger = BudgetDivision().open_ledger(epsilon=EPSILON, gap=5)
    asks = [Ask(share=0.5, of=of)] * 3
    spends = [
        ledger.grant(ask, t=t, roster=roster(7), seed=0).epsilon for t, ask in enumerate(asks)
    ]
    assert spends[:2] == [500_000, second]
    assert spends[2] == (0 if of == "everybody" else 125_000)
    assert sum(spends) <= EPSILON


def test_two_draws_of_a_timestamp_never_name_the_same_user_and_are_both_fair():
    times = np.zeros((2, 20))
    for seed in range(3000):
        ledger = UserDivision().open_ledger(epsilon=EPSILON, gap=5)
        for which in (0, 1):
            ask = Ask(share=0.25, of="everybody")
            grant = ledger.grant(ask, t=2, roster=roster(20), seed=seed)
            assert grant.reporters.size == 5
            times[which, grant.reporters] += 1
    assert (times.sum(axis=0) <= 3000).all()
    for which in (0, 1):
        assert stats.chisquare(times[which]).pvalue > LEVEL


def test_a_draw_names_those_with_the_smallest_words_of_its_seed_and_timestamp():
    who = roster(200)
    everybody = np.ones(200, np.bool_)
    for seed, t in itertools.product(range(30), (3, 4)):
        words = words_at(np.uint64(address(seed, t, "draw")), who.addresses)

        drawn = UniformDraw().draw(who, everybody, ask=Ask(share=0.25), t=t, gap=5, seed=seed)

        assert drawn.tolist() == sorted(np.argsort(words)[:50].tolist())


def test_nobody_available_is_nobody_asked():
    who = roster(10)
    ledger = UserDivision().open_ledger(epsilon=EPSILON, gap=3)
    ledger.charge(0, who.keys)
    ask = Ask(share=1.0, of="everybody")
    grant = ledger.grant(ask, t=2, roster=who, seed=0)
    assert grant.reporters.size == 0
    assert grant.epsilon == 0
    assert ledger.grant(ask, t=3, roster=who, seed=0).reporters.size == 10


def test_a_share_of_nobody_is_a_share():
    assert PhaseSlots(age_share=0.0, cell_share=0.45).other_shares == (0.0, 0.45)
    shares = PhaseSlots(age_share=0.1, speed_share=0.05, cell_share=0.45).other_shares
    assert shares == (0.1, 0.05, 0.45)
