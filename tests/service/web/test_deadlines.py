"""I8: slow headers and slow bodies are cut, long bodies are refused having read little of them."""

import asyncio
import contextlib
import socket
import time

import pytest

from retrasyn.service.web.front import SWEEP, Deadlines
from support.living import living

pytestmark = pytest.mark.system

HOST = "a"
QUICK = {"header_seconds": 0.5, "body_seconds": 0.8}  # the same code in less time
N_HALF_OPEN = 200
SLOW_BODY = b"POST /v1/%s HTTP/1.1\r\nHost: a\r\n%s\r\n\r\nabc"


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    with living(tmp_path_factory.mktemp("quick") / "folder", allowed_hosts=HOST, **QUICK) as one:
        yield one


@pytest.fixture
def opened():
    """Closes what a test has opened."""
    with contextlib.ExitStack() as stack:
        yield stack


def cut_after(live, sent, n):
    """Return how long n connections lived that sent the same and then fell silent, and answers."""
    began = time.monotonic()
    connections = [live.connect() for _ in range(n)]
    for one in connections:
        one.sendall(sent)
    lived, answers = [], []
    for one in connections:
        answers.append(read_all(one))
        lived.append(time.monotonic() - began)
        one.close()
    return lived, answers


def read_all(connection):
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


@pytest.mark.parametrize(
    "sent",
    [b"", b"G", b"POST /v1/reports HTTP/1.1\r\nHost: a\r\nContent-Le", b"GET / HTTP/1.1\r\n"],
    ids=["nothing", "a letter", "half a header", "no end of headers"],
)
def test_two_hundred_half_open_requests_are_all_cut(quick, sent):
    lived, answers = cut_after(quick, sent, N_HALF_OPEN)
    assert not any(answers)
    assert max(lived) < QUICK["header_seconds"] + 2.0


def test_headers_that_trickle_are_cut_all_the_same(quick, opened):
    connection = opened.enter_context(quick.connect())
    began = time.monotonic()

    def trickle():
        while time.monotonic() - began < 10:
            connection.sendall(b"X")
            time.sleep(0.05)

    with pytest.raises(OSError, match=r"reset|pipe"):
        trickle()
    assert time.monotonic() - began < QUICK["header_seconds"] + 2.0


@pytest.mark.parametrize("path", [b"reports", b"reports/batch", b"enrolments"])
@pytest.mark.parametrize("framing", [b"Content-Length: 100", b"Transfer-Encoding: chunked"])
def test_slow_bodies_are_cut_with_an_answer(quick, path, framing):
    lived, answers = cut_after(quick, SLOW_BODY % (path, framing), 20)
    assert all(answer.startswith(b"HTTP/1.1 408 ") for answer in answers)
    assert max(lived) < QUICK["body_seconds"] + SWEEP + 2.0


def test_the_server_answers_others_while_hundreds_are_half_open(quick):
    connections = [quick.connect() for _ in range(N_HALF_OPEN)]
    for one in connections:
        one.sendall(b"POST /v1/reports HTTP/1.1\r\n")
    began = time.monotonic()
    assert quick.ask("GET", "/healthz").status == 200
    assert time.monotonic() - began < QUICK["header_seconds"]
    for one in connections:
        one.close()


def test_a_body_that_says_it_is_too_long_is_refused_unread(quick, opened):
    connection = opened.enter_context(quick.connect())
    head = b"POST /v1/reports/batch HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
    connection.sendall(head % (1 << 30))
    assert read_all(connection).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("path", [b"reports", b"reports/batch", b"enrolments"])
def test_a_body_without_end_is_refused_having_read_little_more_than_the_limit(quick, path, opened):
    limit = 1 << 16 if path == b"reports" else quick.settings.limits.max_body
    connection = opened.enter_context(quick.connect())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    head = b"POST /v1/%s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" % path
    connection.sendall(head)
    chunk = b"10000\r\n" + bytes(1 << 16) + b"\r\n"
    n_sent = 0

    def pour():
        nonlocal n_sent
        while n_sent < limit + (256 << 20):
            connection.sendall(chunk)
            n_sent += 1 << 16

    with pytest.raises(OSError, match=r"reset|pipe"):
        pour()
    assert n_sent < limit + (8 << 20)  # what the sockets on both sides may hold


def test_headers_that_are_too_long_are_refused(quick, opened):
    connection = opened.enter_context(quick.connect())
    connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 60_000)
    assert read_all(connection).startswith(b"HTTP/1.1 431 ")


def test_a_deadline_cancels_only_what_is_over():
    async def scene():
        deadlines = Deadlines(0.05)
        assert await deadlines.wait(asyncio.sleep(0, "soon")) == "soon"
        with pytest.raises(TimeoutError):
            await deadlines.wait(asyncio.sleep(30))
        task = asyncio.ensure_future(Deadlines(30).wait(asyncio.sleep(30)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())


@pytest.mark.long
def test_the_shipped_deadlines_cut_headers_in_six_and_bodies_in_ten_seconds(tmp_path):
    with living(tmp_path / "folder", allowed_hosts=HOST) as live:
        lived, _ = cut_after(live, b"POST /v1/reports HTTP/1.1\r\nHost", N_HALF_OPEN)
        assert 5.5 < max(lived) < 7.5
        lived, answers = cut_after(
            live, SLOW_BODY % (b"reports", b"Content-Length: 100"), N_HALF_OPEN
        )
        assert all(answer.startswith(b"HTTP/1.1 408 ") for answer in answers)
        assert 9.5 < max(lived) < 11.5
