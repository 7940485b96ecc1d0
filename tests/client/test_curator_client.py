"""The HTTP client of a device: bounded, verified, never sent elsewhere."""

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from retrasyn.client.curator_client import CuratorClient, is_loopback
from retrasyn.client.gateway.mqtt import Subscriber
from retrasyn.device.signatures import draw_x25519
from retrasyn.errors import ServerError
from support.certificates import self_signed
from support.plain_curator import PlainCurator, serving, small_campaign


class Odd(BaseHTTPRequestHandler):
    """Answers a campaign that never ends, and devices that are none."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        try:
            for _ in range(2000):
                self.wfile.write(b"x" * 10_000)
        except OSError:
            self.server.cut = True

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.server.says)


@pytest.fixture
def odd():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    server.cut, server.says = False, b""
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def url_of(server, scheme="http"):
    return f"{scheme}://127.0.0.1:{server.server_address[1]}"


def test_an_answer_that_does_not_end_is_cut_off(odd):
    with CuratorClient(url_of(odd)) as server, pytest.raises(ServerError, match="no curator"):
        server.campaign()


def test_redirects_are_not_followed():
    with (
        serving(PlainCurator(small_campaign())) as curator,
        CuratorClient(curator.url) as server,
        pytest.raises(ServerError, match="elsewhere"),
    ):
        server.request("GET", "/elsewhere")


@pytest.mark.parametrize(
    "says", [b"", b"[]", b"{}", b'{"devices": []}', b'{"devices": [{"device": 1, "tag": "z"}]}']
)
def test_identities_that_are_none_are_one_clear_line(odd, says):
    odd.says = says
    with CuratorClient(url_of(odd)) as server, pytest.raises(ServerError, match="1 identities"):
        server.enrol(["token"], agreement=draw_x25519()[1], manifest=bytes(8))


def test_tokens_statuses_and_askings_that_are_none_are_refused(odd):
    odd.says = b"no"
    with CuratorClient(url_of(odd)) as server:
        with pytest.raises(ServerError, match="no enrolment tokens"):
            server.mint(1, operator_token="operator")  # noqa: S106 - nobody's
        with pytest.raises(ServerError, match="names 2 devices of 1"):
            server.asked(0, [bytes(16)])


@pytest.mark.parametrize("url", ["", "nowhere", "ftp://a", "http://", "http://a:b", "http://a:0"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(ServerError, match="http://HOST:PORT"):
        CuratorClient(url)


@pytest.mark.parametrize(
    "url",
    ["http://192.0.2.1:8700", "http://example.org", "http://0.0.0.0:1", "http://127.0.0.1.de"],
)
def test_nothing_is_said_openly_to_another_machine_unless_asked_for(url):
    with pytest.raises(ServerError, match=r"not encrypted.*https://.*--insecure"):
        CuratorClient(url)
    CuratorClient(url, insecure=True).close()
    CuratorClient(url.replace("http:", "https:")).close()
    with pytest.raises(ServerError, match="not encrypted"):
        Subscriber(url.replace("http:", "mqtt:"), lambda _heard: True)
    Subscriber(url.replace("http:", "mqtts:"), lambda _heard: True)
    Subscriber(url.replace("http:", "mqtt:"), lambda _heard: True, insecure=True)


def test_only_this_machine_is_loopback():
    assert is_loopback("http://127.0.0.1:1")
    assert is_loopback("http://localhost:1")
    assert is_loopback("http://[::1]:1")
    assert not is_loopback("http://example.org")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate that nobody vouches for but itself, and its key."""
    return self_signed(tmp_path_factory.mktemp("tls"))


def test_a_certificate_that_nobody_vouches_for_is_refused(odd, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    odd.socket = context.wrap_socket(odd.socket, server_side=True)
    refused = pytest.raises(ServerError, match=r"CERTIFICATE_VERIFY_FAILED|certificate verify")
    with CuratorClient(url_of(odd, "https")) as server, refused:
        server.campaign()
