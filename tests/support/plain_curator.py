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

from retrasyn.client.owner import write_link
from retrasyn.device import Instant
from retrasyn.device.signatures import draw_x25519, share_x25519
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
    round_hash,
)
from retrasyn.wire.batches import split_frames
from retrasyn.wire.canonical import seal, signed_part, unseal
from retrasyn.wire.frames import acked_part, device_of, is_heartbeat, tag_of
from retrasyn.wire.keys import agreed_key, write_agreement, write_succession
from retrasyn.wire.statuses import HTTP_STATUS
from support.campaigns import EVERYBODY, manifest_of


@dataclass
class PlainCurator:
    """One campaign. `faults` is used up by single posts: busy, deaf (no answer) or forgetful."""

    manifest: Manifest
    now: Callable[[], float] = time.time  # seconds
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    pair: tuple[bytes, bytes] = field(default_factory=draw_x25519)  # to agree with
    successions: list[bytes] = field(default_factory=list)
    forge: Callable[[bytes], bytes] | None = None  # answers frames in the curator's place
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
        self.manifest = replace(self.manifest, key=self.public, **changes)
        self.text = encode_manifest(self.manifest)
        self.id = manifest_id(self.text)
        self.previous, self.rounds = round_hash(self.text), {}

    @property
    def public(self) -> bytes:
        return self.key.public_key().public_bytes_raw()

    def sign(self, kind: str, text: bytes) -> bytes:
        return seal(text, self.key.sign(signed_part(kind, text)))

    def statement(self) -> bytes:
        body = write_agreement(self.pair[1])
        return b"".join((body, self.key.sign(signed_part("agreement", body)), *self.successions))

    def rotate(self, *, until: int, signer: Ed25519PrivateKey | None = None) -> None:
        """Take a new key, signed by the one before or by somebody else."""
        new = Ed25519PrivateKey.generate()
        key = new.public_key().public_bytes_raw()
        body = write_succession(before=self.public, key=key, until=until)
        signature = (signer or self.key).sign(signed_part("succession", body))
        self.successions.append(body + signature)
        self.key, self.pair = new, draw_x25519()
        self.rounds = {t: self.sign("round", unseal(old)[0]) for t, old in self.rounds.items()}

    def enrol(self, tokens: list[str], publics: list[str]) -> list[dict[str, str]]:
        """Agree on a key for each token."""
        self.tokens -= set(tokens)
        rows = []
        for public in map(bytes.fromhex, publics):
            device, shared = system_bytes(16), share_x25519(self.pair[0], public)
            key = self.devices[device] = agreed_key(
                shared, agreement=self.pair[1], public=public, manifest=self.id, device=device
            )
            tag = tag_of(key, signed_part("enrolled", device))
            rows.append({"device": device.hex(), "tag": tag.hex()})
        return rows

    def ack(self, frame: bytes, status: str) -> bytes:
        if self.forge is not None:
            return self.forge(frame)
        part = signed_part("ack", acked_part(status, frame))
        key = self.devices.get(device_of(frame))
        proof = self.key.sign(part) if key is None else tag_of(key, part)
        return encode_ack(Ack(status=status, proof=proof))

    def token(self) -> str:
        token = system_bytes(12).hex()
        self.tokens.add(token)
        return token

    def link(self) -> str:
        return write_link(self.url, self.token(), self.public)

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
        if self.path == "/v1/keys":
            return self._say(200, curator.statement())
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
            acks = [curator.ack(f, curator.judge(f))[1:18] for f in split_frames(body)]
            self._say(200, b"".join(acks))
        elif self.path == "/v1/enrolments":
            asked = json.loads(body)
            if not set(asked["tokens"]) <= curator.tokens:
                return self._say(401)
            rows = curator.enrol(asked["tokens"], asked["keys"])
            self._say(200, json.dumps({"devices": rows}).encode())
        elif self.path == "/v1/operator/tokens":
            if self.headers.get("Authorization") != "Bearer operator":
                return self._say(401)
            tokens = [curator.token() for _ in range(json.loads(body)["n"])]
            key = curator.public.hex()
            self._say(200, json.dumps({"tokens": tokens, "key": key}).encode())
        elif self.path.endswith("/asked"):
            ids = [body[k : k + 16] for k in range(0, len(body), 16)]
            self._say(200, bytes(curator.meant(one) for one in ids))
        else:
            self._say(404)
        return None

    def _report(self, curator: PlainCurator, frame: bytes) -> None:
        fault = curator.faults.pop(0) if curator.faults else ""
        if fault == "busy":
            self._say(503, curator.ack(frame, "busy"), Retry_After="0")
            return
        if fault != "forgetful":
            status = curator.judge(frame)
        if fault:  # deaf: counted, but no answer; forgetful: neither
            self.close_connection = True
            return
        self._say(HTTP_STATUS[status], curator.ack(frame, status))

    def do_DELETE(self) -> None:
        curator: PlainCurator = self.server.curator
        device = bytes.fromhex(self.path.rpartition("/")[2])
        key = curator.devices.get(device, b"")
        leave, left = (signed_part(kind, device) for kind in ("leave", "left"))
        if not key or self.headers.get("Retrasyn-Tag") != tag_of(key, leave).hex():
            return self._say(401)
        del curator.devices[device]
        return self._say(204, Retrasyn_Tag=tag_of(key, left).hex())


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
