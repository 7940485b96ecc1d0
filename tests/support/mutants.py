"""Requests that are nearly right: taken from real ones, then changed somewhere."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from retrasyn.wire.batches import join_frames
from support.enrolling import asking
from support.living import Living

_JSON = {"Content-Type": "application/json"}
_SCRAPS = (b"", b"\x00", b"\xff" * 9, b"%00", b"../", b"'\"<>", b"{}", b"9" * 30, b"-1", b"NaN")


@dataclass(frozen=True)
class Request:
    """A request in its parts."""

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def wire(self) -> bytes:
        lines = [f"{self.method} {self.path} HTTP/1.1", "Host: a"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if self.body or self.method in ("POST", "PUT"):
            lines.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + self.body


def originals(live: Living, used_token: str) -> list[Request]:
    """Return requests that are right, none of which changes anything once they were made."""
    reports = [live.report(device, 0) for device in live.devices[:8]]
    beats = [live.heartbeat(device, 0) for device in live.devices[:8]]
    frames = [*reports, *beats]
    ids = b"".join(device.device for device in live.devices[:5])
    gone = "ab" * 16
    tokens = json.dumps(asking(live.service.runtime.campaign, used_token)).encode()
    return [
        *(Request("POST", "/v1/reports", {}, frame) for frame in frames),
        *(Request("POST", "/v1/reports/batch", {}, join_frames(frames[:n])) for n in (2, 9, 16)),
        Request("POST", "/v1/rounds/0/asked", {}, ids),
        Request("POST", "/v1/enrolments", _JSON, tokens),
        Request("DELETE", f"/v1/devices/{gone}", {"Retrasyn-Tag": gone}),
        Request("POST", "/v1/operator/tokens", _JSON | {"Authorization": "Bearer x"}, b'{"n": 1}'),
        Request("DELETE", f"/v1/operator/devices/{gone}", {"Authorization": "Bearer x"}),
        *(
            Request("GET", path)
            for path in (
                "/v1/rounds/0",
                "/v1/rounds/current",
                "/v1/releases?from=0&to=3&limit=5",
                "/v1/points?from=0&to=3&format=csv",
                "/v1/receipts/0",
                "/v1/status",
                "/metrics",
                "/",
            )
        ),
    ]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Change some bytes, somewhere."""
    place, n = rng.randrange(len(data) + 1), rng.randrange(1, 20)
    before, after, later = data[:place], data[place:], data[place + n :]
    flipped = bytes([after[0] ^ 1 << rng.randrange(8)]) + after[1:] if after else b"\x00"
    return rng.choice(
        (
            before + flipped,
            before,
            before + rng.randbytes(n) + after,
            before + later,
            before + rng.choice(_SCRAPS) + later,
            data + before,
            rng.randbytes(rng.randrange(200)),
        )
    )


def _text(rng: random.Random, text: str) -> str:
    """Change text, but keep it within what a line of HTTP can hold."""
    changed = mutate(rng, text.encode()).decode("latin-1")
    return "".join(letter for letter in changed if "!" <= letter <= "~") or "/"


def mutant(rng: random.Random, right: Request) -> Request:
    """Change one part of a request."""
    match rng.randrange(6):
        case 0:
            path = _text(rng, right.path)
            return Request(
                right.method, path if path[0] == "/" else f"/{path}", right.headers, right.body
            )
        case 1:
            method = rng.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "X"])
            return Request(method, right.path, right.headers, right.body)
        case 2:
            name = _text(rng, "Retrasyn-Tag").replace(":", "")
            named = _harmless({name: _text(rng, "x" * 32)})
            return Request(right.method, right.path, named, right.body)
        case _:
            return Request(right.method, right.path, right.headers, mutate(rng, right.body))


def _harmless(names: dict[str, str]) -> dict[str, str]:
    """Leave headers out that would change how much of what follows is a body."""
    return {
        name: value
        for name, value in names.items()
        if name.replace("-", "").isalnum() and name.lower() not in ("content-length", "connection")
    }


def send_all(address: tuple[str, int], requests: Iterable[bytes]) -> Counter[int]:
    """Send requests from another process; count the statuses that came back."""
    sender = Path(__file__).with_name("request_sender.py")
    with subprocess.Popen(
        [sys.executable, sender, address[0], str(address[1])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for request in requests:
            process.stdin.write(len(request).to_bytes(4, "little") + request)
        process.stdin.close()
        found = json.loads(process.stdout.read())
    return Counter({int(status): n for status, n in found.items()})
