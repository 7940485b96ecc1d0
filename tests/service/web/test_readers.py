"""Readers that take their time: little memory each, a place each, and cut if they take nothing."""

import contextlib
import csv
import io
import json
import socket
import struct
import threading
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from retrasyn.service.web import front, release_routes
from support.recording import crowd
from support.showing import shown

pytestmark = pytest.mark.system

N_TIMES, N_POINTS = 150, 2000
ALL = f"/v1/points?from=0&to={N_TIMES - 1}&format="
LAST_CHUNK = b"\r\n0\r\n\r\n"


@pytest.fixture(scope="module")
def city():
    """Some 13 MB as CSV; fine cells, so that an event of the feed has some thousand numbers."""
    return crowd(1, range(N_TIMES), n=N_POINTS, side=32)


@pytest.fixture(scope="module")
def served(city):
    with shown(city, limits={"readers": 40, "feed_clients": 30}) as one:
        yield one


@pytest.fixture(autouse=True)
def looked_for_soon(monkeypatch):
    """Let silent feeds look for their readers often."""
    monkeypatch.setattr(release_routes, "PAUSE", 0.1)


@pytest.fixture
def opened():
    with contextlib.ExitStack() as stack:
        yield stack


def ask(one, path, headers=""):
    """Send a request, and read nothing."""
    connection = one.connect()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
    head = f"GET {one.prefix}{path} HTTP/1.1\r\nHost: {one.host}\r\n{headers}\r\n"
    connection.sendall(head.encode())
    return connection


def resident():
    """Return the memory of this process, in which the server is, in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / (1 << 20)


def read_all(connection):
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(1 << 20):
            parts.append(part)
            if part.endswith(LAST_CHUNK):
                break
    return b"".join(parts)


def hang_up(connection, *, roughly):
    """Close a connection, or break it."""
    if roughly:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (f"{ALL}csv", ""),
        (f"{ALL}geojson", ""),
        (f"{ALL}parquet", ""),
        ("/v1/feed", "Last-Event-ID: 0\r\n"),
    ],
    ids=["csv", "geojson", "parquet", "feed"],
)
def test_a_reader_that_reads_nothing_holds_a_mebibyte_or_two(served, opened, path, headers):
    def read_slowly(n):
        wanted = served.web.readers.n + n
        for _ in range(n):
            opened.enter_context(ask(served, path, headers))
        served.wait(lambda: served.web.readers.n == wanted)
        time.sleep(0.5)  # for more than is allowed

    served.ask("GET", "/v1/points?from=0&to=99&format=csv")  # what all readers share
    served.wait(lambda: served.web.readers.n == 0)  # it has left, and those of the test before
    read_slowly(5)  # what is loaded once
    before = resident()
    read_slowly(25)
    assert resident() - before < (50 if "parquet" in path else 25)
    assert served.web.readers.n == 30
    assert served.ask("GET", "/healthz").status == 200


def columns_of(form, body):
    """Read a file as anybody would: rows of traj_id, t, x, y."""
    if form == "parquet":
        table = pq.read_table(io.BytesIO(body))
        return zip(
            *(table.column(name).to_pylist() for name in ("traj_id", "t", "x", "y")), strict=True
        )
    if form == "csv":
        rows = csv.reader(io.StringIO(body.decode()))
        assert next(rows) == ["traj_id", "t", "x", "y"]
        return ((int(one), int(t), float(x), float(y)) for one, t, x, y in rows)
    found = json.loads(body)["features"]
    return (
        (one["properties"]["traj_id"], one["properties"]["t"], *one["geometry"]["coordinates"])
        for one in found
    )


@pytest.mark.parametrize("form", ["parquet", "geojson", "csv"])
def test_whoever_reads_on_gets_every_point_once(served, city, form):
    answer = served.ask("GET", f"/v1/points?from=10&to=29&format={form}")
    assert len(answer.body) > 500_000
    wanted = []
    for t in range(10, 30):
        points = city.points_at(t)
        ids, x, y = points.ids.tolist(), points.x.tolist(), points.y.tolist()
        wanted += zip(ids, [t] * N_POINTS, x, y, strict=True)
    assert list(columns_of(form, answer.body)) == wanted
    served.wait(lambda: served.web.readers.n == 0)


def test_whoever_takes_nothing_is_cut_and_gets_no_end_that_looks_whole(city):
    with shown(city, limits={"reader_seconds": 0.5}) as one:
        began = time.monotonic()
        readers = [ask(one, f"{ALL}{form}") for form in ("csv", "geojson", "parquet", "csv")]
        one.wait(lambda: one.web.readers.n == 4)
        one.wait(lambda: one.web.readers.n == 0)
        assert time.monotonic() - began < 5
        for connection in readers:
            with connection:
                assert not read_all(connection).endswith(LAST_CHUNK)


def test_whoever_reads_slowly_but_steadily_is_not_cut(city):
    with shown(city, limits={"reader_seconds": 1}) as one, ask(one, f"{ALL}csv") as connection:
        began, n = time.monotonic(), 0
        while time.monotonic() - began < 3:
            n += len(connection.recv(1 << 16))
            time.sleep(0.02)
        assert one.web.readers.n == 1
        assert 1 << 20 < n < 12 << 20


def test_one_reader_more_than_there_is_room_for_is_told_to_wait_and_holds_no_place(city):
    with shown(city, limits={"readers": 2}) as one:
        with ask(one, f"{ALL}csv"), ask(one, f"{ALL}csv"):
            one.wait(lambda: one.web.readers.n == 2)
            for path in (f"{ALL}csv", f"{ALL}parquet", "/v1/feed"):
                refused = one.ask("GET", path)
                assert refused.status == 503
                assert int(refused.headers["retry-after"]) >= 1
                assert one.web.readers.n == 2
                one.wait(lambda: one.web.feeds.n == 0)
            assert one.ask("GET", "/v1/points?format=csv&from=1&to=1").status == 503
            assert one.ask("GET", "/v1/status").status == 200
        one.wait(lambda: one.web.readers.n == 0)


def test_a_limit_holds_however_many_ask_at_the_same_instant(city):
    with shown(city, limits={"feed_clients": 3}) as one:
        most, counted = [0], threading.Event()

        def count():
            while not counted.is_set():
                most[0] = max(most[0], one.web.feeds.n)

        counter = threading.Thread(target=count)
        counter.start()
        with contextlib.ExitStack() as opened:
            connections = [opened.enter_context(ask(one, "/v1/feed")) for _ in range(40)]
            statuses = Counter(connection.recv(12)[9:12] for connection in connections)
            counted.set()
            counter.join()
            assert statuses == {b"200": 3, b"503": 37}
            assert one.web.feeds.n == 3
            assert most[0] <= 3
        one.wait(lambda: one.web.feeds.n == one.web.readers.n == 0)


PHASES = {
    "before the headers end": (b"GET {path} HTTP/1.1\r\nHost: {host}\r\n", 0),
    "after the request": (b"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n", 0),
    "after the first byte": (b"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n", 1),
    "after the headers": (b"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n", 700),
    "in the middle": (b"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n", 300_000),
}


@pytest.mark.parametrize("path", ["/v1/feed", f"{ALL}csv", f"{ALL}parquet"])
@pytest.mark.parametrize("phase", PHASES)
def test_a_place_comes_back_whenever_the_reader_leaves(served, path, phase):
    request, wanted = PHASES[phase]
    for name, value in ((b"{path}", served.prefix + path), (b"{host}", served.host)):
        request = request.replace(name, value.encode())
    wanted = min(wanted, 100) if "feed" in path else wanted
    for number in range(10):
        connection = served.connect()
        connection.sendall(request)
        while wanted > 0 and (part := connection.recv(min(wanted, 1 << 16))):
            wanted -= len(part)
        hang_up(connection, roughly=number % 2 == 0)
    served.wait(lambda: served.web.feeds.n == served.web.readers.n == 0)
    assert not list(Path("/tmp").glob("retrasyn-*/answer"))  # noqa: S108 - looked at only


def test_a_server_that_stops_cuts_readers_soon_and_no_part_looks_whole(city, monkeypatch):
    monkeypatch.setattr(front, "PATIENCE", 0.3)
    with contextlib.ExitStack() as opened:
        with shown(city) as one:
            readers = [opened.enter_context(ask(one, f"{ALL}csv")) for _ in range(3)]
            listening = opened.enter_context(ask(one, "/v1/feed"))
            one.wait(lambda: one.web.readers.n == 4)
            began = time.monotonic()
        assert time.monotonic() - began < 5
        assert one.web.readers.n == one.web.feeds.n == 0
        assert not any(read_all(connection).endswith(LAST_CHUNK) for connection in readers)
        assert read_all(listening).endswith(LAST_CHUNK)  # a feed has an end at any time


def test_work_is_limited_by_points_and_not_only_by_timestamps(city):
    with shown(city, limits={"max_points": 3 * N_POINTS}) as one:
        assert one.ask("GET", "/v1/points?from=0&to=2&format=csv").status == 200
        refused = one.ask("GET", "/v1/points?from=0&to=3&format=csv")
        assert refused.status == 422
        assert refused.json()["detail"] == (
            "The range has 8,000 points, an answer at most 6,000; ask in parts."
        )
        latest = list(range(N_TIMES - 3, N_TIMES))
        assert one.ask("GET", "/v1/count?box=0,0,3,3&from=0").json()["t"] == latest
        assert one.ask("GET", "/v1/cells/0?from=0").json()["t"] == latest
        assert one.ask("GET", "/v1/cells/0?from=0&to=1").json()["t"] == [0, 1]
    with shown(city, limits={"max_points": 1}) as one:
        assert one.ask("GET", "/v1/cells/0").json()["t"] == [N_TIMES - 1]
