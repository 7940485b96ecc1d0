"""B5: 200 slow readers of 100,000 points at 1,000 timestamps, and the clock goes on."""

import contextlib
import json
import os
import re
import socket
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from retrasyn import write
from retrasyn.data.trajectories import Trajectories
from support.live_service import service
from support.mapped import fleet_of

pytestmark = [pytest.mark.long, pytest.mark.system]

N_READERS, N_POINTS, N_TIMES = 200, 100_000, 1000
SECONDS = 60
MOST_MEMORY = 1000  # MB
ASKED = f"/v1/points?from=0&to={N_TIMES - 1}&format="
DEVICES = 50


def fill(folder):
    """Put releases of so many points at so many timestamps beside those of the campaign."""
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0, 10, (2, N_POINTS))
    points = Trajectories.from_columns(
        traj_id=np.arange(N_POINTS), t=np.zeros(N_POINTS, int), x=x, y=y
    )
    first = folder / f"{0:010d}.parquet"
    write(points, first)
    summary = {"time": "", "n_points": N_POINTS, "n_born": 0, "n_ended": 0, "n_reports": 0}
    for t in range(N_TIMES):
        told = json.dumps({"t": t, **summary, "epsilon": 1.0, "cells": [0] * 36})
        (folder / f"{t:010d}.summary.json").write_text(told)
        if t:
            os.link(first, folder / f"{t:010d}.parquet")  # a file says its timestamp by its name


def peak(process):
    """Return the most memory that a process ever had, in MB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kilobytes) * 1024 / 1e6


def figures(live):
    """Return what the service counts, by name."""
    token = live.operator_token.read_text().strip()
    asked = urllib.request.Request(  # noqa: S310 - loopback
        f"{live.url}/v1/operator/status", headers={"authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310 - loopback
        found = json.load(answer)
    return found["counters"] | {"newest": found["newest_release"], "reason": found["reason"]}


def read_slowly(live, form, n):
    """Ask so often for everything, and read nothing yet."""
    host, _, port = live.url.removeprefix("http://").rpartition(":")
    for _ in range(n):
        connection = socket.create_connection((host, int(port)), timeout=60)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        connection.sendall(f"GET {ASKED}{form} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        yield connection


def test_two_hundred_slow_readers_cost_no_gigabyte_and_no_round(
    tmp_path, record_testsuite_property
):
    folder, now = tmp_path / "service", int(time.time())
    settings = {"period": 1, "window": 2, "epoch": now - 2 * N_TIMES, "seed": 5}
    with service(folder, **settings) as live:
        fill(live.releases)  # which makes the campaign's own begin later
    with (
        service(folder, max_points=N_POINTS * N_TIMES, **settings) as live,
        fleet_of(live, tmp_path / "fleet", devices=DEVICES),
        contextlib.ExitStack() as opened,
    ):
        time.sleep(10)  # rounds with reports
        before, alone = figures(live), peak(live.process)
        forms = ("csv", "geojson", "parquet", "csv")
        readers = [
            opened.enter_context(connection)
            for form in forms
            for connection in read_slowly(live, form, N_READERS // len(forms))
        ]
        until, n_bytes = time.monotonic() + SECONDS, 0
        while time.monotonic() < until:
            for connection in readers[::2]:  # the others take nothing at all
                n_bytes += len(connection.recv(1 << 13))
            time.sleep(1)
        after, most = figures(live), peak(live.process)
    figures_of_run = {
        "MB before": alone,
        "MB at most": most,
        "MB read": n_bytes / 1e6,
        "releases": after["newest"] - before["newest"],
        "rounds missed": after["rounds_missed"] - before["rounds_missed"],
    }
    for name, figure in figures_of_run.items():
        record_testsuite_property(name, figure)
    assert most < MOST_MEMORY
    assert after["rounds_missed"] == before["rounds_missed"]
    assert after["failures"] == before["failures"]
    assert after["reason"] == ""
    assert after["newest"] - before["newest"] >= SECONDS - 3
    assert after["reports_folded"] > before["reports_folded"]
    assert n_bytes > N_READERS // 2 * 50_000, "who reads is served"
