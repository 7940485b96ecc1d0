"""The ledgers of a fleet: nothing counts before the commit, and the log tells what was spent."""

import sqlite3

import pytest

from retrasyn.client.curator_client import Agreed
from retrasyn.device import Answer, Reporter, Tracker
from retrasyn.device.memory import DeviceMemory, Lost, write_memory
from retrasyn.errors import LedgerError
from retrasyn.fleet.ledger import DeviceSlot, FleetLedger, recount, write_quickly
from retrasyn.wire.keys import CuratorKeys
from support.campaigns import KEY, Campaign, manifest_of, verify


@pytest.fixture
def campaign():
    return Campaign(manifest_of(sampling="phase", jump="clamp"))


@pytest.fixture
def ledger(tmp_path):
    ledger = FleetLedger(tmp_path / "fleet.sqlite")
    ledger.trust(CuratorKeys(KEY), "http://a")
    ledger.add([Agreed(bytes([n]) * 16, bytes([n]) * 32) for n in range(3)])
    yield ledger
    ledger.close()


def report_for(campaign, ledger, n_rounds):
    """Run the devices through rounds; return how many reports each round had."""
    now = campaign.at(0)
    crew = []
    for number, who in enumerate(ledger.devices()):
        reporter = Reporter(who.device, who.key, DeviceSlot(ledger, number), verify)
        reporter.pin(campaign.envelope, now)
        crew.append((reporter, Tracker(campaign.manifest)))
    made = []
    for t in range(n_rounds):
        envelope, now = campaign.ask(t), campaign.at(t)
        answers = []
        for reporter, tracker in crew:
            tracker.observe(t, (1.0, 1.0), boot=now.boot)
            answers.append(reporter.answer(envelope, now, tracker))
        made.append(sum(isinstance(answer, Answer) for answer in answers))
        ledger.commit()
    return made


def test_identities_are_kept_in_the_order_of_their_numbers(ledger):
    assert [who.device[0] for who in ledger.devices()] == [0, 1, 2]
    assert ledger.server == "http://a"


def test_a_fleet_whose_manifest_is_of_an_earlier_version_is_refused(ledger, tmp_path):
    DeviceSlot(ledger, 0).save(DeviceMemory(pinned=b'{"other_share":0}'))
    ledger.commit()
    ledger.close()
    with pytest.raises(LedgerError, match=r"of an earlier version; name another folder"):
        FleetLedger(tmp_path / "fleet.sqlite")


def test_what_was_not_committed_is_forgotten(ledger, tmp_path, campaign):
    DeviceSlot(ledger, 0).save(DeviceMemory(pinned=campaign.text, spent=5))
    ledger.close()
    again = FleetLedger(tmp_path / "fleet.sqlite")
    assert again.load(0) == Lost("missing")
    again.close()


def test_what_was_committed_is_read_as_it_was(ledger, tmp_path, campaign):
    report_for(campaign, ledger, 12)
    before = [ledger.load(number) for number in range(3)]
    assert all(memory.pinned == campaign.text and memory.entries for memory in before)
    ledger.close()
    again = FleetLedger(tmp_path / "fleet.sqlite")
    assert [again.load(number) for number in range(3)] == before
    again.close()


def test_memories_are_written_as_a_device_writes_them(ledger, campaign):
    from dataclasses import replace

    report_for(campaign, ledger, 12)
    for number in range(3):
        memory = replace(ledger.load(number), pinned=b"")
        assert write_quickly(memory) == write_memory(memory)


def test_every_report_is_logged_once_and_recounted(ledger, campaign):
    made = report_for(campaign, ledger, 30)
    logged = list(ledger.log(campaign.id))
    assert [sum(one.t == t for one in logged) for t in range(30)] == made
    found = recount(ledger, campaign.manifest, campaign.id)
    assert (found.n_reports, found.worst, found.within) == (sum(made), 1_000_000, True)
    assert "within epsilon=1" in str(found)


def test_a_recount_finds_a_device_that_reported_too_soon(ledger, campaign):
    report_for(campaign, ledger, 12)
    first = next(iter(ledger.log(campaign.id)))
    with ledger._transaction() as write:
        write.execute(
            "INSERT INTO log VALUES (?, ?, ?, ?, 1)",
            (first.number, campaign.id, first.t + 1, first.epsilon),
        )
    found = recount(ledger, campaign.manifest, campaign.id)
    assert (found.worst, found.within) == (2_000_000, False)
    assert "ABOVE epsilon=1" in str(found)


def test_a_damaged_row_is_lost_and_means_quarantine(ledger, campaign):
    report_for(campaign, ledger, 12)
    with ledger._transaction() as write:
        write.execute("UPDATE memory SET body = '{' WHERE number = 0")
    assert ledger.load(0) == Lost("corrupt")


def test_a_file_that_another_process_holds_is_one_clear_line(ledger, tmp_path):
    with pytest.raises(LedgerError, match="end the other process"):
        FleetLedger(tmp_path / "fleet.sqlite")


def test_a_file_that_is_no_ledger_is_one_clear_line(tmp_path):
    (tmp_path / "odd.sqlite").write_text("nothing of the kind" * 100)
    with pytest.raises(LedgerError, match="cannot be used"):
        FleetLedger(tmp_path / "odd.sqlite")


def test_a_commit_that_fails_is_an_error_and_writes_nothing(ledger, campaign):
    report_for(campaign, ledger, 3)
    before = ledger.load(0)
    with ledger._transaction() as write:
        write.execute(
            "CREATE TRIGGER full BEFORE INSERT ON memory BEGIN SELECT RAISE(FAIL, 'x'); END"
        )
    DeviceSlot(ledger, 0).save(DeviceMemory(pinned=campaign.text, spent=99))
    with pytest.raises(LedgerError, match="nothing is sent without it"):
        ledger.commit()
    assert ledger.load(0) == before
    assert isinstance(ledger._connection, sqlite3.Connection)
