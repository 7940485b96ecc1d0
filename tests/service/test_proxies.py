"""The proxies of the documents, real ones, in front of a real service."""

import contextlib
import http.client
import os
import re
import socket
import ssl
import subprocess

import pytest

from support.certificates import self_signed
from support.components import need
from support.live_service import end, service, wait_for
from support.pages import GUIDES, blocks_of

pytestmark = pytest.mark.long

BLOCKS = {
    language: [
        block.text for path in GUIDES for block in blocks_of(path) if block.language == language
    ]
    for language in ("nginx", "caddyfile")
}
ELSEWHERE = "127.0.0.2"  # an address of the loopback from which no operator comes


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def put(text, **changes):
    """Replace what stands for the operator's own."""
    for theirs, ours in changes.values():
        assert theirs in text
        text = text.replace(theirs, str(ours))
    return text


def nginx(text, upstream, port, folder):
    """Return the command that runs a server block of nginx, and sees first that it is right."""
    certificate, key = self_signed(folder)
    server = put(
        text,
        listen=("listen 443", f"listen 127.0.0.1:{port}"),
        certificate=("/etc/ssl/curator.pem", certificate),
        key=("/etc/ssl/curator.key", key),
        upstream=("http://127.0.0.1:8700", upstream),
    )
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    path = folder / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""  # whom the folders of tests belong to
    path.write_text(f"{user} pid {folder}/pid; events {{}}\nhttp {{\n{places}{server}}}\n")
    program = need("nginx", package="nginx")
    command = [program, "-c", path, "-p", folder, "-e", folder / "errors"]
    subprocess.run([*command, "-t"], check=True)
    return [*command, "-g", "daemon off;"]


def caddyfile(text, upstream, port, folder):
    """Return the command that runs a site of Caddy, and sees first that it is right."""
    program = need("caddy", package="caddy")
    path = folder / "Caddyfile"
    path.write_text(text)
    subprocess.run([program, "validate", "--adapter", "caddyfile", "--config", path], check=True)
    certificate, key = self_signed(folder)
    site = put(
        text,
        address=(
            "curator.example.org {",
            f"https://127.0.0.1:{port} {{\n    tls {certificate} {key}",
        ),
        upstream=("127.0.0.1:8700", upstream.removeprefix("http://")),
    )
    path.write_text(f"{{\n    admin off\n    auto_https disable_redirects\n}}\n{site}")
    return [program, "run", "--adapter", "caddyfile", "--config", path]


class Proxy:
    """A proxy that runs."""

    def __init__(self, port, folder):
        self.port = port
        self._context = ssl.create_default_context(cafile=folder / "certificate.pem")

    def connect(self, *, source="127.0.0.1"):
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=20, context=self._context, source_address=(source, 0)
        )

    def ask(self, method, path, body=None, **options):
        with contextlib.closing(self.connect(**options)) as connection:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def is_up(self):
        with contextlib.suppress(OSError):
            return self.ask("GET", "/healthz")[0] == 200
        return False


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A service with a round every second."""
    with service(tmp_path_factory.mktemp("proxied") / "folder", period=1) as live:
        yield live


@pytest.fixture(
    params=[(make, text) for make in (nginx, caddyfile) for text in BLOCKS[make.__name__]],
    ids=lambda param: param[0].__name__,
    scope="module",
)
def proxy(request, live, tmp_path_factory):
    make, text = request.param
    folder, port = tmp_path_factory.mktemp("proxy"), free_port()
    command = make(text, live.url, port, folder)
    variables = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}  # Caddy keeps things at home
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=variables, stdout=log, stderr=log)
    try:
        proxy = Proxy(port, folder)
        wait_for(proxy.is_up, f"{make.__name__}: {(folder / 'log').read_text()}", seconds=20)
        yield proxy
    finally:
        end(process)


def test_every_proxy_of_the_documents_is_tested():
    assert all(BLOCKS.values())


def test_pages_and_what_devices_ask_for_pass_through(proxy, live):
    assert proxy.ask("GET", "/")[0] == 200
    assert proxy.ask("GET", "/v1/campaign", source=ELSEWHERE)[0] == 200


def test_what_is_the_operators_is_refused_to_others(proxy):
    for path in ("/metrics", "/v1/operator/tokens"):
        assert proxy.ask("GET", path, source=ELSEWHERE)[0] == 403


def test_a_batch_as_large_as_the_largest_passes_through(proxy, live):
    largest = bytes(2 << 20)
    with contextlib.closing(http.client.HTTPConnection(live.url.rpartition("/")[2])) as connection:
        connection.request("POST", "/v1/reports/batch", largest)
        answer = connection.getresponse()
        own = answer.status, answer.read()
    assert proxy.ask("POST", "/v1/reports/batch", largest) == own


def test_the_live_feed_is_not_held_back(proxy):
    with contextlib.closing(proxy.connect(source=ELSEWHERE)) as connection:
        connection.request("GET", "/v1/feed")
        answer = connection.getresponse()
        events = [line for line, _ in zip(iter(answer.readline, b""), range(8), strict=False)]
    assert any(re.match(rb"data: ", line) for line in events)
