"""A receipt in a line, and as a notebook shows it: the verdict comes first."""

import dataclasses

import pytest

from retrasyn import demo_city, synthesize
from retrasyn.privacy.receipt import PERSON_DAY, Composition, FoldedDays


@pytest.fixture(scope="module")
def receipt():
    city = demo_city(n_users=60, n_timestamps=20, seed=1)
    return synthesize(city, "retrasyn-p", window=5, grid=3, box=(0, 0, 10, 10), epsilon=0.5).receipt


def changed(receipt, epsilon):
    """Return the receipt with another recount."""
    declared = dataclasses.replace(receipt.worst_window.declared, epsilon=epsilon)
    worst = dataclasses.replace(receipt.worst_window, declared=declared)
    return dataclasses.replace(receipt, worst_window=worst, window=1500)


def test_a_receipt_is_shown_in_one_line(receipt):
    assert repr(changed(receipt, 0.25)) == (
        "Receipt(Private: retrasyn-p, epsilon 0.5 over any 1,500 positions, "
        "worst window 0.25 per user)"
    )


def test_what_is_wrong_with_a_release_is_said_first(receipt):
    bare = changed(receipt, None)
    assert repr(dataclasses.replace(bare, private=False)) == (
        "Receipt(NOT PRIVATE: retrasyn-p, epsilon 0.5 over any 1,500 positions, "
        "worst window unbounded per user)"
    )
    seeded = repr(dataclasses.replace(receipt, seed=7))
    assert seeded.startswith(
        "Receipt(NOT PRIVATE AGAINST A READER WHO GUESSES THE SEED: retrasyn-p"
    )
    overspent = repr(dataclasses.replace(receipt, within_guarantee=False))
    assert overspent.startswith("Receipt(OUTSIDE THE GUARANTEE: retrasyn-p")


def test_that_only_a_day_of_a_person_is_protected_is_said_first(receipt):
    folded = dataclasses.replace(receipt, folded=FoldedDays(by=PERSON_DAY, most_days=2))
    assert repr(folded).startswith("Receipt(Private for a person's day, NOT for the person: ")


def test_what_other_releases_cost_is_left_to_the_notebook(receipt):
    second = dataclasses.replace(receipt, composition=Composition(2, 1.0, 5, 0))
    assert repr(second) == repr(receipt)
    assert "; release 2 of this data: epsilon 1 in total</strong>" in second._repr_html_()


def test_a_notebook_shows_the_guarantee_and_what_is_left_open(receipt):
    few = dataclasses.replace(
        changed(receipt, 0.25),
        method="<b>",
        guarantee="a <guarantee>",
        not_protected=("this & that", "<more>"),
    )
    assert few._repr_html_() == (
        "<p><strong>Private: epsilon 0.5 over any 1,500 positions</strong></p>"
        "<p>&lt;b&gt;, epsilon 0.5 over any 1,500 positions, worst window 0.25 per user. "
        "a &lt;guarantee&gt;</p>"
        "<details><summary>What is not protected</summary>"
        "<ul><li>this &amp; that</li><li>&lt;more&gt;</li></ul></details>"
    )


def test_a_headline_is_text_too(receipt):
    page = dataclasses.replace(receipt, unit="<i>")._repr_html_()
    assert "<p><strong>Private: epsilon 0.5 over any 5 &lt;i&gt;s</strong></p>" in page
