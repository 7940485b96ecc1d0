"""A gateway between phones and a curator: it hears what they send, and keeps it to itself."""

import http.client
import json
import logging
import socket
import threading
import time

import pytest

from retrasyn.client.gateway import listener as listening
from retrasyn.client.gateway.listener import Listener
from retrasyn.client.gateway.mqtt import Subscriber
from retrasyn.client.gateway.phones import Phones
from retrasyn.errors import ConsentError, LedgerError, ServerError, SettingError
from support.foreign_hosts import ALL, answer_to, is_refused, wire
from support.phone_messages import OWNTRACKS, TRACCAR
from support.plain_curator import PlainCurator, serving, small_campaign

pytestmark = pytest.mark.system


@pytest.fixture
def heard():
    return []


@pytest.fixture
def listener(heard):
    def hear(one):
        heard.append(one)
        return one.phone != "stranger"

    listener = Listener("127.0.0.1", 0, hear)
    listener.start()
    yield listener
    listener.stop()


def ask(listener, verb, path="/", body=None, **headers):
    """Send one request; return the code and the body of the answer."""
    connection = http.client.HTTPConnection(*listener.server_address[:2], timeout=10)
    try:
        connection.request(verb, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def deaf():
    """A listener that must not hear anything."""
    heard = []
    listener = Listener("127.0.0.1", 0, lambda one: heard.append(one) or True)
    listener.start()
    yield listener, heard
    listener.stop()


@pytest.mark.parametrize("name", ALL)
def test_a_foreign_missing_or_doubled_host_is_not_heard(deaf, name):
    listener, heard = deaf
    host, port = listener.server_address[:2]
    sent = wire(ALL[name], f"{host}:{port}", "/?id=7&lat=1&lon=2")
    assert is_refused(answer_to((host, port), sent))
    assert heard == []


def test_a_gateway_behind_a_proxy_answers_to_the_name_it_is_given():
    listener = Listener("127.0.0.1", 0, lambda _: True, ["phones.example.org"])
    listener.start()
    try:
        for name, code in (("phones.example.org", 200), ("other.example.org", 421)):
            assert ask(listener, "GET", "/?id=7&lat=1&lon=2", Host=name)[0] == code
    finally:
        listener.stop()


def test_an_owntracks_post_is_answered_with_an_empty_list(listener, heard):
    body = json.dumps(OWNTRACKS)
    code, answer = ask(listener, "POST", "/pub", body, Content_Type="application/json")
    assert (code, answer) == (200, b"[]")
    assert [one.fix for one in heard] == [(2.352222, 48.856613)]


def test_owntracks_is_named_by_its_headers_and_parameters(listener, heard):
    body = json.dumps({k: v for k, v in OWNTRACKS.items() if k != "topic"})
    ask(listener, "POST", "/pub", body, X_Limit_U="ben", X_Limit_D="tablet")
    ask(listener, "POST", "/pub?u=carl&d=watch", body)
    assert [one.phone for one in heard] == ["ben/tablet", "carl/watch"]


def test_what_owntracks_says_besides_is_answered_and_not_used(listener, heard):
    assert ask(listener, "POST", "/pub", json.dumps({"_type": "lwt", "tst": 1})) == (200, b"[]")
    assert ask(listener, "POST", "/pub", "") == (200, b"[]")
    assert heard == []


@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_osmand_requests_are_heard_from_the_address(listener, heard, verb):
    now = int(time.time())
    code, _ = ask(listener, verb, f"/?id=7&lat=48.5&lon=2.5&timestamp={now}&speed=0&batt=80")
    assert code == 200
    assert [(one.phone, one.fix, one.taken) for one in heard] == [("7", (2.5, 48.5), now * 1000)]


def test_osmand_forms_and_traccar_json_are_heard_from_the_body(listener, heard):
    form = "id=7&lat=48.5&lon=2.5&timestamp=1700000000"
    kind = "application/x-www-form-urlencoded"
    assert ask(listener, "POST", "/", form, Content_Type=kind)[0] == 200
    assert ask(listener, "POST", "/", json.dumps(TRACCAR))[0] == 200
    assert [one.phone for one in heard] == ["7", "48241179"]


@pytest.mark.parametrize(
    ("verb", "path", "body", "code"),
    [
        ("POST", "/", "{", 400),
        ("POST", "/", "nothing", 400),
        ("POST", "/", b"\xff\xff", 400),
        ("GET", "/?lat=1", None, 400),
        ("GET", "/?id=stranger&lat=1&lon=2", None, 403),
        ("POST", "/", "x" * (listening.MAX_BODY + 1), 413),
        ("DELETE", "/", None, 501),
    ],
)
def test_what_is_no_message_is_refused_and_the_gateway_lives_on(
    listener, heard, verb, path, body, code
):
    try:
        assert ask(listener, verb, path, body)[0] == code
    except (BrokenPipeError, ConnectionResetError):
        assert code == 413  # it did not read on
    assert [one for one in heard if one.phone != "stranger"] == []
    assert ask(listener, "GET", "/?id=7&lat=1&lon=2")[0] == 200


def test_a_body_without_a_length_is_refused(listener):
    answer = ask(listener, "POST", "/", iter([b"{}"]), Transfer_Encoding="chunked")
    assert answer[0] == 411


def test_slow_phones_are_cut_off_and_do_not_keep_others_out(listener, heard, monkeypatch):
    monkeypatch.setattr(listening._Handler, "timeout", 0.3)
    slow = [socket.create_connection(listener.server_address[:2], 5) for _ in range(60)]
    try:
        for one in slow:
            host = ":".join(map(str, listener.server_address[:2]))
            head = f"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\n{{"
            one.sendall(head.encode())
        assert slow[0].recv(100) == b""  # cut off, without an answer
        deadline = time.monotonic() + 10
        while not heard and time.monotonic() < deadline:
            try:
                ask(listener, "GET", "/?id=7&lat=1&lon=2")
            except (http.client.HTTPException, OSError):
                time.sleep(0.05)
        assert len(heard) == 1
    finally:
        for one in slow:
            one.close()


def test_a_gateway_says_nothing_about_places(listener, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    ask(listener, "GET", "/?id=7&lat=48.856613&lon=2.352222")
    ask(listener, "GET", "/?id=7&lat=48.856613&lon=x")
    said = caplog.text + "".join(capfd.readouterr())
    assert "48.8566" not in said
    assert "id=7" not in said


def test_a_port_that_is_taken_is_one_clear_line(listener):
    port = listener.server_address[1]
    with pytest.raises(SettingError, match="or --port"):
        Listener("127.0.0.1", port, lambda _one: True)


@pytest.mark.parametrize("url", ["http://a", "mqtt://", "mqtt://u:secret@h", "mqtt://h:0", "x"])
def test_an_address_that_is_no_brokers_is_refused(url):
    with pytest.raises(SettingError, match="mqtt://") as refusal:
        Subscriber(url, lambda _one: True).start()
    assert "secret" not in str(refusal.value)


def test_a_broker_that_does_not_answer_is_one_clear_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        url = f"mqtt://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ServerError, match="check --mqtt"):
            Subscriber(url, lambda _one: True).start()


@pytest.fixture
def served():
    now = int(time.time())
    with serving(PlainCurator(small_campaign(period=1, window=1, epoch=now))) as curator:
        yield curator


def test_each_phone_has_an_identity_and_a_ledger_of_its_own(served, tmp_path):
    phones = Phones(tmp_path / "gateway")
    phones.open()
    phones.enrol(f"anna/phone={served.link()}", lambda _manifest: True)
    phones.enrol(served.link(), lambda _manifest: True)
    again = Phones(tmp_path / "gateway")
    again.open()
    assert [one.name for one in again.phones] == ["anna/phone", ""]
    devices = {one.owned.identity.device for one in again.phones}
    assert devices == set(served.devices)
    with pytest.raises(LedgerError, match="has an identity already"):
        again.enrol(f"anna/phone={served.link()}", lambda _manifest: True)


def test_a_gateway_follows_the_rounds_and_the_first_unknown_phone_takes_a_bare_link(
    served, tmp_path
):
    from retrasyn.client.gateway.messages import PhonePosition

    told, done = [], threading.Event()

    def tell(number, one):
        told.append((number, one))
        if one.sent:
            done.set()

    phones = Phones(tmp_path / "gateway", tell=tell)
    phones.open()
    phones.enrol(served.link(), lambda _manifest: True)
    phones.start(None)
    try:
        assert phones.hear(PhonePosition("anna", (1.0, 1.0), int(time.time() * 1000)))
        assert not phones.hear(PhonePosition("ben", (1.0, 1.0), int(time.time() * 1000)))
        assert done.wait(15)
    finally:
        phones.stop()
    assert len(served.reports()) >= 1
    assert {number for number, _ in told} == {1}
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"anna" in kept


def test_a_changed_campaign_is_refused_before_anything_is_heard(served, tmp_path):
    phones = Phones(tmp_path / "gateway")
    phones.open()
    phones.enrol(f"anna={served.link()}", lambda _manifest: True)
    served.change(epsilon=2_000_000)
    with pytest.raises(ConsentError, match="agree with"):
        phones.start(None)
    phones.stop()
    agreed = Phones(tmp_path / "gateway")
    agreed.open()
    agreed.start(lambda _manifest: True)
    agreed.stop()
    assert not served.reports()
