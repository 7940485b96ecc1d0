"""A service that lives to be killed: forked from a process that has imported everything.

`nursery` reads a line for each life on its standard input. A child connects to a socket, is told
the time, and then obeys: kind and length in front of everything that is said either way.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from retrasyn.errors import Busy
from retrasyn.messages import Heartbeat, Report
from retrasyn.service.service import Service
from retrasyn.service.settings import Settings
from retrasyn.wire import encode_heartbeat, encode_report
from support.enrolling import enrolled

HEAD = struct.Struct("<cI")
TIME, BATCH, QUIT, READY = b"T", b"B", b"Q", b"R"


@dataclass
class ToldClock:
    """A clock that shows what it is told."""

    time: float

    def now(self) -> float:
        return self.time

    async def sleep_until(self, instant: float) -> None:
        raise AssertionError("nothing runs by itself here")


def settings_of(folder, store, epoch):
    values = {"folder": folder, "store": store, "epoch": epoch, "period": 10, "grace": 5}
    values |= {"window": 3, "grid": 3, "seed": 7, "snapshot_every": 4, "method": "steered"}
    values |= {"lifetime_cap": 1000, "replicates": 2}
    return Settings.load(None, {name: str(value) for name, value in values.items()})


@dataclass
class Life:
    """One service behind one connection."""

    service: Service
    writer: asyncio.StreamWriter

    def say(self, kind, body=b""):
        self.writer.write(HEAD.pack(kind, len(body)) + body)

    async def turn(self, time):
        self.service.clock.time = time
        await self.service.scheduler.tick()
        self.say(TIME)

    async def take(self, number, body):
        try:
            codes = await self.service.runtime.write_queue.submit_body(body)
        except Busy:
            codes = b"\x0a"
        self.say(BATCH, number + codes)


async def live(socket, settings):
    reader, writer = await asyncio.open_unix_connection(socket)
    writer.write(struct.pack("<I", os.getpid()))
    (time,) = struct.unpack("<d", await reader.readexactly(8))
    service = Service(settings, ToldClock(time))
    await service.start(runs=False)
    life, tasks = Life(service, writer), set()
    life.say(READY)
    with contextlib.suppress(asyncio.IncompleteReadError):
        while True:
            kind, length = HEAD.unpack(await reader.readexactly(HEAD.size))
            body = await reader.readexactly(length)
            if kind == QUIT:
                await asyncio.gather(*tasks)
                await service.stop()
                life.say(QUIT)
                await writer.drain()
                return
            if kind == TIME:
                work = life.turn(*struct.unpack("<d", body))
            else:
                work = life.take(body[:4], body[4:])
            task = asyncio.create_task(work)
            tasks.add(task)
            task.add_done_callback(tasks.discard)


def rehearse():
    """Go through a few rounds once, so that what is compiled or imported late is there."""

    async def run(folder):
        service = Service(settings_of(folder, "sqlite", 0), ToldClock(1.0))
        await service.start(runs=False)
        for new in await enrolled(service.runtime, 4):
            fields = {"t": 0, "manifest": service.runtime.campaign.id, "device": new.device}
            await service.scheduler.tick()
            await service.runtime.write_queue.submit(
                [encode_heartbeat(Heartbeat(kind=1, **fields), new.key)]
            )
            bits = bytes(-(-service.runtime.campaign.manifest.n_states // 8))
            fields |= {"question": 0, "n_answers": service.runtime.campaign.manifest.n_states}
            report = Report(epsilon=service.runtime.campaign.manifest.epsilon, bits=bits, **fields)
            await service.runtime.write_queue.submit([encode_report(report, new.key, oracle="oue")])
        for t in range(1, 5):
            service.clock.time = 10.0 * t + 6
            await service.scheduler.tick()
        await service.stop()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


def nursery(socket, folder, store, epoch):
    """Fork a life for every line that is read."""
    rehearse()
    settings = settings_of(folder, store, epoch)
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(live(socket, settings))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 - its owner listens


if __name__ == "__main__":
    nursery(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
