"""What is released, over HTTP: lists, points in three formats, receipts and the live feed."""

import contextlib
import csv
import io
import json
import socket

import numpy as np
import pyarrow.parquet as pq
import pytest

from retrasyn.receipts.files import receipt_place
from retrasyn.service.web import release_routes
from support.living import living

N_ROUNDS = 4


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A service that has released four timestamps of thirty devices."""
    with living(tmp_path_factory.mktemp("released") / "folder", feed_clients=2) as live:
        live.devices = live.enrol(30)
        for t in range(N_ROUNDS):
            live.open_round(t)
            for device in live.devices:
                assert live.send(live.heartbeat(device, t)) == "accepted"
            for device in live.devices[7 * t : 7 * (t + 1)]:
                assert live.send(live.report(device, t)) == "accepted"
            live.release(t)
        yield live


def parquet_points(live, first, last):
    """Return the points of the files on the disk, sorted."""
    rows = []
    for t in range(first, last + 1):
        table = pq.read_table(live.service.runtime.releases.path(t))
        columns = [table.column(name).to_pylist() for name in ("traj_id", "t", "x", "y")]
        rows += zip(*columns, strict=True)
    return sorted(rows, key=lambda row: (row[1], row[0]))


def points(live, form, first, last):
    """Return the points that the service gives in a format."""
    answer = live.ask("GET", f"/v1/points?from={first}&to={last}&format={form}")
    assert answer.status == 200
    if form == "parquet":
        table = pq.read_table(io.BytesIO(answer.body))
        columns = [table.column(name).to_pylist() for name in ("traj_id", "t", "x", "y")]
        return list(zip(*columns, strict=True))
    if form == "csv":
        rows = csv.DictReader(io.StringIO(answer.body.decode()))
        return [
            (int(row["traj_id"]), int(row["t"]), float(row["x"]), float(row["y"])) for row in rows
        ]
    features = answer.json()["features"]
    return [
        (one["properties"]["traj_id"], one["properties"]["t"], *one["geometry"]["coordinates"])
        for one in features
    ]


@pytest.mark.parametrize("form", ["parquet", "geojson", "csv"])
@pytest.mark.parametrize(("first", "last"), [(0, 0), (1, 3), (0, 3)])
def test_points_in_every_format_are_those_of_the_parquet_releases(released, form, first, last):
    found = points(released, form, first, last)
    assert found == parquet_points(released, first, last)
    assert {t for _, t, _, _ in found} == set(range(first, last + 1))


def test_points_are_those_of_the_latest_release_unless_asked_otherwise(released):
    answer = released.ask("GET", "/v1/points?format=csv")
    assert {row["t"] for row in csv.DictReader(io.StringIO(answer.body.decode()))} == {"3"}
    assert answer.headers["content-disposition"] == 'attachment; filename="points-3-3.csv"'


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("from=9", 404),
        ("from=3&to=2", 404),
        ("format=xlsx", 422),
        ("from=-1", 422),
        ("from=x", 422),
        ("to=99999999999", 422),
    ],
)
def test_a_range_that_is_none_is_refused(released, query, status):
    assert released.ask("GET", f"/v1/points?{query}").status == status


def test_the_list_of_releases_has_the_latest_and_a_release_has_its_cells(released):
    listed = released.ask("GET", "/v1/releases").json()["releases"]
    assert [one["t"] for one in listed] == [0, 1, 2, 3]
    assert [one["n_reports"] for one in listed] == [7, 7, 7, 7]
    within = released.ask("GET", "/v1/releases?from=1&limit=2").json()["releases"]
    assert [one["t"] for one in within] == [2, 3]
    one = released.ask("GET", "/v1/releases/2").json()
    assert sum(one.pop("cells")) == one["n_points"] == 30
    assert one == listed[2]
    assert released.ask("GET", "/v1/releases/4").status == 404


def test_receipts_are_those_on_the_disk(released):
    latest = released.ask("GET", "/v1/receipts/latest")
    assert latest.body == released.ask("GET", "/v1/receipts/3").body
    assert latest.body == receipt_place(released.service.runtime.releases.path(3)).read_bytes()
    assert latest.json()["n_reports"] == 28
    assert released.ask("GET", "/v1/receipts/4").status == 404


def test_rounds_are_chained_and_signed_as_they_were_opened(released):
    for t in range(N_ROUNDS):
        answer = released.ask("GET", f"/v1/rounds/{t}")
        assert answer.body == released.service.runtime.calendar.row(t).envelope
    assert released.ask("GET", "/v1/campaign").body == released.service.runtime.campaign.envelope
    assert released.ask("GET", "/v1/rounds/77").status == 404


def test_devices_are_told_whether_a_round_means_them(released):
    ids = b"".join(device.device for device in released.devices[:3]) + bytes(16)
    assert released.ask("POST", "/v1/rounds/3/asked", ids).body == b"\x01\x01\x01\x00"
    assert released.ask("POST", "/v1/rounds/3/asked", ids[:-1]).status == 422
    assert released.ask("POST", "/v1/rounds/3/asked", b"").status == 422
    assert released.ask("POST", "/v1/rounds/99/asked", ids).status == 404
    assert released.ask("POST", "/v1/rounds/3/asked", bytes(160_016)).status == 413


@contextlib.contextmanager
def feed(live, after=None):
    """Open the feed; give a function that reads one event."""
    seen = "" if after is None else f"Last-Event-ID: {after}\r\n"
    with live.connect() as connection:
        connection.sendall(f"GET /v1/feed HTTP/1.1\r\nHost: {live.host}\r\n{seen}\r\n".encode())
        reader = connection.makefile("rb")
        head = reader.readline()
        while reader.readline().strip():
            pass
        yield head, lambda: read_event(reader)
        reader.close()
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def read_event(reader):
    """Return the fields of the next event, comments and lengths of chunks left out."""
    fields = {}
    while True:
        name, colon, value = reader.readline().decode().strip().partition(": ")
        if colon and name:
            fields[name] = value
        elif fields:
            return fields


def test_the_feed_goes_on_after_what_was_seen_last(released):
    with feed(released, after=1) as (head, next_event):
        assert head.startswith(b"HTTP/1.1 200 ")
        events = [next_event(), next_event()]
    assert [event["id"] for event in events] == ["2", "3"]
    assert {event["event"] for event in events} == {"release"}
    summary = json.loads(events[1]["data"])
    assert summary == released.ask("GET", "/v1/releases/3").json()
    assert np.sum(summary["cells"]) == 30


def test_the_feed_has_room_for_so_many_and_room_again_when_they_leave(released, monkeypatch):
    monkeypatch.setattr(release_routes, "PAUSE", 0.1)  # after which a silent reader is looked for
    with feed(released, after=2), feed(released, after=2):
        released.wait(lambda: released.web.feeds.n == 2)
        refused = released.ask("GET", "/v1/feed")
        assert refused.status == 503
        assert int(refused.headers["retry-after"]) >= 1
    released.wait(lambda: released.web.feeds.n == 0)


@pytest.mark.parametrize("seen", ["x", "-1", "1" * 11, "1;2"])
def test_a_timestamp_that_is_none_is_refused_by_the_feed(released, seen):
    assert released.ask("GET", "/v1/feed", Last_Event_ID=seen).status == 422


def test_the_feed_tells_of_a_release_when_it_comes(tmp_path):
    with living(tmp_path / "folder") as live:
        live.devices = live.enrol(3)
        live.open_round(0)
        with feed(live) as (_, next_event):
            live.wait(lambda: live.web.feeds.n == 1)
            live.release(0)
            assert next_event()["id"] == "0"


def test_stopping_ends_the_feeds_that_are_open(tmp_path):
    with contextlib.ExitStack() as opened:
        with living(tmp_path / "folder") as live:
            opened.enter_context(feed(live))
            live.wait(lambda: live.web.feeds.n == 1)
        assert live.web.feeds.n == 0
