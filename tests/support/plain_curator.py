"""A curator in plain loops over the standard library: real HTTP and signatures, all in memory."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from retrasyn.device import Instant
from retrasyn.errors import WireError
from retrasyn.messages import Ack, Manifest, Round
from retrasyn.randomness.words import system_bytes
from retrasyn.wire import (
    decode_heartbeat,
    decode_report,
    encode_ack,
    encode_manifest,
    encode_round,
    manifest_id,
    report_digest,
    round_hash,
)
from retrasyn.wire.batches import split_frames
from retrasyn.wire.canonical import seal, signed_part
from retrasyn.wire.frames import is_heartbeat
from retrasyn.wire.statuses import HTTP_STATUS, STATUSES
from support.campaigns import EVERYBODY, manifest_of


@dataclass
class PlainCurator:
    """One campaign. `faults` is used up by single posts: busy, deaf (no answer) or forgetful."""

    manifest: Manifest
    now: Callable[[], float] = time.time  # seconds
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    tokens: set[str] = field(default_factory=set)
    devices: dict[bytes, bytes] = field(default_factory=dict)
    rounds: dict[int, bytes] = field(default_factory=dict)
    received: list[bytes] = field(default_factory=list)  # every frame, as often as it came
    counted: dict[tuple[int, bytes, bool], bytes] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    meant: Callable[[bytes], bool] = lambda _device: True
    url: str = ""

    def __post_init__(self) -> None:
        self.change()

    def change(self, **changes: Any) -> None:
        """Begin a campaign, or another one."""
        public = self.key.public_key().public_bytes_raw()
        self.manifest = replace(self.manifest, key=public, **changes)
        self.text = encode_manifest(self.manifest)
        self.id = manifest_id(self.text)
        self.previous, self.rounds = round_hash(self.text), {}

    def sign(self, kind: str, text: bytes) -> bytes:
        return seal(text, self.key.sign(signed_part(kind, text)))

    def token(self) -> str:
        token = system_bytes(12).hex()
        self.tokens.add(token)
        return token

    def link(self) -> str:
        return f"{self.url}/#enrol={self.token()}"

    def current(self) -> bytes | None:
        t = int(self.now() - self.manifest.epoch) // self.manifest.period
        if t < 0:
            return None
        if t not in self.rounds:
            opens = self.manifest.epoch + t * self.manifest.period
            asked = Round(
                manifest=self.id,
                t=t,
                open=opens,
                close=opens + self.manifest.period,
                grace=1,
                epsilon=self.manifest.epsilon,
                portion=EVERYBODY,
                previous=self.previous,
            )
            text = encode_round(asked)
            self.previous, self.rounds[t] = round_hash(text), self.sign("round", text)
        return self.rounds[t]

    def judge(self, frame: bytes) -> str:
        self.received.append(frame)
        beat = is_heartbeat(frame)
        try:
            device = frame[14:30] if beat else frame[20:36]
            key = self.devices.get(device, b"nobody's key 16b")
            read: Any = (
                decode_heartbeat(frame, key)
                if beat
                else decode_report(frame, key, oracle=self.manifest.oracle)
            )
        except WireError:
            return "unauthenticated"
        if read.manifest != self.id:
            return "bad manifest"
        first = self.counted.setdefault((read.t, read.device, beat), frame)
        if first != frame:
            return "conflict"
        return "duplicate" if self.received.count(frame) > 1 else "accepted"

    def reports(self, device: bytes | None = None) -> dict[tuple[int, bytes], bytes]:
        """Return the reports that counted."""
        return {
            (t, who): frame
            for (t, who, beat), frame in self.counted.items()
            if not beat and device in (None, who)
        }

    def heartbeats(self) -> dict[tuple[int, bytes], int]:
        """Return the kinds of the heartbeats that counted."""
        return {(t, who): f[1] - 64 for (t, who, beat), f in self.counted.items() if beat}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # headers and body in one packet
    server: Any

    def log_message(self, *_: Any) -> None:
        pass

    def _say(self, code: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def do_GET(self) -> None:
        curator: PlainCurator = self.server.curator
        if self.path == "/v1/campaign":
            return self._say(200, curator.sign("manifest", curator.text))
        envelope = curator.current() if self.path == "/v1/rounds/current" else None
        if self.path == "/v1/elsewhere":
            return self._say(307, Location="http://127.0.0.1:9/")
        return self._say(503, Retry_After="1") if envelope is None else self._say(200, envelope)

    def do_POST(self) -> None:
        curator: PlainCurator = self.server.curator
        body = self._body()
        if self.path == "/v1/reports":
            self._report(curator, body)
        elif self.path == "/v1/reports/batch":
            fault = curator.faults.pop(0) if curator.faults else ""
            if fault == "busy":
                return self._say(503, Retry_After="0")
            self._say(200, bytes(STATUSES.index(curator.judge(f)) for f in split_frames(body)))
        elif self.path == "/v1/enrolments":
            tokens = json.loads(body)["tokens"]
            if not set(tokens) <= curator.tokens:
                return self._say(401)
            curator.tokens -= set(tokens)
            new = [(system_bytes(16), system_bytes(32)) for _ in tokens]
            curator.devices.update(new)
            rows = [{"device": device.hex(), "key": key.hex()} for device, key in new]
            self._say(200, json.dumps({"devices": rows}).encode())
        elif self.path == "/v1/operator/tokens":
            if self.headers.get("Authorization") != "Bearer operator":
                return self._say(401)
            tokens = [curator.token() for _ in range(json.loads(body)["n"])]
            self._say(200, json.dumps({"tokens": tokens}).encode())
        elif self.path.endswith("/asked"):
            ids = [body[k : k + 16] for k in range(0, len(body), 16)]
            self._say(200, bytes(curator.meant(one) for one in ids))
        else:
            self._say(404)
        return None

    def _report(self, curator: PlainCurator, frame: bytes) -> None:
        fault = curator.faults.pop(0) if curator.faults else ""
        if fault == "busy":
            self._say(503, encode_ack(_ack(curator, frame, "busy")), Retry_After="0")
            return
        if fault != "forgetful":
            status = curator.judge(frame)
        if fault:  # deaf: counted, but no answer; forgetful: neither
            self.close_connection = True
            return
        self._say(HTTP_STATUS[status], encode_ack(_ack(curator, frame, status)))

    def do_DELETE(self) -> None:
        from retrasyn.wire.frames import tag_of

        curator: PlainCurator = self.server.curator
        device = bytes.fromhex(self.path.rpartition("/")[2])
        key = curator.devices.get(device, b"")
        tag = tag_of(key, b"retrasyn/1/leave\n" + curator.id + device) if key else None
        if tag is None or self.headers.get("Retrasyn-Tag") != tag.hex():
            return self._say(401)
        del curator.devices[device]
        return self._say(204)


def _ack(curator: PlainCurator, frame: bytes, status: str) -> Ack:
    return Ack(status=status, manifest=curator.id, t=0, digest=report_digest(frame))


@contextmanager
def serving(curator: PlainCurator) -> Iterator[PlainCurator]:
    """Serve on a free port of the loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.curator = curator  # type: ignore[attr-defined]
    curator.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield curator
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class JumpingClock:
    """Time that passes only when somebody waits; a hook may look at every instant waited for."""

    wall: float = 1_700_000_000_000.0  # milliseconds
    boot: float = 0.0
    hook: Callable[[float], bool] = lambda _wall: True
    end: float = 1e18

    def now(self) -> Instant:
        return Instant(wall=int(self.wall), boot=int(self.boot))

    def wait_until(self, wall: float) -> bool:
        if wall > self.wall:
            self.boot += wall - self.wall
            self.wall = wall
        return self.hook(self.wall) and self.wall < self.end


def small_campaign(**changes: Any) -> Manifest:
    """Return a campaign of short windows, in which every device reports at its slot."""
    fields: dict[str, Any] = {"sampling": "phase", "window": 2, "period": 10, "jump": "clamp"}
    return manifest_of(**(fields | changes))
