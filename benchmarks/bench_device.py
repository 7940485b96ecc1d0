"""One report of a device at side 6: its own time, and with the ledger on disk.

The bars are in milliseconds, since a phone's battery knows no ratios; beside them stands what
drawing the same number of words takes, and what a bare fsync takes on the same disk.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from retrasyn.device import Answer, Instant, MemoryStore, Reporter, SQLiteStore, Tracker
from retrasyn.device.memory import LedgerStore
from retrasyn.messages import MICRO, Manifest, Round
from retrasyn.randomness.words import system_bytes
from retrasyn.wire import encode_manifest, encode_round, manifest_id, round_hash
from retrasyn.wire.canonical import seal
from workloads import Line

EPOCH = 1_700_000_000
MANIFEST = Manifest(
    name="bench",
    key=bytes(32),
    box=(0, 0, MICRO, MICRO),
    side=6,
    state_order=1,
    n_states=328,
    period=60,
    epoch=EPOCH,
    window=1,
    unit="transition",
    gap=1,
    epsilon=MICRO,
    division="population",
    sampling="curator",
    oracle="oue",
    presence="count",
    jump="clamp",
    size_source="counted",
    strata=("transition",),
    other_shares=(),
    ages=(),
    lifetime_cap=10**9 * MICRO // 1000,
    retention=1,
)


def milliseconds(store: LedgerStore, n_reports: int) -> list[float]:
    """Return how long each of many reports took, signature check left out."""
    text = encode_manifest(MANIFEST)
    name, previous = manifest_id(text), round_hash(text)
    reporter = Reporter(device=bytes(16), key=bytes(32), store=store, verify=lambda *_: True)
    tracker = Tracker(MANIFEST)
    reporter.pin(seal(text, bytes(64)), Instant(wall=EPOCH * 1000, boot=0))
    taken = []
    for t in range(3, n_reports + 3):
        opens = EPOCH + t * 60
        body = encode_round(
            Round(
                manifest=name,
                t=t,
                open=opens,
                close=opens + 60,
                grace=0,
                epsilon=MICRO,
                portion=1 << 64,
                previous=previous,
            )
        )
        previous = round_hash(body)
        envelope, now = seal(body, bytes(64)), Instant(wall=opens * 1000, boot=t * 60_000)
        begin = time.perf_counter()
        tracker.observe(t, (0.5, 0.5), boot=now.boot)
        answer = reporter.answer(envelope, now, tracker)
        taken.append((time.perf_counter() - begin) * 1e3)
        if not isinstance(answer, Answer):
            raise TypeError(answer)
    return taken


def bare_fsync(folder: Path, n: int) -> list[float]:
    taken = []
    with (folder / "bare").open("wb") as file:
        for _ in range(n):
            file.seek(0)
            file.write(bytes(4096))
            file.flush()
            begin = time.perf_counter()
            os.fsync(file.fileno())
            taken.append((time.perf_counter() - begin) * 1e3)
    return taken


def drawing(n: int) -> list[float]:
    taken = []
    for _ in range(n):
        begin = time.perf_counter()
        system_bytes(8 * MANIFEST.n_states)
        taken.append((time.perf_counter() - begin) * 1e3)
    return taken


def lines() -> Iterator[Line]:
    own = statistics.median(milliseconds(MemoryStore(), 2000))
    words = statistics.median(drawing(2000))
    detail = f"{own / words:.0f} times drawing its 328 words ({words:.4f} ms)"
    yield Line("one report of a device without its disk, ms", own, 1, detail)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        taken = milliseconds(SQLiteStore(Path(name) / "ledger"), 400)
        high = statistics.quantiles(taken, n=100)[98]
        sync = statistics.quantiles(bare_fsync(Path(name), 400), n=100)[98]
    detail = f"median {statistics.median(taken):.1f} ms; {high / sync:.1f} times a bare fsync's p99"
    yield Line("the same with its ledger on disk, p99, ms", high, 50, detail)


if __name__ == "__main__":
    for line in lines():
        print(f"{line.name}: {line.ratio:.3f} (bar {line.bar:g}); {line.detail}")
        if not line.holds:
            sys.exit(1)
