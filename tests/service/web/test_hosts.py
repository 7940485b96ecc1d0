"""B6: a listener answers to its own names only, whatever stands in the request."""

import pytest

from retrasyn.errors import SettingError
from retrasyn.host_names import HostNames
from support.foreign_hosts import ALL, answer_to, is_refused, wire
from support.living import living
from support.recording import crowd
from support.showing import shown

PATHS = (
    "/",
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/static/icon.svg",
    "/v1/status",
    "/v1/reports",
    "/v1/feed",
    "/v1/campaign",
    "/v1/points",
    "/nothing/here",
)


@pytest.fixture(scope="module")
def watched():
    """A recording, as `watch` and `demo --live` show it."""
    with shown(crowd(1, [0, 1])) as one:
        yield one


def refused(listener, form, path):
    return is_refused(
        answer_to(listener.address, wire(form, listener.host, listener.prefix + path))
    )


@pytest.mark.parametrize("name", ALL)
def test_serve_answers_no_foreign_missing_or_doubled_host(live, name):
    assert refused(live, ALL[name], "/v1/status")


@pytest.mark.parametrize("name", ALL)
def test_watch_answers_no_foreign_missing_or_doubled_host(watched, name):
    assert refused(watched, ALL[name], "/v1/status")


@pytest.mark.parametrize("path", PATHS)
def test_no_address_is_an_exception(live, path):
    for name in ("no host", "a foreign name, our port", "a foreign target", "a post"):
        answer = answer_to(live.address, wire(ALL[name], live.host, path))
        assert answer.startswith(b"HTTP/1."), name
        assert answer[9:12] == b"421", name
        assert answer.endswith(b"\r\n\r\nMisdirected Request\n")


def test_there_are_fifty_forms_and_more():
    assert len(ALL) >= 50


@pytest.mark.parametrize(
    "host",
    ["localhost:{port}", "LocalHost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "localhost:9"],
)
def test_a_listener_on_loopback_answers_to_this_machine(live, host):
    asked = live.ask("GET", "/healthz", Host=host.format(port=live.server.port))
    assert asked.status == 200
    own = host.format(port=live.server.port)
    whole = f"GET http://{own}/healthz HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n"
    assert answer_to(live.address, whole.encode()).startswith(b"HTTP/1.1 200 ")


def test_the_public_address_and_names_that_are_allowed_are_answered(tmp_path):
    with living(
        tmp_path / "folder",
        public_url="https://curator.example.org/here",
        allowed_hosts="inner.example:81,Other.example",
    ) as live:
        port = live.server.port
        for host in (
            "curator.example.org",
            f"curator.example.org:{port}",
            "inner.example:81",
            "inner.example",
            "other.EXAMPLE:9000",
            "other.example",
            f"localhost:{port}",
        ):
            assert live.ask("GET", "/healthz", Host=host).status == 200, host
        for host in ("x.inner.example:81", "example.org", "here", "curator.example.org:x"):
            assert live.ask("GET", "/healthz", Host=host).status == 421, host


def test_the_way_out_is_logged_once_and_without_what_was_asked(tmp_path, caplog):
    with living(tmp_path / "folder") as live:
        for _ in range(3):
            assert live.ask("GET", "/healthz", Host="evil.example").status == 421
        assert live.web.counts.requests["other", 421] == 3
    assert caplog.text.count("server.allowed_hosts") == 1
    assert "evil" not in caplog.text


def test_who_listens_everywhere_answers_to_addresses_of_this_machine_only():
    names = HostNames("0.0.0.0", "0.0.0.0")  # noqa: S104 - nothing listens
    own = ("127.0.0.1:8700", "127.0.0.2:8700", "localhost:8700", "[::1]:8700")
    assert all(names.allow([host]) for host in own)
    others = ("0.0.0.0:8700", "192.0.2.1:8700", "127.0.0.1:x", "127.1:8700", "224.0.0.1:8700")
    assert not any(names.allow([host]) for host in (*others, "[::]:8700", "here:8700", "8700"))


def test_who_listens_on_one_address_answers_to_it_and_to_the_name_it_was_given():
    names = HostNames("Here", "2001:db8::1")
    assert names.allow(["here:8700"])
    assert names.allow(["[2001:db8::1]"])
    assert not any(names.allow([host]) for host in ("localhost", "127.0.0.1", "[::1]", "there"))


@pytest.mark.parametrize("name", ["", "user@here", "http://", "here:port", "here:99999"])
def test_a_name_that_is_none_is_refused_at_the_start(name):
    with pytest.raises(SettingError, match="is no host name"):
        HostNames("127.0.0.1", "127.0.0.1", more=[name])
