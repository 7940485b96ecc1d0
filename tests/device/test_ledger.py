"""Which entries lie within the rest of a report."""

from dataclasses import replace

from retrasyn.device.ledger import LedgerEntry, counts

OLD = LedgerEntry(manifest=b"m", t=700, uptime=70_000, epsilon=1, lookback=1, gap=3, period=10)


def test_an_entry_counts_as_long_as_either_clock_says_that_it_is_recent():
    late = 10**9  # uptime, in milliseconds
    assert [counts(OLD, replace(OLD, t=t, uptime=late)) for t in (702, 703)] == [True, False]
    assert [counts(OLD, replace(OLD, t=10**6, uptime=up)) for up in (94_999, 95_000)] == [
        True,
        False,
    ]


def test_an_entry_of_another_campaign_counts_by_uptime_alone():
    other = replace(OLD, manifest=b"n", t=701)
    found = [counts(OLD, replace(other, uptime=up)) for up in (99_999, 100_000)]
    assert found == [True, False]
