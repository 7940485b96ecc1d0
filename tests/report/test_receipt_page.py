"""A receipt's page says what the receipt says, and admits what it does not."""

import pytest

from retrasyn.report.page import render_receipt
from support.made_receipts import RUNS, receipt


@pytest.mark.parametrize("name", RUNS)
def test_every_kind_of_run_has_a_page(name):
    told = receipt(name)
    page = render_receipt(told.to_dict(), checks=[("ok", "gap", "fine"), ("FAIL", "x", "bad")])
    assert 'class="verdict FAIL"' in page
    for line in told.not_protected:
        assert line.split(":")[0] in page
    assert ("unbounded" in page) == (not told.private)


def test_a_receipt_that_says_nothing_is_called_unknown():
    page = render_receipt({})
    assert 'class="unknown"' in page
    assert "What was recomputed" not in page
