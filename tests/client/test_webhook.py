"""Messages to somebody else's webhook: signed as the standard has it, and sent nowhere else."""

import asyncio
import base64
import socket
import ssl

import pytest

from retrasyn.client import webhook
from retrasyn.client.webhook import Webhook, read_secret, write_secret
from retrasyn.errors import InputError, ServerError
from support.certificates import self_signed
from support.receiver import receiving

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - of the standard's example
KEY = base64.b64decode(SECRET[6:])


def post(url, body=b"{}", id_="msg_1", now=1_700_000_000.5):
    asyncio.run(Webhook(url, KEY).post(id_, body, now))


def test_the_signature_is_that_of_the_standards_own_example():
    found = Webhook("https://example.org", read_secret(SECRET, "a file")).headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', 1614265330
    )
    assert found["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert found["webhook-timestamp"] == "1614265330"


def test_a_secret_is_read_as_it_was_written():
    assert read_secret(write_secret(bytes(range(32))) + "\n", "a file") == bytes(range(32))


@pytest.mark.parametrize(
    "text", ["", "whsec_", "secret", SECRET[6:], "whsec_QUJD", "whsec_***", "whsec_" + "QUJD" * 30]
)
def test_what_is_no_secret_is_refused_and_not_repeated(text):
    with pytest.raises(InputError, match=r"the\.file holds no secret of a webhook") as refused:
        read_secret(text, "the.file")
    assert len(text) < 8 or text not in str(refused.value)


def test_a_message_arrives_whole():
    with receiving() as receiver:
        post(f"{receiver.url}/alerts?token=1", b'{"a": 1}')
    ((path, headers, body),) = receiver.posts
    assert (path, body) == ("/alerts?token=1", b'{"a": 1}')
    assert headers["webhook-id"] == "msg_1"
    assert headers["content-type"] == "application/json"


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 404, 410, 429, 500, 503])
def test_only_success_counts_and_no_redirect_is_followed(status):
    with receiving(status) as receiver:
        with pytest.raises(ServerError, match=f"answers {status}"):
            post(f"{receiver.url}/hook")
        assert [path for path, *_ in receiver.posts] == ["/hook"]


def test_a_server_that_cannot_show_who_it_is_gets_nothing(tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*self_signed(tmp_path))
    with receiving(tls=context) as receiver:
        with pytest.raises(ServerError, match="cannot be reached"):
            post(receiver.url)
        assert not receiver.posts


def test_nobody_there_is_said_without_the_address():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ServerError, match="cannot be reached") as failed:
        post(f"http://127.0.0.1:{port}/token")
    assert "token" not in str(failed.value)


def test_a_server_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(webhook, "_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:  # accepts, and says nothing
        port = listener.getsockname()[1]
        with pytest.raises(ServerError, match="takes longer"):
            post(f"http://127.0.0.1:{port}")


def test_neither_address_nor_secret_is_shown():
    assert repr(Webhook("https://example.org/token", KEY)) == "Webhook()"
