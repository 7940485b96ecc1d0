"""Every bug of the list in `support/ledger_bugs.py` is noticed, and sound code is not accused."""

import pytest

from support import ledger_bugs


@pytest.mark.parametrize("bug", ledger_bugs.BUGS, ids=lambda bug: bug.name)
def test_a_seeded_bug_is_noticed(bug, monkeypatch):
    bug.seed(monkeypatch)
    assert bug.notices() is not None


@pytest.mark.parametrize(
    "notices",
    [
        ledger_bugs.noticed_by_asking_again,
        ledger_bugs.noticed_by_setting_the_clock_back,
        ledger_bugs.noticed_by_watching_roles,
        ledger_bugs.noticed_by_comparing_places,
        ledger_bugs.noticed_by_counting_answers,
        ledger_bugs.noticed_by_changing_what_came_before,
    ],
)
def test_nothing_is_noticed_where_no_bug_was_seeded(notices):
    assert notices() is None


def test_there_are_at_least_nine_different_bugs():
    assert len({bug.seed for bug in ledger_bugs.BUGS}) >= 9
