"""The server itself: TLS by configuration, ports, open connections, and a stop without loss."""

import asyncio
import contextlib
import shutil
import socket
import sqlite3
import ssl
import threading
import time
import urllib.request

import pytest

from retrasyn.errors import SettingError
from retrasyn.service.settings import LimitSettings, ServerSettings
from retrasyn.service.web.server import WebServer, check_tls, listen
from support.certificates import self_signed
from support.living import living

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    """Return the files of a certificate for 127.0.0.1 that signs itself, and of its key."""
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def secured(certified, tmp_path_factory):
    certificate, key = certified
    folder = tmp_path_factory.mktemp("secured") / "folder"
    with living(folder, tls_certificate=certificate, tls_key=key, header_seconds=0.5) as live:
        yield live


def test_with_a_certificate_the_server_speaks_tls(secured, certified):
    assert secured.server.url.startswith("https://127.0.0.1:")
    trusting = ssl.create_default_context(cafile=certified[0])
    address = f"{secured.server.url}/healthz"
    with urllib.request.urlopen(address, context=trusting) as answer:  # noqa: S310 - loopback
        assert answer.status == 200
    with (
        secured.connect() as plain,
        trusting.wrap_socket(plain, server_hostname="127.0.0.1") as tls,
    ):
        assert tls.version() == "TLSv1.3"


def test_with_a_certificate_nothing_is_said_in_plain_text(secured):
    with secured.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"HTTP" not in connection.recv(100)


@pytest.mark.long
def test_handshakes_that_are_never_finished_are_cut_in_ten_seconds(secured):
    began = time.monotonic()
    connections = [secured.connect() for _ in range(50)]
    for one in connections:
        one.sendall(b"\x16\x03\x01")
    for one in connections:
        assert one.recv(10) == b""
        one.close()
    assert time.monotonic() - began < 12


@pytest.mark.parametrize(
    ("certificate", "key", "named"),
    [
        ("certificate.pem", None, "belong together"),
        ("missing.pem", "key.pem", "missing.pem"),
        ("key.pem", "certificate.pem", "cannot be used"),
        ("certificate.pem", "certificate.pem", "cannot be used"),
    ],
)
def test_files_that_are_no_certificate_and_key_are_refused(certified, certificate, key, named):
    folder = certified[0].parent
    with pytest.raises(SettingError, match=named):
        check_tls(folder / certificate, None if key is None else folder / key)


def test_a_port_in_use_is_refused_and_port_0_finds_a_free_one():
    first = listen("127.0.0.1", 0)
    with first, pytest.raises(SettingError, match=r"cannot be listened on .*--port"):
        listen("127.0.0.1", first.getsockname()[1])


@pytest.mark.parametrize("host", ["no.such.host.invalid", "999.1.1.1", ""])
def test_a_host_that_is_none_is_refused(host):
    with pytest.raises(SettingError, match="is no address"):
        listen(host, 0)


def test_a_server_that_never_started_lets_go_of_its_port():
    server = WebServer(ServerSettings(port=0), LimitSettings())
    asyncio.run(server.stop())
    listen("127.0.0.1", server.port).close()


def test_ipv6_is_served_and_named_with_brackets(tmp_path):
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        listen("::1", 0).close()
    except SettingError:
        pytest.skip("this machine has no IPv6")
    with living(tmp_path / "folder", host="::1") as live:
        assert live.server.url == f"http://[::1]:{live.server.port}"
        with urllib.request.urlopen(f"{live.server.url}/healthz") as answer:  # noqa: S310 - loopback
            assert answer.status == 200


def test_a_connection_is_kept_open_for_many_requests(live):
    with live.connect() as connection:
        for _ in range(5):
            connection.sendall(f"GET /healthz HTTP/1.1\r\nHost: {live.host}\r\n\r\n".encode())
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


def test_a_request_under_way_is_answered_while_the_service_stops(tmp_path, monkeypatch):
    answers = []
    begun = threading.Event()
    with living(tmp_path / "folder") as live:
        device = live.enrol(1)[0]
        live.open_round(0)
        store = type(live.service.runtime.store)
        append = store.append

        def append_slowly(self, blobs):
            begun.set()
            time.sleep(0.5)
            append(self, blobs)

        monkeypatch.setattr(store, "append", append_slowly)
        frame = live.report(device, 0)
        sender = threading.Thread(target=lambda: answers.append(live.send(frame)))
        sender.start()
        assert begun.wait(10)
    sender.join()
    assert answers == ["accepted"]


def test_reports_survive_a_restart(tmp_path):
    with living(tmp_path / "folder") as live:
        device = live.enrol(1)[0]
        live.open_round(0)
        frame = live.report(device, 0)
        assert live.send(frame) == "accepted"
        now = live.clock.now()
    with living(tmp_path / "folder", now=now) as again:
        again.open_round(0)
        assert again.send(frame) == "duplicate"
        again.release(0)
        assert again.ask("GET", "/v1/releases/0").json()["n_reports"] == 1


def copy_store(source, goal):
    """Copy a database in use, as `.backup` of the program sqlite3 does."""
    with (
        contextlib.closing(sqlite3.connect(source)) as used,
        contextlib.closing(sqlite3.connect(goal)) as made,
    ):
        used.backup(made)


def test_a_copy_made_while_the_service_runs_can_be_restored(tmp_path):
    running, copy = tmp_path / "service", tmp_path / "copy"
    copy.mkdir()
    with living(running) as live:
        first, second = live.enrol(2)
        live.open_round(0)
        assert live.send(live.report(first, 0)) == "accepted"
        live.release(0)
        live.open_round(1)
        assert live.send(live.report(second, 1)) == "accepted"
        copy_store(running / "service.sqlite", copy / "service.sqlite")
        for name in ("curator.key", "campaign.json", "operator.token"):
            shutil.copy2(running / name, copy / name)
        for name in ("releases", "snapshots"):
            shutil.copytree(running / name, copy / name)
        release, now = live.service.runtime.releases.path(0).read_bytes(), live.clock.now()
    with living(copy, now=now) as restored:
        assert restored.service.runtime.devices.n == 2
        assert restored.service.runtime.releases.path(0).read_bytes() == release
        assert restored.ask("GET", "/v1/rounds/1").status == 200
        restored.release(1)
        counted = restored.ask("GET", "/v1/releases").json()["releases"]
        assert [one["n_reports"] for one in counted] == [1, 1]
