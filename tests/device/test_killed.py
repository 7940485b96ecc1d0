"""L4: killed at every step of spend-then-send: nothing leaves without a durable entry."""

import subprocess
import sys
from pathlib import Path

import pytest

from retrasyn.device import Answer, Refusal, Reporter, SQLiteStore, Tracker
from retrasyn.device.memory import DeviceMemory
from retrasyn.device.store import read_witness
from support.campaigns import DEVICE, DEVICE_KEY, Campaign, manifest_of, verify

pytestmark = pytest.mark.system

HERE = Path(__file__).parent
ROUND = 3

PROGRAM = """
import os, sys
sys.path[:0] = {paths!r}
from test_killed import *
run(Path({folder!r}), step={step}, skip={skip})
"""


def device(folder):
    campaign = Campaign(manifest_of(window=2))
    store = SQLiteStore(folder / "ledger")
    reporter = Reporter(device=DEVICE, key=DEVICE_KEY, store=store, verify=verify)
    reporter.pin(campaign.envelope, campaign.at(0))
    tracker = Tracker(campaign.manifest)
    tracker.observe(ROUND, (1.0, 1.0), boot=campaign.at(ROUND).boot)
    return campaign, reporter, tracker


STEPS = (
    "before the row is written",
    "after the row is written, before it is committed",
    "after the commit, before the witness",
    "after the witness",
)


def run(folder, *, step, skip):
    """Answer one round and send it to a file; die in the save after `skip` others."""
    import os

    from retrasyn.device import store as module

    campaign, reporter, tracker = device(folder)
    store = reporter._cache.store
    n_saves = 0
    honest_commit, honest_witness = SQLiteStore._commit, module.write_witness

    def die(at):
        if step == at and n_saves == skip + 1:
            os._exit(9)

    class Cutting:
        """Hands statements on, and dies between the last one and its commit."""

        def __init__(self, connection):
            self.connection = connection

        def execute(self, statement, *values):
            if statement == "COMMIT":
                die(1)
            return self.connection.execute(statement, *values)

        def close(self):
            self.connection.close()

    def commit(self, memory):
        nonlocal n_saves
        n_saves += 1
        die(0)
        self._connection = Cutting(self._connect())
        honest_commit(self, memory)
        self._connection = self._connection.connection
        die(2)

    def witness(path, record):
        honest_witness(path, record)
        die(3)

    SQLiteStore._commit = commit
    module.write_witness = witness
    answer = reporter.answer(campaign.ask(ROUND), campaign.at(ROUND), tracker)
    if step == 4:
        os._exit(9)  # after everything is durable, before sending
    with (folder / "sent").open("ab") as wire:
        wire.write(answer.frame)
    store.close()


def killed(folder, step, skip):
    paths = [str(HERE), str(HERE.parent), *sys.path]
    program = PROGRAM.format(paths=paths, folder=str(folder), step=step, skip=skip)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)


@pytest.mark.parametrize("skip", [0, 1], ids=["deciding", "spending"])
@pytest.mark.parametrize("step", range(5), ids=[*STEPS, "before sending"])
def test_nothing_is_sent_without_a_durable_entry(tmp_path, step, skip):
    _, first, _ = device(tmp_path)
    first._cache.store.close()
    done = killed(tmp_path, step, skip)
    assert done.returncode == 9, done.stderr.decode()
    assert not (tmp_path / "sent").exists()

    campaign, reporter, tracker = device(tmp_path)
    witness, store = read_witness(tmp_path / "ledger.witness"), reporter._cache.store
    assert (witness.store, witness.counter) == (store._store, store._counter), "mended at once"
    memory = reporter._cache.remember(campaign.at(ROUND))
    durable = [entry.t for entry in memory.entries]
    spent = skip == 1 and step >= 2
    assert durable == ([ROUND] if spent or step == 4 else [])

    again = reporter.answer(campaign.ask(ROUND), campaign.at(ROUND), tracker)
    once_more = reporter.answer(campaign.ask(ROUND), campaign.at(ROUND), tracker)
    if durable:
        assert again.frame == memory.frame == once_more.frame, "retries are byte-identical"
    elif skip == 0 and step < 2:
        assert isinstance(again, Answer), "nothing was decided, so the round is answered"
        assert once_more.frame == again.frame
    else:
        assert again.rule == 5, "a coin was flipped for this round: silence"


def test_what_was_sent_is_what_the_ledger_holds(tmp_path):
    _, first, _ = device(tmp_path)
    first._cache.store.close()
    for _ in range(3):
        assert killed(tmp_path, step=-1, skip=0).returncode == 0
    _, reporter, _ = device(tmp_path)
    sent = (tmp_path / "sent").read_bytes()
    memory = reporter._cache.store.load()
    assert sent == 3 * memory.frame, "three processes sent the same bytes"


class Failing:
    """A store whose next saves fail."""

    def __init__(self, store):
        self.store, self.fails = store, 0

    def load(self):
        return self.store.load()

    def save(self, memory: DeviceMemory):
        if self.fails:
            self.fails -= 1
            raise OSError("no disk")
        self.store.save(memory)


def test_after_a_failed_save_the_device_believes_only_its_store(tmp_path):
    campaign = Campaign(manifest_of(window=2))
    store = Failing(SQLiteStore(tmp_path / "ledger"))
    reporter = Reporter(device=DEVICE, key=DEVICE_KEY, store=store, verify=verify)
    reporter.pin(campaign.envelope, campaign.at(0))
    tracker = Tracker(campaign.manifest)
    tracker.observe(ROUND, None, boot=campaign.at(ROUND).boot)
    assert reporter.draw(campaign.ask(ROUND), campaign.at(ROUND), tracker).t == ROUND
    store.fails = 1
    with pytest.raises(OSError, match="no disk"):
        reporter.report(campaign.ask(ROUND), campaign.at(ROUND), tracker)
    later = reporter.answer(campaign.ask(ROUND), campaign.at(ROUND), tracker)
    assert isinstance(later, Refusal)
    assert later.rule == 5
