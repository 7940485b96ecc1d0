"""What is not protected is listed exactly when it is not."""

import itertools

import pytest

from retrasyn.privacy.receipt import (
    GUESSABLE,
    PERSON_DAY,
    PRESENCE,
    Composition,
    FoldedDays,
    Lifetime,
    describe_presence,
    headline_of,
    left_open,
    state_guarantee,
)

STRONGEST = {
    "private": True,
    "presence": "count",
    "unit": "position",
    "ledger": "user",
    "jump": "split",
    "seeded": False,
    "counted": True,
    "has_users": True,
    "box_inferred": False,
    "length_from_data": False,
    "enrols_on_sight": False,
    "clipped": False,
    "usual_place": None,
}
WEAKNESSES = {
    "seeded": (True, "the seed"),
    "counted": (False, "not counted"),
    "unit": ("transition", "reported twice"),
    "ledger": ("stream", "several streams: each"),
    "jump": ("authors", "a jump"),
    "has_users": (False, "names no users"),
    "box_inferred": (True, "outermost"),
    "length_from_data": (True, "mean stream length"),
    "clipped": (True, "edge of the box"),
    "mapped": (True, "the map was drawn"),
}
ALWAYS = {"facts about groups", "long-run repetition", "two devices of one person"}


@pytest.mark.parametrize("presence", PRESENCE)
def test_every_weakness_is_listed_exactly_when_it_holds(presence):
    names = list(WEAKNESSES)
    for held in itertools.product([False, True], repeat=len(names)):
        weak = {name for name, holds in zip(names, held, strict=True) if holds}
        settings = {name: WEAKNESSES[name][0] for name in weak}
        lines = left_open(**STRONGEST | {"presence": presence} | settings)
        for name in names:
            # Per stream is only a weakness where there are persons to tell apart.
            moot = name == "ledger" and "has_users" in weak
            listed = any(WEAKNESSES[name][1] in line for line in lines)
            assert listed == (name in weak and not moot)
        assert {line.partition(":")[0] for line in lines[-3:]} == ALWAYS


def test_presence_leaves_open_what_it_does_not_hide():
    counted, flagged, hidden = (
        left_open(**STRONGEST | {"presence": presence}) for presence in ("count", "flags", "hidden")
    )
    assert set(counted) < set(flagged)
    assert any("how long real devices stay" in line for line in flagged)
    assert any("exact number of active devices" in line for line in counted)
    assert not any("number of active" in line for line in hidden)
    assert "who is enrolled" in hidden


@pytest.mark.parametrize("presence", PRESENCE)
def test_being_seen_first_matters_only_where_presence_is_hidden(presence):
    seen = left_open(**STRONGEST | {"presence": presence, "enrols_on_sight": True})
    assert any("first seen" in line for line in seen) == (presence == "hidden")


def test_a_method_without_privacy_protects_nothing():
    for changes in ({}, {"seeded": True}, {"presence": "flags"}):
        (line,) = left_open(**STRONGEST | {"private": False} | changes)
        assert line.startswith("anything")


@pytest.mark.parametrize("presence", PRESENCE)
def test_dropped_points_make_presence_depend_on_the_box(presence):
    assert describe_presence(presence, clipped=False).startswith(f"{presence}: ")
    assert describe_presence(presence, clipped=False) == PRESENCE[presence]
    assert "depends on the box" in describe_presence(presence, clipped=True)


@pytest.mark.parametrize("presence", PRESENCE)
def test_a_guarantee_includes_presence_only_where_that_is_hidden(presence):
    said = state_guarantee(
        private=True, epsilon=1, window=20, unit="position", ledger="user", presence=presence
    )
    hidden = presence == "hidden"
    assert ("presence included" in said, "with the same presence" in said) == (hidden, not hidden)


@pytest.mark.parametrize(("ledger", "whose"), [("user", "person"), ("stream", "stream")])
def test_a_guarantee_says_whom_it_is_given_to_and_by_default_presence_is_counted(ledger, whose):
    settings = {"private": True, "epsilon": 1, "window": 20, "unit": "position", "ledger": ledger}
    said = state_guarantee(**settings)
    other = {"person": "stream", "stream": "person"}[whose]
    assert f" {whose}" in said
    assert not any(word in said for word in (f" {other}", "XX", whose.upper()))
    assert said == state_guarantee(**settings, presence="count")


PRIVATE = {
    "private": True,
    "within_guarantee": True,
    "seeded": False,
    "epsilon": 0.5,
    "window": 1000,
    "unit": "position",
    "composition": None,
}
FINE = "Private: epsilon 0.5 over any 1,000 positions"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, FINE),
        ({"composition": Composition(1, 0.5, 1000, 0)}, FINE),
        ({"seeded": True}, GUESSABLE),
        ({"seeded": True, "within_guarantee": False}, "OUTSIDE THE GUARANTEE"),
        ({"seeded": True, "within_guarantee": False, "private": False}, "NOT PRIVATE: true"),
    ],
)
def test_the_worst_that_can_be_said_of_a_release_is_said_first(changes, line):
    said = headline_of(**PRIVATE | changes)
    assert said.startswith(line)
    assert "release" not in said or not changes.get("private", True)


@pytest.mark.parametrize(
    ("composition", "words"),
    [
        (Composition(2, 1.5, 1000, 0), "release 2 of this data: epsilon 1.5 in total"),
        (Composition(3, 1.5, 20, 0), "release 3 of this data: epsilon 1.5 in total over any 20"),
        (
            Composition(3, None, 1000, 1),
            "release 3 of this data: no bound in total, 1 of them unprotected",
        ),
    ],
)
def test_what_all_releases_cost_ends_every_headline(composition, words):
    for changes in ({}, {"seeded": True}, {"private": False}):
        alone = headline_of(**PRIVATE | changes)
        assert (
            headline_of(**PRIVATE | changes | {"composition": composition}) == f"{alone}; {words}"
        )


SHARED, APART = FoldedDays(by="day", most_days=3), FoldedDays(by=PERSON_DAY, most_days=7)
LIFETIME = Lifetime(per=PERSON_DAY, timestamps=20, windows=4, epsilon=2.5)
PROMISED = "epsilon 0.5 over any 4 positions"
TERMS = {"epsilon": 0.5, "window": 4, "unit": "position"}
HEAD = {"private": True, "within_guarantee": True, "seeded": False, "composition": None, **TERMS}


def test_days_that_share_a_budget_leave_midnight_open_and_days_apart_the_person_too():
    (midnight,) = SHARED.limits(LIFETIME)
    assert midnight.startswith("a window across midnight")
    person, same = APART.limits(LIFETIME)
    assert same == midnight
    assert "the most active has 7 days" in person
    assert person.endswith("which together cost at most epsilon 17.5")
    boundless = Lifetime(per=PERSON_DAY, timestamps=20, windows=4, epsilon=None)
    assert APART.limits(boundless)[0].endswith("whose cost has no bound")


def test_what_folding_leaves_open_stands_first():
    plain = left_open(**STRONGEST)
    assert left_open(**STRONGEST, folded=SHARED.limits(LIFETIME)) == (
        *SHARED.limits(LIFETIME),
        *plain,
    )


@pytest.mark.parametrize(
    ("folded", "line"),
    [
        (None, f"Private: {PROMISED}"),
        (SHARED, f"Private: {PROMISED} of the folded day"),
        (
            APART,
            f"Private for a person's day, NOT for the person: {PROMISED} of one day of a person",
        ),
    ],
)
def test_the_headline_says_whose_day_it_is(folded, line):
    assert headline_of(**HEAD, folded=folded) == line


@pytest.mark.parametrize(
    ("folded", "ledger", "whose", "where"),
    [
        (None, "user", "one person and", "positions, everything"),
        (None, "stream", "one stream and", "positions, everything"),
        (SHARED, "user", "one person and", "whatever days they are from, everything"),
        (APART, PERSON_DAY, "one day of one person and", "positions of it, everything"),
    ],
)
def test_the_guarantee_says_whose_windows_are_protected(folded, ledger, whose, where):
    said = state_guarantee(private=True, ledger=ledger, folded=folded, **TERMS)
    assert f"For {whose} any 4 consecutive" in said
    assert where in said
