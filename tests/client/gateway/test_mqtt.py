"""The owner's own broker, guarded as brokers are: a password, TLS, and restarts."""

import gc
import json
import logging
import subprocess
import time

import pytest
from paho.mqtt import publish

from retrasyn.client.gateway.mqtt import PASSWORD, Subscriber
from retrasyn.errors import ServerError
from support.broker import broker, free_port
from support.certificates import self_signed
from support.components import need
from support.live_service import wait_for
from support.phone_messages import OWNTRACKS

pytestmark = pytest.mark.system

WORD = {"username": "anna", "password": "a long word"}
TOPIC = "owntracks/anna/phone"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Give a broker that wants TLS and a password: its port and its certificate."""
    folder = tmp_path_factory.mktemp("guarded")
    certificate, key = self_signed(folder)
    words = folder / "words"
    program = need("mosquitto_passwd", package="mosquitto")
    subprocess.run([program, "-b", "-c", words, *WORD.values()], check=True, capture_output=True)
    settings = f"password_file {words}\ncertfile {certificate}\nkeyfile {key}\n"
    with broker(folder, f"allow_anonymous false\n{settings}") as port:
        yield port, certificate


@pytest.fixture
def hearing():
    """Give a function that starts a subscriber and the positions it has heard; all are stopped."""
    started = []

    def start(url):
        heard = []
        subscriber = Subscriber(url, lambda one: heard.append(one) or True)
        started.append(subscriber)
        subscriber.start()
        return heard

    yield start
    for subscriber in started:
        subscriber.stop()


def publish_until(heard, port, **how):
    """Publish until it is heard: a subscription takes a moment."""
    end = time.monotonic() + 30
    while not heard:
        assert time.monotonic() < end, "nothing was heard"
        publish.single(TOPIC, json.dumps(OWNTRACKS), hostname="127.0.0.1", port=port, qos=1, **how)
        time.sleep(0.05)


def test_with_its_password_a_gateway_hears_a_broker_over_tls(guarded, hearing, monkeypatch):
    port, certificate = guarded
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv(PASSWORD, WORD["password"])
    heard = hearing(f"mqtts://anna@127.0.0.1:{port}")
    publish_until(heard, port, auth=WORD, tls={"ca_certs": str(certificate)})
    assert heard[0].phone == "anna/phone"


# paho does not close its socket when a handshake fails.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_broker_that_nobody_vouches_for_is_one_clear_line(guarded, hearing):
    port, _ = guarded
    with pytest.raises(ServerError, match=r"broker 127.0.0.1 cannot be reached .*certificate"):
        hearing(f"mqtts://anna@127.0.0.1:{port}")
    gc.collect()


def test_a_wrong_password_is_told_and_nothing_is_heard(guarded, hearing, monkeypatch, caplog):
    port, certificate = guarded
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv(PASSWORD, "another word")
    with caplog.at_level(logging.ERROR):
        heard = hearing(f"mqtts://anna@127.0.0.1:{port}")
        wait_for(lambda: "the broker refuses us" in caplog.text, "the refusal")
    assert not heard
    assert "another word" not in caplog.text


def test_a_broker_that_comes_back_is_heard_again(hearing, tmp_path):
    port = free_port()
    with broker(tmp_path, port=port):
        heard = hearing(f"mqtt://127.0.0.1:{port}")
        publish_until(heard, port)
    heard.clear()
    with broker(tmp_path, port=port):
        publish_until(heard, port)
    assert heard


def test_a_broker_that_is_not_there_is_one_clear_line(hearing):
    with pytest.raises(ServerError, match=r"broker 127\.0\.0\.1 cannot be reached"):
        hearing(f"mqtt://127.0.0.1:{free_port()}")
