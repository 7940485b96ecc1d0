"""Acknowledged means durable: groups, queues, failing disks and databases."""

import asyncio
import contextlib
import random
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from retrasyn.errors import Busy, StoreError, UnknownToken, WireError
from retrasyn.service import write_queue as write_queue_module
from retrasyn.service.admission.records import read_chunks
from retrasyn.service.store import FoldedRow, open_store
from retrasyn.service.write_queue import WriteQueue
from retrasyn.wire.batches import join_frames
from support import postgres
from support.senders import Senders

HERE = Path(__file__).parent


class Stubborn:
    """A store whose appends wait to be let through, or fail when told to."""

    def __init__(self, store):
        self.store, self.open, self.n_appends, self.fault = store, threading.Event(), 0, None
        self.open.set()
        self.after = False  # the fault comes after the write: it is durable, and nobody knows

    def append(self, blobs):
        assert self.open.wait(20)
        self.n_appends += 1
        if self.fault is not None and not self.after:
            raise self.fault
        self.store.append(blobs)
        if self.fault is not None:
            raise self.fault

    def probe(self, size):
        if self.fault is not None:
            raise self.fault
        self.store.probe(size)

    def frames(self, t):
        return self.store.frames(t)


@pytest.fixture
def kept(tmp_path):
    store = open_store(tmp_path / "store.db")
    store.enter(b"campaign")
    yield store
    store.close()


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    monkeypatch.setattr(write_queue_module, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(write_queue_module, "LONGEST_PAUSE", 0.05)


def start(senders, store, **options):
    admission = senders.admission(0)
    return admission, WriteQueue(admission, store, clock=lambda: senders.now(0.5), **options)


def counted(store, t=0):
    """Return how often each key was written."""
    keys = []
    for blob in store.frames(t):
        for chunk in read_chunks(blob):
            keys += chunk.keys.tolist()
    return {key: keys.count(key) for key in keys}


async def turns(n=5):
    for _ in range(n):
        await asyncio.sleep(0)


def test_an_answer_comes_after_the_write(kept):
    senders, store = Senders.of(3), Stubborn(kept)

    async def scene():
        _, write_queue = start(senders, store)
        store.open.clear()
        single = asyncio.create_task(write_queue.submit([senders.report(0, 0)]))
        await turns()
        assert write_queue._writing
        batch = asyncio.create_task(write_queue.submit_body(join_frames([senders.report(1, 0)])))
        twice = asyncio.create_task(
            write_queue.submit([senders.report(0, 0), senders.report(1, 0)])
        )
        await turns(20)
        assert not single.done()
        assert not batch.done()
        assert not twice.done(), "a duplicate waits for its original"
        assert write_queue.n_waiting == 4
        store.open.set()
        assert await single == ["accepted"]
        assert counted(kept)[0] == 1
        assert await batch == b"\0"
        assert await twice == ["duplicate", "duplicate"]
        await write_queue.settle()
        assert write_queue.n_waiting == 0
        await write_queue.close()

    asyncio.run(scene())
    assert counted(kept) == {0: 1, 1: 1}


def test_what_comes_while_a_write_is_under_way_is_written_together(kept):
    senders, store = Senders.of(200), Stubborn(kept)

    async def scene():
        _, write_queue = start(senders, store)
        frames = [senders.report(key, 0) for key in range(200)]
        found = await asyncio.gather(*(write_queue.submit([frame]) for frame in frames))
        assert found == [["accepted"]] * 200
        assert write_queue.n_commits == store.n_appends
        await write_queue.close()

    asyncio.run(scene())
    assert store.n_appends <= 3
    assert sum(counted(kept).values()) == 200


def test_what_needs_no_write_is_answered_without_one(kept):
    senders, store = Senders.of(1), Stubborn(kept)

    async def scene():
        _, write_queue = start(senders, store)
        assert await write_queue.submit([]) == []
        assert await write_queue.submit_body(b"") == b""
        assert await write_queue.submit([senders.report(5, 0), b"x"]) == [
            "unauthenticated",
            "bad length",
        ]
        with pytest.raises(WireError):
            await write_queue.submit_body(b"\1")
        empty = [
            write_queue.submit([]),
            write_queue.submit([]),
            write_queue.submit([senders.report(0, 0)]),
        ]
        assert await asyncio.gather(*empty) == [[], [], ["accepted"]]
        await write_queue.close()

    asyncio.run(scene())
    assert counted(kept) == {0: 1}


def test_a_surge_is_told_to_come_back_and_no_acknowledged_report_is_lost(kept):
    senders, store = Senders.of(1000), Stubborn(kept)
    accepted, busy, waits = set(), set(), set()

    async def send(write_queue, key):
        try:
            if await write_queue.submit([senders.report(key, 0)]) == ["accepted"]:
                accepted.add(key)
        except Busy as fault:
            busy.add(key)
            waits.add(fault.retry_after)
        assert write_queue.n_waiting <= 100

    async def scene():
        _, write_queue = start(senders, store, queue_frames=100)
        store.open.clear()
        surge = asyncio.gather(*(send(write_queue, key) for key in range(1000)))
        await turns()
        assert write_queue.n_waiting == 100
        store.open.set()
        await surge
        assert (len(accepted), len(busy)) == (100, 900)
        while busy:
            again = [busy.pop() for _ in range(min(len(busy), 90))]
            await asyncio.gather(*(send(write_queue, key) for key in again))
        await write_queue.close()

    asyncio.run(scene())
    assert counted(kept) == dict.fromkeys(range(1000), 1)
    assert min(waits) > 0


@pytest.mark.parametrize("durable", [False, True], ids=["not written", "written nevertheless"])
def test_a_failed_write_is_no_ack_and_what_is_durable_is_found_out(kept, durable):
    senders, store = Senders.of(8), Stubborn(kept)
    reports = [senders.report(key, 0) for key in range(8)]

    async def scene():
        admission, write_queue = start(senders, store)
        assert await write_queue.submit(reports[:2]) == ["accepted"] * 2
        store.fault, store.after = StoreError("no room"), durable
        store.open.clear()
        failing = [
            asyncio.create_task(write_queue.submit(reports[:4])),
            asyncio.create_task(write_queue.submit_body(join_frames(reports[4:6]))),
        ]
        await turns()
        later = asyncio.create_task(write_queue.submit_body(join_frames(reports[6:7])))
        await turns()
        store.open.set()
        for one in (*failing, later):
            with pytest.raises(Busy, match="cannot be written"):
                await one
        assert not write_queue.healthy
        with pytest.raises(Busy):
            await write_queue.submit(reports[7:])
        settled = asyncio.create_task(write_queue.settle())
        await turns(20)
        assert not settled.done(), "nobody knows what is durable"
        store.fault = None
        await settled
        assert write_queue.healthy
        first = "duplicate" if durable else "accepted"
        assert await write_queue.submit(reports[2:4]) == [first] * 2
        assert await write_queue.submit(reports) == ["duplicate"] * 4 + ["accepted"] * 4 or durable
        assert admission.accepted(0).answers[0][1].tolist() == list(range(8))
        await write_queue.close()

    asyncio.run(scene())
    assert counted(kept) == dict.fromkeys(range(8), 1)


def test_a_mistake_in_judging_is_no_ack_and_is_undone(kept, monkeypatch, caplog):
    senders, store = Senders.of(4), Stubborn(kept)

    async def scene():
        admission, write_queue = start(senders, store)
        honest = admission.judge

        def half_way(frames, now):
            honest(frames, now)
            raise RuntimeError("a mistake")

        monkeypatch.setattr(admission, "judge", half_way)
        with pytest.raises(Busy):
            await write_queue.submit([senders.report(0, 0)])
        monkeypatch.setattr(admission, "judge", honest)
        await write_queue.settle()
        assert await write_queue.submit([senders.report(0, 0)]) == ["accepted"]
        await write_queue.close()

    asyncio.run(scene())
    assert counted(kept) == {0: 1}
    assert "a mistake" in caplog.text


def test_a_mistake_in_judging_while_a_write_fails_is_mended_once(kept, monkeypatch):
    senders, store = Senders.of(4), Stubborn(kept)

    async def scene():
        admission, write_queue = start(senders, store)
        store.open.clear()
        store.fault = StoreError("no room")
        writing = asyncio.create_task(write_queue.submit([senders.report(0, 0)]))
        await turns()
        honest = admission.judge_batch
        monkeypatch.setattr(admission, "judge_batch", lambda *_: 1 / 0)
        with pytest.raises(Busy):
            await write_queue.submit_body(join_frames([senders.report(1, 0)]))
        monkeypatch.setattr(admission, "judge_batch", honest)
        mending = write_queue._mending
        store.open.set()
        with pytest.raises(Busy):
            await writing
        assert write_queue._mending is mending
        store.fault = None
        await write_queue.settle()
        assert (
            await write_queue.submit([senders.report(0, 0), senders.report(1, 0)])
            == ["accepted"] * 2
        )
        await write_queue.close()

    asyncio.run(scene())
    assert counted(kept) == {0: 1, 1: 1}


def test_settling_does_not_wait_for_those_who_come_later(kept):
    senders, store = Senders.of(500), Stubborn(kept)

    async def scene():
        _, write_queue = start(senders, store)
        first = asyncio.create_task(write_queue.submit([senders.report(0, 0)]))
        await turns(1)
        settled, others = asyncio.create_task(write_queue.settle()), []
        for key in range(1, 500):  # there is always somebody waiting
            others.append(asyncio.create_task(write_queue.submit([senders.report(key, 0)])))
            await asyncio.sleep(0)
            if settled.done():
                break
            if key % 10 == 0:
                await others[-10]
        assert settled.done()
        await turns(1)  # its answer is there; the task takes it in its next turn
        assert first.done()
        await asyncio.gather(*others)
        await write_queue.close()

    asyncio.run(scene())


def test_a_batch_larger_than_the_queue_is_taken_when_nobody_waits(kept):
    senders, store = Senders.of(20), Stubborn(kept)

    async def scene():
        _, write_queue = start(senders, store, queue_frames=10)
        body = join_frames([senders.report(key, 0) for key in range(20)])
        assert await write_queue.submit_body(body) == bytes(20)
        await write_queue.close()

    asyncio.run(scene())


def test_whoever_asked_may_go_and_the_report_counts(kept):
    senders, store = Senders.of(2), Stubborn(kept)

    async def scene():
        _, write_queue = start(senders, store)
        store.open.clear()
        gone = asyncio.create_task(write_queue.submit([senders.report(0, 0)]))
        await turns()
        gone.cancel()
        store.open.set()
        assert await write_queue.submit([senders.report(0, 0)]) == ["duplicate"]
        assert write_queue.n_waiting == 0
        await write_queue.close()

    asyncio.run(scene())
    assert counted(kept) == {0: 1}


def test_closing_finishes_what_was_taken_in_and_takes_no_more(kept):
    senders, store = Senders.of(2), Stubborn(kept)

    async def scene():
        _, write_queue = start(senders, store)
        last = asyncio.create_task(write_queue.submit([senders.report(0, 0)]))
        await turns(1)
        await write_queue.close()
        assert await last == ["accepted"]
        with pytest.raises(Busy, match="stopping"):
            await write_queue.submit([senders.report(1, 0)])

    asyncio.run(scene())
    assert counted(kept) == {0: 1}


def test_closing_does_not_wait_for_a_store_that_never_works_again(kept):
    senders, store = Senders.of(2), Stubborn(kept)

    async def scene():
        _, write_queue = start(senders, store)
        store.fault = StoreError("gone")
        with pytest.raises(Busy):
            await write_queue.submit([senders.report(0, 0)])
        async with asyncio.timeout(10):
            await write_queue.close()

    asyncio.run(scene())


def test_one_token_enrols_one_device_however_many_ask_at_once(kept):
    async def scene():
        _, write_queue = start(Senders.of(1), kept)
        await write_queue.run(kept.add_tokens, [b"t" * 32])
        wishes = [
            write_queue.run(kept.enrol, [b"t" * 32], [(b"device%10d" % i, bytes(32))])
            for i in range(20)
        ]
        found = await asyncio.gather(*wishes, return_exceptions=True)
        await write_queue.close()
        return found

    found = asyncio.run(scene())
    assert sum(not isinstance(one, Exception) for one in found) == 1
    assert sum(isinstance(one, UnknownToken) for one in found) == 19
    assert kept.n_ever_enrolled() == 1


# I5: real disks and databases


async def fill_and_resume(folder, senders, fill, empty):
    """Send until no room is left, check, make room, and send what is missing."""
    with contextlib.closing(open_store(folder / "store.db")) as store:
        store.enter(b"campaign")
        admission, write_queue = start(senders, store)
        acked, refused = set(), set()
        fill()
        for key in range(senders.n):
            try:
                (status,) = await write_queue.submit([senders.report(key, 0)])
            except Busy:
                refused.add(key)
            else:
                assert status == "accepted"
                acked.add(key)
        assert acked, "there was room at first"
        assert refused, "there was none at last"
        empty()
        async with asyncio.timeout(20):
            await write_queue.settle()
        assert acked <= set(counted(store)), "an acknowledged report is durable"
        for key in refused:
            (status,) = await write_queue.submit([senders.report(key, 0)])
            assert status in {"accepted", "duplicate"}
        assert counted(store) == dict.fromkeys(range(senders.n), 1)
        assert admission.accepted(0).answers[0][1].tolist() == list(range(senders.n))
        admission.close_round(0)
        row = FoldedRow(t=0, body=b"sums", digest=bytes(32))
        await write_queue.run(store.fold, row, marks=admission.accepted(0).marks, forget_before=0)
        await write_queue.close()


@contextlib.contextmanager
def small_disk(folder):
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.system
def test_a_full_disk_gives_no_false_ack_and_reports_go_on_when_there_is_room(tmp_path):
    senders = Senders.of(150, side=20)  # reports of half a kilobyte
    with small_disk(tmp_path / "disk") as disk:
        ballast = disk / "ballast"

        def fill():
            ballast.write_bytes(bytes(7_800_000))

        asyncio.run(fill_and_resume(disk, senders, fill, ballast.unlink))


def limited(folder):
    """Run in a process of its own: no file may grow, and then it may again."""
    write_queue_module.FIRST_PAUSE = 0.001
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))

    def empty():
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))

    asyncio.run(fill_and_resume(Path(folder), Senders.of(150, side=20), fill, empty))


@pytest.mark.system
def test_a_file_that_may_not_grow_gives_no_false_ack(tmp_path):
    paths = [str(HERE), str(HERE.parent), *sys.path]
    program = f"import sys; sys.path[:0] = {paths!r}; from test_write_queue import limited; "
    command = [sys.executable, "-c", program + f"limited({str(tmp_path)!r})"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.system
def test_a_database_that_goes_and_comes_back_gives_no_false_ack():
    server, senders = postgres.server(), Senders.of(60)
    store = open_store(server.database())
    store.enter(b"campaign")
    acked, refused = set(), set()

    async def send(write_queue, key):
        try:
            (status,) = await write_queue.submit([senders.report(key, 0)])
        except Busy:
            refused.add(key)
        else:
            assert status in {"accepted", "duplicate"}
            acked.add(key)

    async def scene():
        _, write_queue = start(senders, store)
        stopping = None
        for key in range(60):
            if key == 20:
                stopping = asyncio.create_task(asyncio.to_thread(server.stop))
            if key == 40:
                await stopping
            await send(write_queue, key)
        assert refused
        assert set(range(20)) <= acked
        await asyncio.to_thread(server.start)
        async with asyncio.timeout(20):
            await write_queue.settle()
        assert acked <= set(counted(store))
        for key in list(refused):
            await send(write_queue, key)
        await write_queue.close()

    asyncio.run(scene())
    assert acked == set(range(60))
    assert counted(store) == dict.fromkeys(range(60), 1)
    store.close()


@pytest.mark.system
def test_a_connection_cut_at_any_instant_gives_no_false_ack_and_no_report_counts_twice():
    senders, server = Senders.of(600), postgres.server()
    url = server.database()
    store = open_store(url)
    store.enter(b"campaign")
    dice, n_cuts = random.Random(3), 15

    async def send(write_queue, key):
        """Send the same bytes again until they are acknowledged, as a device does."""
        while True:
            try:
                (status,) = await write_queue.submit([senders.report(key, 0)])
            except Busy:
                await write_queue.settle()
            else:
                assert status in {"accepted", "duplicate"}
                return

    async def scene():
        admission, write_queue = start(senders, store)
        for first in range(0, 600, 600 // n_cuts):
            keys = range(first, first + 600 // n_cuts)
            sending = [asyncio.create_task(send(write_queue, key)) for key in keys]
            await turns(dice.randint(0, 8))
            await asyncio.to_thread(server.cut, url)
            async with asyncio.timeout(30):
                await asyncio.gather(*sending)
        assert admission.accepted(0).answers[0][1].tolist() == list(range(600))
        await write_queue.close()

    with contextlib.closing(store):
        asyncio.run(scene())
        assert counted(store) == dict.fromkeys(range(600), 1)
