"""What a page says about privacy follows from the receipt, and never from its absence."""

import pytest

from retrasyn.report.statement import state
from support.report_pairs import RECEIPT


def test_a_private_release_is_called_so_with_its_epsilon_and_window():
    statement = state(RECEIPT)
    assert statement.status == "private"
    assert statement.headline == "Private: epsilon 1 over any 20 positions"
    assert statement.cautions == ()
    assert statement.not_protected == ("two devices of one person",)
    assert ("Reports", "1,200") in statement.facts
    assert ("settings.gain", "8") in statement.settings


@pytest.mark.parametrize(
    "change", [{"private": False}, {"within_guarantee": False}, {"seed": 0}], ids=str
)
def test_what_breaks_the_promise_is_broken(change):
    assert state(RECEIPT | change).status == "broken"


@pytest.mark.parametrize(
    "receipt",
    [None, {}, {"private": True}, {"private": "yes", "within_guarantee": True}, {"version": 9}],
    ids=str,
)
def test_what_the_receipt_does_not_say_is_unknown(receipt):
    assert state(receipt).status == "unknown"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"within_epsilon_per_person": False}, "per person"),
        ({"seed": 0}, "seed"),
        (
            {"composition": {"n_releases": 2, "epsilon": 3.0}},
            "release 2 of the same data: epsilon 3",
        ),
        ({"composition": {"n_releases": 2, "epsilon": None}}, "no bound"),
        ({"box_inferred_from_data": True}, "box"),
        ({"length_scale_from_data": True}, "length scale"),
        ({"faithful": True}, "authors"),
    ],
    ids=str,
)
def test_whatever_weakens_the_guarantee_is_a_caution(change, words):
    (caution,) = state(RECEIPT | change).cautions
    assert words in caution


@pytest.mark.parametrize("value", [None, 3, "text", [1, "two"], {"three": [4]}, float("nan"), True])
@pytest.mark.parametrize("key", sorted(RECEIPT))
def test_no_receipt_is_too_odd_to_be_read(key, value):
    state(RECEIPT | {key: value})
    state({key: value})


def test_how_well_shares_are_known_is_told_in_points():
    facts = dict(state({"standard_error": {"cell": 0.0123, "flow": 0.0004}}).facts)
    assert facts["A cell is known to"] == "±1.2 points"
    assert facts["A flow is known to"] == "±0.04 points"
    assert "A cell is known to" not in dict(state({"standard_error": None}).facts)
