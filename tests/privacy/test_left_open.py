"""What is not protected is listed exactly when it is not."""

import itertools

import pytest

from retrasyn.privacy.receipt import PRESENCE, describe_presence, left_open

STRONGEST = {
    "private": True,
    "presence": "count",
    "unit": "position",
    "ledger": "user",
    "jump": "split",
    "seeded": False,
    "has_users": True,
    "box_inferred": False,
    "length_from_data": False,
    "enrols_on_sight": False,
    "clipped": False,
    "usual_place": None,
}
WEAKNESSES = {
    "seeded": (True, "the seed"),
    "unit": ("transition", "reported twice"),
    "ledger": ("stream", "several streams: each"),
    "jump": ("authors", "a jump"),
    "has_users": (False, "names no users"),
    "box_inferred": (True, "outermost"),
    "length_from_data": (True, "mean stream length"),
    "clipped": (True, "edge of the box"),
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
    assert "box" not in describe_presence(presence, clipped=False)
    assert "depends on the box" in describe_presence(presence, clipped=True)
