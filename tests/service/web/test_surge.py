"""I4: ten times what the queue holds. Some are told to wait; no acknowledged report is lost."""

import http.client
import threading
from collections import Counter
from pathlib import Path

import pytest

from retrasyn.errors import StoreError
from retrasyn.wire.batches import join_frames, read_acks
from support.living import living

pytestmark = pytest.mark.system

N_DEVICES = 4000
BATCH = 100


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """A service whose queue holds a tenth of what will come at once."""
    folder = tmp_path_factory.mktemp("crowded") / "folder"
    with living(folder, queue_frames=N_DEVICES // 10) as live:
        live.devices = live.enrol(N_DEVICES)
        live.open_round(0)
        yield live


def resident():
    """Return the memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / (1 << 20)


def test_a_ten_fold_surge_is_told_to_wait_and_nothing_acknowledged_is_lost(crowded, monkeypatch):
    frames = [crowded.report(device, 0) for device in crowded.devices]
    batches = [frames[first : first + BATCH] for first in range(0, N_DEVICES, BATCH)]
    kept, statuses = set(), Counter()
    together = threading.Barrier(len(batches))
    slow = threading.Event()
    store = type(crowded.service.runtime.store)
    append = store.append

    def append_slowly(self, blobs):
        slow.wait(0.3)  # a disk that takes its time
        append(self, blobs)

    def send(batch):
        connection = http.client.HTTPConnection(*crowded.address, timeout=30)
        together.wait()
        connection.request("POST", "/v1/reports/batch", join_frames(batch))
        answer = connection.getresponse()
        body = answer.read()
        statuses[answer.status] += 1
        if answer.status == 200:
            said = [ack.status for ack in read_acks(body, len(batch))]
            kept.update(f for f, status in zip(batch, said, strict=True) if status == "accepted")
        else:
            assert int(answer.headers["retry-after"]) >= 1
        connection.close()

    before = resident()
    with monkeypatch.context() as patched:
        patched.setattr(store, "append", append_slowly)
        threads = [threading.Thread(target=send, args=(batch,)) for batch in batches]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert statuses.keys() == {200, 503}
    assert statuses[503] > len(batches) // 3
    assert resident() - before < 100
    late = [batch for batch in batches if batch[0] not in kept]
    for batch in late:  # those told to wait send the same bytes again
        answer = crowded.ask("POST", "/v1/reports/batch", join_frames(batch))
        assert {ack.status for ack in read_acks(answer.body, BATCH)} == {"accepted"}
    crowded.release(0)
    assert crowded.ask("GET", "/v1/releases/0").json()["n_reports"] == N_DEVICES


def test_while_the_store_fails_nothing_is_acknowledged_and_then_it_goes_on(crowded, monkeypatch):
    crowded.open_round(1)
    device = crowded.enrol(1)[0]
    frame = crowded.report(device, 1)

    def fail(*_):
        raise StoreError("the disk is full")

    with monkeypatch.context() as patched:
        for name in ("append", "probe"):
            patched.setattr(type(crowded.service.runtime.store), name, fail)
        answer = crowded.ask("POST", "/v1/reports", frame)
        assert answer.status == 503
        assert int(answer.headers["retry-after"]) >= 1
        assert crowded.ask("GET", "/readyz").status == 503
        assert b"retrasyn_store_healthy 0.0" in crowded.ask_operator("GET", "/metrics").body
    crowded.wait(lambda: crowded.ask("GET", "/readyz").status == 200)
    assert crowded.send(frame) == "accepted"


def test_one_address_that_asks_too_fast_is_told_to_wait(tmp_path):
    with living(tmp_path / "folder", rate_per_second=0.01, burst=20) as live:
        answers = [live.ask("GET", "/healthz") for _ in range(30)]
        assert Counter(answer.status for answer in answers) == {200: 20, 429: 10}
        assert all(
            int(answer.headers["retry-after"]) >= 1 for answer in answers if answer.status == 429
        )
        assert live.ask("POST", "/v1/reports", b"").status == 429
