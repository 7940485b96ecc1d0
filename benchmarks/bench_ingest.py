"""Reports a second through admission, and durable through the write queue, beside their parts.

Admission is held against hashing the same frames once; a durable group against writing as many
bytes to a file and syncing it. A service has to do both on one core, with its web server.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench_device import EPOCH, MANIFEST
from retrasyn.service.admission.admission import Admission
from retrasyn.service.store import RoundRow, open_store
from retrasyn.service.write_queue import WriteQueue
from retrasyn.wire import encode_manifest, manifest_id
from retrasyn.wire.batches import join_frames
from retrasyn.wire.frames import tag_of
from retrasyn.wire.layout import VERSION
from workloads import Line

N = 50_000
BATCH = 1_000
SINGLES = 10_000
AT_ONCE = 64
ID = manifest_id(encode_manifest(MANIFEST))
HEAD = struct.Struct("<BBHII8s16s")
DEVICES = [(os.urandom(16), os.urandom(32)) for _ in range(N)]


def gate_for(t: int) -> Admission:
    admission = Admission(MANIFEST, ID)
    for key, (device, secret) in enumerate(DEVICES):
        admission.add_device(key, device, secret)
    admission.open_round(row(t))
    return admission


def row(t: int) -> RoundRow:
    opens = EPOCH + t * MANIFEST.period
    return RoundRow(
        t=t,
        epsilon=MANIFEST.epsilon,
        portion=1 << 64,
        ends=opens + MANIFEST.period,
        envelope=b"",
    )


def frames_at(t: int) -> list[bytes]:
    frames = []
    for device, secret in DEVICES:
        head = HEAD.pack(VERSION, 0, MANIFEST.n_states, t, MANIFEST.epsilon, ID, device)
        message = head + os.urandom(41)
        frames.append(message + tag_of(secret, message))
    return frames


def batches_of(frames: list[bytes]) -> list[bytes]:
    return [join_frames(frames[i : i + BATCH]) for i in range(0, len(frames), BATCH)]


def judging(frames: list[bytes]) -> tuple[float, float]:
    """Return microseconds of a report at admission, and of one hash of it; batch by batch."""
    admission, now = gate_for(0), EPOCH + 1.0
    judged, hashed = [], []
    for place, body in enumerate(batches_of(frames)):
        begin = time.perf_counter()
        found = admission.judge_batch(body, now)
        middle = time.perf_counter()
        for frame in frames[place * BATCH : (place + 1) * BATCH]:
            hashlib.sha256(frame).digest()
        hashed.append((time.perf_counter() - middle) / BATCH * 1e6)
        judged.append((middle - begin) / BATCH * 1e6)
        if found.codes.any():
            raise AssertionError(set(found.statuses))
    return statistics.median(judged), statistics.median(hashed)


async def in_batches(admission: Admission, folder: Path, frames: list[bytes]) -> float:
    """Return the reports that are durable in a second, in batches from a few senders."""
    store, place = open_store(folder / "batches"), asyncio.Semaphore(8)
    store.enter(ID)
    write_queue = WriteQueue(admission, store, clock=lambda: EPOCH + 1.0)

    async def send(body: bytes) -> None:
        async with place:
            await write_queue.submit_body(body)

    bodies = batches_of(frames)
    begin = time.perf_counter()
    await asyncio.gather(*map(send, bodies))
    seconds = time.perf_counter() - begin
    await write_queue.close()
    store.close()
    return len(frames) / seconds


async def one_by_one(
    admission: Admission, folder: Path, frames: list[bytes]
) -> tuple[float, float]:
    """Return the reports that are durable in a second, and the 99th percentile of one in ms."""
    store, place = open_store(folder / "singles"), asyncio.Semaphore(AT_ONCE)
    store.enter(ID)
    write_queue, milliseconds = WriteQueue(admission, store, clock=lambda: EPOCH + 1.0), []

    async def send(frame: bytes) -> None:
        async with place:
            begin = time.perf_counter()
            await write_queue.submit([frame])
            milliseconds.append((time.perf_counter() - begin) * 1e3)

    begin = time.perf_counter()
    await asyncio.gather(*map(send, frames))
    rate = len(frames) / (time.perf_counter() - begin)
    await write_queue.close()
    store.close()
    return rate, statistics.quantiles(milliseconds, n=100)[98]


def bare_writes(folder: Path, n_bytes: int, n: int) -> float:
    """Return milliseconds of writing so many bytes and syncing them."""
    milliseconds = []
    with (folder / "bare").open("wb") as file:
        for _ in range(n):
            begin = time.perf_counter()
            file.write(bytes(n_bytes))
            file.flush()
            os.fsync(file.fileno())
            milliseconds.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(milliseconds)


def commits(folder: Path, n_bytes: int, n: int) -> float:
    """Return milliseconds of appending so many bytes to the store."""
    store, milliseconds = open_store(folder / "commits"), []
    store.enter(ID)
    for _ in range(n):
        begin = time.perf_counter()
        store.append([(0, bytes(n_bytes))])
        milliseconds.append((time.perf_counter() - begin) * 1e3)
    store.close()
    return statistics.median(milliseconds)


def lines() -> Iterator[Line]:
    frames = frames_at(0)
    judged, hashed = judging(frames)
    detail = f"{judged:.2f} us a report, {hashed:.2f} us a hash"
    yield Line("judging a report of a batch / hashing it once", judged / hashed, 6, detail)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder, size = Path(name), 62 * BATCH
        commit, bare = commits(folder, size, 100), bare_writes(folder, size, 100)
        detail = f"{commit:.2f} ms for {size:,} bytes, {bare:.2f} ms without a database"
        yield Line("a durable group / writing and syncing it", commit / bare, 6, detail)
        rate = asyncio.run(in_batches(gate_for(0), folder, frames))
        share = rate * judged / 1e6
        detail = f"{rate:,.0f} reports a second in batches of {BATCH:,}"
        yield Line("durable in batches / judging alone", share, 0.25, detail, at_least=True)
        rate, high = asyncio.run(one_by_one(gate_for(0), folder, frames[:SINGLES]))
        detail = f"p99 {high:.1f} ms with {AT_ONCE} at once; {bare:.2f} ms a bare sync"
        yield Line("single durable reports a second", rate, 5_000, detail, at_least=True)


if __name__ == "__main__":
    for line in lines():
        print(f"{line.name}: {line.ratio:.2f} (bar {line.bar:g}); {line.detail}")
        if not line.holds:
            sys.exit(1)
