"""The curator's service under load: durable reports one by one, and in batches of 1,000.

The server is the shipped command on loopback with its SQLite store; the load comes from another
process. The bars are absolute, since devices know no ratios; beside them stands how many requests
without any work the same server answered in the same run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from load import pack, request
from retrasyn.client.curator_client import Agreed, CuratorClient
from retrasyn.device.signatures import verify_ed25519
from retrasyn.messages import Report
from retrasyn.wire import decode_manifest, manifest_id
from retrasyn.wire.batches import MAX_FRAMES, join_frames
from retrasyn.wire.canonical import unseal
from retrasyn.wire.frames import body_bytes, encode_report
from retrasyn.wire.keys import CuratorKeys, follow
from workloads import Line

N_SINGLE, N_BATCHED, BATCH = 30_000, 300_000, 1000
PATIENCE = 60


@dataclass(frozen=True, slots=True)
class Served:
    """A running service."""

    url: str
    token: str

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def get(self, path: str) -> bytes:
        """Return what is at an address."""
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as answer:  # noqa: S310 - ours
            body: bytes = answer.read()
            return body


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    """Run the service in round 0 of an hour."""
    epoch = int(time.time()) - 10
    changes = ("--set", "period=3600", "--set", f"epoch={epoch}", "--set", "allowed_hosts=bench")
    command = (sys.executable, "-m", "retrasyn", "serve", "--quiet", "--port", "0", *changes)
    process = subprocess.Popen([*command, "--folder", str(folder)])
    try:
        address = folder / "address"
        end = time.monotonic() + PATIENCE
        while not address.exists():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("the service did not start")
            time.sleep(0.05)
        yield Served(address.read_text().strip(), (folder / "operator.token").read_text().strip())
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)


def enrolled(served: Served, n: int, manifest: bytes) -> list[Agreed]:
    """Enrol devices as they do it themselves."""
    with CuratorClient(served.url) as server:
        tokens, key = server.mint(n, operator_token=served.token)
        _, agreement = follow(CuratorKeys(key), server.keys(), verify_ed25519)
        return server.enrol(tokens, agreement=agreement, manifest=manifest)


def frames_of(served: Served, n: int) -> list[bytes]:
    """Enrol n devices and return a report of each."""
    text, _ = unseal(served.get("/v1/campaign"))
    manifest, name = decode_manifest(text), manifest_id(text)
    size = body_bytes(0, manifest.n_states, manifest.epsilon, manifest.oracle)
    kept = (1 << manifest.n_states) - 1
    frames = []
    for first in range(0, n, MAX_FRAMES):
        for agreed in enrolled(served, min(MAX_FRAMES, n - first), name):
            bits = int.from_bytes(os.urandom(size), "little") & kept
            report = Report(
                question=0,
                n_answers=manifest.n_states,
                t=0,
                epsilon=manifest.epsilon,
                manifest=name,
                device=agreed.device,
                bits=bits.to_bytes(size, "little"),
            )
            frames.append(encode_report(report, agreed.key, oracle=manifest.oracle))
    return frames


def load(served: Served, requests: list[bytes], n_connections: int) -> dict[str, Any]:
    """Send requests from another process and return its figures."""
    told = {"host": "127.0.0.1", "port": served.port, "n_connections": n_connections}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("load.py"))],
        input=json.dumps(told).encode() + b"\n" + pack(requests),
        capture_output=True,
        check=True,
    )
    figures: dict[str, Any] = json.loads(done.stdout)
    if figures["statuses"] != {"200": len(requests)}:
        raise RuntimeError(f"not all were answered with 200: {figures['statuses']}")
    return figures


def lines() -> Iterator[Line]:
    with (
        tempfile.TemporaryDirectory(dir=Path.cwd()) as folder,
        serving(Path(folder) / "service") as served,
    ):
        frames = frames_of(served, N_SINGLE + N_BATCHED)
        single = [request("/v1/reports", frame) for frame in frames[:N_SINGLE]]
        batches = [
            request("/v1/reports/batch", join_frames(frames[first : first + BATCH]))
            for first in range(N_SINGLE, len(frames), BATCH)
        ]
        idle = load(served, [request("/healthz", None)] * 10_000, 64)
        one, many = load(served, single, 64), load(served, batches, 4)
    per_second = many["per_second"] * BATCH
    nothing = idle["per_second"]
    yield Line(
        "durable reports one by one, thousands/s",
        one["per_second"] / 1000,
        5.0,
        f"{one['per_second']:,.0f}/s, p50 {one['p50'] * 1e3:.1f} ms; "
        f"{one['per_second'] / nothing:.2f} x /healthz ({nothing:,.0f}/s)",
        at_least=True,
    )
    yield Line(
        "their 99th percentile, ms", one["p99"] * 1e3, 100.0, "64 connections", at_least=False
    )
    yield Line(
        "durable reports in batches of 1,000, thousands/s",
        per_second / 1000,
        200.0,
        f"{per_second:,.0f}/s, p99 of a batch {many['p99'] * 1e3:.0f} ms; "
        f"{per_second / nothing:.0f} x /healthz",
        at_least=True,
    )


if __name__ == "__main__":
    for line in lines():
        print(f"{line.name}: {line.ratio:.3f} (bar {line.bar:g}); {line.detail}")
        if not line.holds:
            sys.exit(1)
