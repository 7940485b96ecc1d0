"""A real service on a real server for tests: loopback, a free port, a clock moved by hand."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from retrasyn.device.signatures import verify_ed25519
from retrasyn.messages import MOVING, Heartbeat, Report
from retrasyn.service.enrolment import NewDevice
from retrasyn.service.service import Service
from retrasyn.service.settings import Settings
from retrasyn.service.web.app import CampaignApp
from retrasyn.service.web.server import WebServer
from retrasyn.wire.canonical import signed_part, unseal
from retrasyn.wire.frames import (
    acked_part,
    body_bytes,
    decode_ack,
    device_of,
    encode_heartbeat,
    encode_report,
    is_tagged,
)
from retrasyn.wire.statuses import HTTP_STATUS
from support.enrolling import enrolled

START = 1_700_000_040.0  # a whole minute
PATIENCE = 30.0
Value = TypeVar("Value")


class HandClock:
    """Shows what it was set to; sleepers look every few milliseconds."""

    def __init__(self, now: float = START) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    def set(self, now: float) -> None:
        self._now = now

    async def sleep_until(self, instant: float) -> None:
        await asyncio.sleep(0.002 if instant > self._now else 0)


@dataclass
class Answer:
    """What came back over HTTP."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Threaded:
    """Something that is served from an event loop in a thread of its own."""

    loop: asyncio.AbstractEventLoop = field(
        default_factory=asyncio.new_event_loop, kw_only=True, repr=False
    )
    server: WebServer = field(init=False, repr=False)
    prefix: str = field(default="", init=False)  # of every path

    async def start(self) -> None:
        """Begin to serve."""
        raise NotImplementedError

    async def stop(self) -> None:
        """End it."""
        raise NotImplementedError

    @contextmanager
    def serving(self) -> Iterator[Self]:
        """Serve until the block ends."""
        thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        thread.start()
        try:
            self.run(self.start())
            try:
                yield self
            finally:
                self.run(self.stop())
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            thread.join(PATIENCE)
            self.loop.close()

    def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        """Run something in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.server.port

    @property
    def host(self) -> str:
        """What stands in the header Host of a request."""
        return f"127.0.0.1:{self.server.port}"

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=PATIENCE)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """Make one request on a connection of its own."""
        connection = http.client.HTTPConnection(*self.address, timeout=PATIENCE)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, self.prefix + path, body, named)
            answer = connection.getresponse()
            lines = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, lines, answer.read())
        finally:
            connection.close()

    def wait(self, ready: Any) -> None:
        """Wait until something holds."""
        end = time.monotonic() + PATIENCE
        while not ready():
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.002)


@dataclass
class Living(Threaded):
    """A service."""

    settings: Settings
    clock: HandClock
    service: Service = field(init=False)
    web: CampaignApp = field(init=False)

    async def start(self) -> None:
        self.server = WebServer(self.settings.server, self.settings.limits)
        self.service = Service(self.settings, self.clock)
        await self.service.start()
        runtime, token = self.service.runtime, self.service.operator_token
        self.web = CampaignApp(runtime, self.server.hosts, operator_token=token)
        await self.server.start(self.web)

    async def stop(self) -> None:
        await self.web.stop()
        await self.server.stop()
        await self.service.stop()

    def tell(self, method: str, path: str, told: Any) -> Answer:
        """Send JSON."""
        return self.ask(method, path, json.dumps(told).encode(), content_type="application/json")

    def send(self, frame: bytes) -> str:
        """Send one frame and return the status its acknowledgement says, once it is proven."""
        answer = self.ask("POST", "/v1/reports", frame)
        ack = decode_ack(answer.body)
        assert answer.status == HTTP_STATUS[ack.status]
        rows = self.service.runtime.devices._rows
        if ack.status == "unauthenticated":
            said = signed_part("ack", acked_part(ack.status, frame))
            assert verify_ed25519(self.service.runtime.campaign.manifest.key, said, ack.proof)
        elif device_of(frame) in rows:
            assert is_tagged(ack, frame, rows[device_of(frame)].secret)
        return ack.status

    def ask_operator(self, method: str, path: str, told: Any = None) -> Answer:
        body = None if told is None else json.dumps(told).encode()
        token = self.service.operator_token
        return self.ask(
            method, path, body, authorization=f"Bearer {token}", content_type="application/json"
        )

    def enrol(self, n: int) -> list[NewDevice]:
        async def both() -> list[NewDevice]:
            return await enrolled(self.service.runtime, n)

        return self.run(both())

    def open_round(self, t: int) -> None:
        """Set the clock into the middle of a round and wait until it is open."""
        campaign = self.service.runtime.campaign
        self.clock.set(campaign.opening_of(t) + 1.0)
        self.wait(
            lambda: (found := self.service.runtime.current_round()) and round_in(found)["t"] == t
        )

    def release(self, t: int) -> None:
        """Set the clock behind a round's end and wait for its release."""
        campaign = self.service.runtime.campaign
        self.clock.set(campaign.opening_of(t + 1) + campaign.settings.seconds_of_grace + 1.0)
        self.wait(lambda: (newest := self.service.runtime.feed.newest) is not None and newest >= t)

    def report(self, device: NewDevice, t: int, *, bits: bytes | None = None) -> bytes:
        """Return the frame of a report as a device would make it."""
        manifest = self.service.runtime.campaign.manifest
        size = body_bytes(0, manifest.n_states, manifest.epsilon, manifest.oracle)
        report = Report(
            question=0,
            n_answers=manifest.n_states,
            t=t,
            epsilon=manifest.epsilon,
            manifest=self.service.runtime.campaign.id,
            device=device.device,
            bits=_random_bits(manifest.n_states, size) if bits is None else bits,
        )
        return encode_report(report, device.key, oracle=manifest.oracle)

    def heartbeat(self, device: NewDevice, t: int) -> bytes:
        beat = Heartbeat(
            kind=MOVING, t=t, manifest=self.service.runtime.campaign.id, device=device.device
        )
        return encode_heartbeat(beat, device.key)


def _random_bits(n: int, size: int) -> bytes:
    value = int.from_bytes(os.urandom(size), "little") & ((1 << n) - 1)
    return value.to_bytes(size, "little")


def round_in(envelope: bytes) -> dict[str, Any]:
    """Return what a sealed round says."""
    found: dict[str, Any] = json.loads(unseal(envelope)[0])
    return found


@contextmanager
def living(folder: Path, *, now: float = START, **changes: object) -> Iterator[Living]:
    """Run a service with settings of one's own until the block ends."""
    told = {"folder": folder, "port": 0, "seed": 7, "lifetime_cap": 1000, "replicates": 0} | changes
    settings = Settings.load(None, {name: str(value) for name, value in told.items()})
    with Living(settings, HandClock(now)).serving() as one:
        yield one
