"""L5: a store that is corrupt, read-only, full or missing means no report and a clear error."""

import hashlib
import os
import resource
import sqlite3
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from retrasyn.device import Answer, Refusal, Reporter, SQLiteStore, Tracker
from retrasyn.device.memory import DeviceMemory, Lost, times_of
from retrasyn.device.store import Witness, _checked, _digest, read_witness, write_witness
from retrasyn.errors import EntropyError, LedgerError, WireError
from support.campaigns import DEVICE, DEVICE_KEY, Campaign, manifest_of, verify


@pytest.fixture
def campaign():
    return Campaign(manifest_of(window=2))


def reporter_at(path):
    return Reporter(device=DEVICE, key=DEVICE_KEY, store=SQLiteStore(path), verify=verify)


def tracker_at(campaign, t):
    tracker = Tracker(campaign.manifest)
    tracker.observe(t, (1.0, 1.0), boot=campaign.at(t).boot)
    return tracker


def answer(reporter, campaign, t):
    return reporter.answer(campaign.ask(t), campaign.at(t), tracker_at(campaign, t))


def rested(path, campaign):
    """Return a device whose first quarantine is over."""
    reporter = reporter_at(path)
    reporter.pin(campaign.envelope, campaign.at(0))
    return reporter


def close(reporter):
    reporter._cache.store.close()


def change(path, statement):
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def files_of(path):
    return {f.name: f.read_bytes() for f in path.parent.iterdir()}


def put_back(path, files):
    for file in path.parent.iterdir():
        file.unlink()
    for name, content in files.items():
        (path.parent / name).write_bytes(content)


def test_a_missing_store_means_quarantine_for_a_window_and_one_round(tmp_path, campaign):
    reporter = reporter_at(tmp_path / "ledger")
    first = answer(reporter, campaign, 0)
    assert first == Refusal(
        1, "no manifest is pinned (there was no ledger); show it to the owner and pin it"
    )
    reporter.pin(campaign.envelope, campaign.at(0))
    refused = [answer(reporter, campaign, t) for t in (1, 2)]
    assert [refusal.rule for refusal in refused] == [6, 6]
    assert refused[1].reason == "quarantine (there was no ledger), rounds left: 1"
    assert isinstance(answer(reporter, campaign, 3), Answer)


def test_what_was_saved_is_there_after_a_restart(tmp_path, campaign):
    path = tmp_path / "ledger"
    reporter = rested(path, campaign)
    first = answer(reporter, campaign, 3)
    close(reporter)
    again = answer(reporter_at(path), campaign, 3)
    assert again.frame == first.frame
    assert len(again.frame) == 36 + 9 + 16


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.write_bytes(b"this is not a database, but it is long enough" * 99),
        lambda path: path.write_bytes(b""),
        lambda path: change(path, "UPDATE ledger SET body = '{}'"),
        lambda path: change(path, "DELETE FROM ledger"),
        lambda path: change(path, "DROP TABLE ledger"),
        lambda path: change(path, "UPDATE ledger SET counter = counter + 1"),
    ],
    ids=["noise", "empty", "other body", "no row", "no table", "other counter"],
)
def test_a_corrupt_store_means_quarantine(tmp_path, campaign, harm):
    path = tmp_path / "ledger"
    reporter = rested(path, campaign)
    assert isinstance(answer(reporter, campaign, 3), Answer)
    close(reporter)
    harm(path)
    reporter = reporter_at(path)
    refused = answer(reporter, campaign, 7)
    assert refused.rule == 1
    assert "the ledger was damaged" in refused.reason
    reporter.pin(campaign.envelope, campaign.at(7))
    assert answer(reporter, campaign, 9).reason.startswith("quarantine (the ledger was damaged)")
    assert isinstance(answer(reporter, campaign, 10), Answer)


@pytest.mark.parametrize("seed", range(30))
def test_a_store_with_a_few_bytes_changed_is_never_believed_in_part(tmp_path, campaign, seed):
    import random

    path = tmp_path / "ledger"
    reporter = rested(path, campaign)
    answer(reporter, campaign, 3)
    close(reporter)
    honest = SQLiteStore(path)
    before = honest.load()
    honest.close()
    dice = random.Random(seed)
    content = bytearray(path.read_bytes())
    for _ in range(3):
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    path.write_bytes(content)
    store = SQLiteStore(path)
    try:
        found = store.load()
    except LedgerError:
        found = None
    finally:
        store.close()
    assert found is None or found == before or isinstance(found, Lost)


def test_a_store_put_back_from_a_copy_means_quarantine(tmp_path, campaign):
    path = tmp_path / "ledger"
    reporter = rested(path, campaign)
    close(reporter)
    copy = files_of(path)
    reporter = reporter_at(path)
    assert isinstance(answer(reporter, campaign, 3), Answer)
    close(reporter)
    witness = (tmp_path / "ledger.witness").read_bytes()
    put_back(path, copy | {"ledger.witness": witness})
    refused = answer(reporter_at(path), campaign, 4)
    assert refused.rule == 1
    assert "older than its witness" in refused.reason


def test_what_was_spent_in_all_its_life_survives_a_roll_back_as_far_as_it_is_known(
    tmp_path, campaign
):
    path = tmp_path / "ledger"
    reporter = rested(path, campaign)
    answer(reporter, campaign, 3)
    close(reporter)
    (tmp_path / "ledger.witness").unlink()
    reporter = reporter_at(path)
    reporter.pin(campaign.envelope, campaign.at(5))
    assert reporter.status(campaign.at(5)).spent == campaign.manifest.epsilon


def test_under_a_manifest_of_an_earlier_version_a_device_is_silent_and_forgets_no_spending(
    tmp_path, campaign
):
    path = tmp_path / "ledger"
    reporter = rested(path, campaign)
    assert isinstance(answer(reporter, campaign, 3), Answer)
    close(reporter)
    store = SQLiteStore(path)
    memory = store.load()
    store.save(replace(memory, pinned=memory.pinned.replace(b'"other_shares":[]', b'"other":0')))
    store.close()
    reporter = reporter_at(path)
    assert answer(reporter, campaign, 4) == Refusal(
        1,
        "no manifest is pinned (the campaign's manifest was of an earlier version); show it to "
        "the owner and pin it",
    )
    assert reporter.status(campaign.at(4)).campaign == ""
    reporter.pin(campaign.envelope, campaign.at(4))
    assert [entry.t for entry in reporter._cache.remember(campaign.at(4)).entries] == [3]
    assert [answer(reporter, campaign, t).rule for t in (5, 6)] == [6, 6]
    assert isinstance(answer(reporter, campaign, 7), Answer)
    assert reporter.status(campaign.at(7)).spent == 2 * campaign.manifest.epsilon


def test_a_longer_window_of_a_manifest_of_an_earlier_version_still_keeps_a_device_silent(
    tmp_path, campaign
):
    path, window = tmp_path / "ledger", campaign.manifest.window
    close(rested(path, campaign))
    store = SQLiteStore(path)
    memory = store.load()
    old = memory.pinned.replace(b'"other_shares":[]', b'"other":0')
    longer = old.replace(f'"window":{window}'.encode(), f'"window":{window + 4}'.encode())
    store.save(replace(memory, pinned=longer))
    store.close()
    reporter = reporter_at(path)
    reporter.quarantine("nothing is pinned that it could be silent about", campaign.at(3))
    reporter.pin(campaign.envelope, campaign.at(4))
    assert reporter.status(campaign.at(4)).rounds_left == window + 5
    silent = range(5, 4 + window + 5)
    assert {answer(reporter, campaign, t).rule for t in silent} == {6}
    assert isinstance(answer(reporter, campaign, silent.stop), Answer)


def test_what_is_no_manifest_of_any_version_has_no_times():
    with pytest.raises(WireError, match=r"^manifest is not canonical JSON"):
        times_of(b"nothing")


@pytest.mark.parametrize("record", [b"", b"short", bytes(32), bytes(64)])
def test_a_missing_or_damaged_witness_means_quarantine(tmp_path, campaign, record):
    path = tmp_path / "ledger"
    reporter = rested(path, campaign)
    answer(reporter, campaign, 3)
    close(reporter)
    (tmp_path / "ledger.witness").write_bytes(record)
    assert SQLiteStore(path).load() == Lost("rolled back", campaign.manifest.epsilon)


def test_a_witness_vouches_for_its_store_and_for_one_step_of_a_crash():
    witness = Witness(b"a" * 16, 7)
    vouched = [counter for counter in range(12) if witness.vouches_for(b"a" * 16, counter)]
    assert vouched == [7, 8]
    assert not witness.vouches_for(b"b" * 16, 7)


def test_a_witness_reads_as_it_was_written(tmp_path):
    write_witness(tmp_path / "w", Witness(b"s" * 16, 99))
    assert read_witness(tmp_path / "w") == Witness(b"s" * 16, 99)
    assert stat.S_IMODE((tmp_path / "w").stat().st_mode) == 0o600


@pytest.mark.parametrize("place", range(32))
def test_a_witness_with_one_bit_changed_is_none(tmp_path, place):
    write_witness(tmp_path / "w", Witness(b"s" * 16, 99))
    record = bytearray((tmp_path / "w").read_bytes())
    record[place] ^= 1
    (tmp_path / "w").write_bytes(record)
    assert read_witness(tmp_path / "w") is None


def test_a_digest_covers_store_counter_and_body():
    expected = hashlib.sha256(b"s" * 16 + (258).to_bytes(8, "little") + b"{}").digest()
    assert _digest(b"s" * 16, 258, "{}") == expected


def test_a_write_ahead_log_of_an_earlier_ledger_is_not_replayed(tmp_path):
    path, log = tmp_path / "ledger", tmp_path / "ledger-wal"
    earlier = SQLiteStore(path)
    earlier.save(DeviceMemory(spent=5))
    written = log.read_bytes()
    assert written
    earlier.close()
    path.write_bytes(b"")
    log.write_bytes(written)
    store = SQLiteStore(path)
    store.save(DeviceMemory(spent=7))
    assert store.load() == DeviceMemory(spent=7)
    store.close()


def test_nothing_of_an_earlier_ledger_is_left_beside_a_new_one(tmp_path):
    path = tmp_path / "ledger"
    for suffix in ("", "-wal", "-shm", "-journal"):
        (tmp_path / f"ledger{suffix}").write_bytes(b"earlier" * 100_000)
    store = SQLiteStore(path)
    store.save(DeviceMemory(spent=5))
    assert [name for name, content in files_of(path).items() if b"earlier" in content] == []
    store.close()


def test_a_store_that_cannot_be_written_means_no_report_and_a_clear_error(tmp_path, campaign):
    path = tmp_path / "ledger"
    reporter = rested(path, campaign)
    store = reporter._cache.store
    store._connect().execute("PRAGMA query_only = ON")  # what a read-only disk answers
    with pytest.raises(LedgerError, match=r"ledger cannot be written .*readonly"):
        answer(reporter, campaign, 3)
    assert isinstance(answer(reporter, campaign, 4), Answer), "it works again once the disk does"


READ_ONLY = """
import os, sys
sys.path[:0] = {paths!r}
from test_store import *
import retrasyn.device.signatures
os.setuid(65534)
campaign = Campaign(manifest_of(window=2))
try:
    print(answer(reporter_at(Path({path!r})), campaign, 3))
except LedgerError as error:
    print("LedgerError", error)
"""


@pytest.mark.system
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("mode", [0o555, 0o700], ids=["may look", "may not even look"])
def test_a_store_on_a_read_only_file_means_no_report(tmp_path, campaign, mode):
    path = tmp_path / "ledger"
    close(rested(path, campaign))
    for file in [*tmp_path.iterdir()]:
        file.chmod(0o444)
    tmp_path.chmod(mode)
    ours = [folder for folder in tmp_path.parents if "pytest-" in str(folder)]
    for folder in ours:  # somebody else has to come this far
        folder.chmod(0o755)
    here = Path(__file__).parent
    paths = [str(here), str(here.parent), *sys.path]
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY.format(paths=paths, path=str(path))],
        capture_output=True,
        text=True,
        check=False,
    )
    for folder in [tmp_path, *ours]:
        folder.chmod(0o700)
    assert "LedgerError" in done.stdout, done.stdout + done.stderr
    assert "nothing is sent without it" in done.stdout


def test_a_full_store_means_no_report_and_a_clear_error(tmp_path, campaign):
    path = tmp_path / "ledger"
    reporter = rested(path, campaign)
    answer(reporter, campaign, 1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    largest = max(file.stat().st_size for file in tmp_path.iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, limits[1]))
    try:
        with pytest.raises(LedgerError, match="cannot be written"):
            [answer(reporter, campaign, t) for t in range(3, 300)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_database_without_room_for_another_page_means_no_report(tmp_path, campaign):
    reporter = rested(tmp_path / "ledger", campaign)
    connection = reporter._cache.store._connect()
    connection.execute("PRAGMA max_page_count = 1")
    memory = DeviceMemory(frame=bytes(20_000))
    with pytest.raises(LedgerError, match="full"):
        reporter._cache.store.save(memory)


def test_two_processes_never_share_a_ledger(tmp_path, campaign):
    reporter = rested(tmp_path / "ledger", campaign)
    with pytest.raises(LedgerError, match="locked"):
        reporter_at(tmp_path / "ledger").status(campaign.at(1))
    close(reporter)


def test_a_folder_that_does_not_exist_is_a_clear_error(tmp_path, campaign):
    with pytest.raises(LedgerError, match="cannot be written"):
        rested(tmp_path / "nowhere" / "ledger", campaign)


def test_a_ledger_is_readable_by_its_owner_only(tmp_path, campaign):
    close(rested(tmp_path / "ledger", campaign))
    assert stat.S_IMODE((tmp_path / "ledger").stat().st_mode) == 0o600


def test_a_store_without_entropy_for_its_name_is_not_made(tmp_path, campaign, monkeypatch):
    def fails(n):
        raise EntropyError("no entropy")

    monkeypatch.setattr("retrasyn.device.store.system_bytes", fails)
    with pytest.raises(EntropyError):
        rested(tmp_path / "ledger", campaign)
    assert SQLiteStore(tmp_path / "ledger").load() == Lost("missing")


def test_every_commit_is_told_to_be_on_disk_before_it_returns(tmp_path):
    store = SQLiteStore(tmp_path / "ledger")
    store.save(DeviceMemory())
    ask = store._connect().execute
    assert ask("PRAGMA synchronous").fetchone() == (3,)
    assert ask("PRAGMA locking_mode").fetchone() == ("exclusive",)
    store.close()
    store.close()


def test_a_disk_error_while_reading_is_a_clear_error(tmp_path, campaign):
    path = tmp_path / "ledger"
    close(rested(path, campaign))
    (tmp_path / "ledger.witness").unlink()
    (tmp_path / "ledger.witness").mkdir()
    with pytest.raises(LedgerError, match="cannot be read"):
        SQLiteStore(path).load()


def test_a_witness_that_cannot_be_written_means_no_report(tmp_path, campaign, monkeypatch):
    reporter = rested(tmp_path / "ledger", campaign)

    def fails(*_):
        raise OSError("no space left")

    monkeypatch.setattr("retrasyn.device.store.write_witness", fails)
    with pytest.raises(LedgerError, match=r"cannot be witnessed \(no space left\)"):
        answer(reporter, campaign, 3)


@pytest.mark.parametrize("body", ["", "[]", "{}", "3", '{"odometer": {"total": 1, "more": 2}}'])
def test_a_body_of_another_program_is_no_memory_whatever_its_digest(body):
    assert _checked(b"s", 1, body, _digest(b"s", 1, body)) is None
