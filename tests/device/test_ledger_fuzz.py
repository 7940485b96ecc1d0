"""L1: whatever the curator, the clock and the disk do, no window holds more than epsilon."""

import pytest

from support import ledger_fuzz

pytestmark = pytest.mark.system


def total_faults(seeds):
    n_sent, faults = 0, []
    for seed in seeds:
        life = ledger_fuzz.play(seed)
        n_sent += len(life.sent)
        faults += [f"run {seed}: {fault}" for fault in ledger_fuzz.overspent(life)]
    return n_sent, faults


def test_no_window_holds_more_than_epsilon_in_300_runs_of_mischief():
    n_sent, faults = total_faults(range(300))
    assert faults == []
    assert n_sent > 3000, "a device that never reports proves nothing"


@pytest.mark.long
def test_no_window_holds_more_than_epsilon_in_10_000_runs_of_mischief():
    n_sent, faults = total_faults(range(10_000))
    assert faults == []
    assert n_sent > 100_000


def test_every_kind_of_mischief_happens_in_the_runs_of_the_normal_tests(monkeypatch):
    happened = set()

    def noted(move):
        def wrapper(life):
            happened.add(move)
            move(life)

        return wrapper

    mischief = dict(ledger_fuzz.MISCHIEF)
    monkeypatch.setattr(ledger_fuzz, "MISCHIEF", {noted(m): w for m, w in mischief.items()})
    for seed in range(30):
        ledger_fuzz.play(seed)
    assert happened == set(mischief)


def test_the_recount_notices_two_reports_in_one_window():
    life = ledger_fuzz.play(0, n_steps=0)
    life.campaigns[0] = ledger_fuzz.Campaign(ledger_fuzz.manifest_of(window=3))
    near = [
        ledger_fuzz.Sent(0, 0, t, 1, 1_000_000, (t - 1) * 60_000.0, t * 60_000.0) for t in (10, 13)
    ]
    life.sent = near
    assert len(ledger_fuzz.overspent(life)) >= 2, "by round and by real time"
    life.sent = [near[0], ledger_fuzz.replace(near[1], t=14, first=13 * 6e4, last=14 * 6e4)]
    assert ledger_fuzz.overspent(life) == []
