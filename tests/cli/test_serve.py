"""``retrasyn serve`` and ``retrasyn invite`` as a person runs them."""

import contextlib
import hashlib
import http.server
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import tomllib
import urllib.request
from pathlib import Path

import pytest

from retrasyn.client.curator_client import CuratorClient
from retrasyn.client.owner import read_link
from retrasyn.device.signatures import verify_ed25519
from retrasyn.service.settings import Settings
from retrasyn.wire import decode_manifest, manifest_id
from retrasyn.wire.canonical import unseal
from retrasyn.wire.keys import CuratorKeys, follow
from support.command_line import COMMAND, assert_one_line, environment, run
from support.public_maps import settings_for

pytestmark = pytest.mark.system

PATIENCE = 60


@contextlib.contextmanager
def serving(folder, *arguments):
    """Run the service as a process of its own; give the process and what it said first."""
    process = subprocess.Popen(
        [COMMAND, "serve", "--port", "0", "--folder", str(folder), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        said = []
        while not said or not said[-1].startswith("Stop with Ctrl-C"):
            line = process.stdout.readline()
            assert line, process.stderr.read()
            said.append(line)
        yield process, "".join(said)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def get(url, **headers):
    asked = urllib.request.Request(url, headers=headers)  # noqa: S310 - loopback
    with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:  # noqa: S310 - the same
        return json.load(answer)


def enrol(link):
    """Use up an enrolment link."""
    url, token, key = read_link(link)
    with CuratorClient(url) as server:
        _, agreement = follow(CuratorKeys(key), server.keys(), verify_ed25519)
        return server.enrol(
            [token], agreement=agreement, manifest=manifest_id(unseal(server.campaign())[0])
        )


def test_serving_needs_no_configuration_and_stops_cleanly(tmp_path):
    folder = tmp_path / "service"
    with serving(folder, "--set", "period=1") as (process, said):
        url = re.search(r"runs at (http://127\.0\.0\.1:\d+), a round every 1 s", said)[1]
        assert get(f"{url}/v1/status")["guarantee"] in said
        assert "a usual place after about 1 night (19 reports, 6.65 minutes at one place)" in said
        assert "devices stop at epsilon 18, after 6.3 minutes of sharing." in said
        assert f"The live map:      {url}/\n" in said
        (link,) = re.findall(r"http://\S+/#enrol=\S+", said)
        assert len(enrol(link)) == 1
        token_file = folder / "operator.token"
        assert str(token_file) in said
        assert token_file.stat().st_mode & 0o777 == 0o600
        token = token_file.read_text().strip()
        bearer = {"authorization": f"Bearer {token}"}
        assert get(f"{url}/v1/operator/status", **bearer)["n_enrolled"] == 1
        assert token not in said
        made = run("invite", 3, "--folder", folder)
        assert made.code == 0, made.err
        links = made.out.split()
        assert len(links) == len(set(links)) == 3
        assert all(len(enrol(link)) == 1 for link in links)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "stopping signal=SIGTERM" in err
    assert "Traceback" not in err
    for secret in (token, link.partition("=")[2]):
        assert secret not in err


def test_a_public_map_is_an_option_and_its_box_that_of_the_campaign(tmp_path):
    roads = settings_for("steered-roads", (2, 3, 4, 7), tmp_path)["roads"]
    quick = ["--set", "period=1", "--set", "window=2", "--roads", roads]
    with serving(tmp_path / "service", *quick) as (process, said):
        url = re.search(r"runs at (http://\S+),", said)[1]
        with CuratorClient(url) as server:
            manifest = decode_manifest(unseal(server.campaign())[0])
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=PATIENCE)
    assert manifest.box == (2_000_000, 3_000_000, 4_000_000, 7_000_000)
    assert manifest.public_map == hashlib.sha256(Path(roads).read_bytes()).digest()
    assert "note: no box is given, so it is that of the roads: 2,3,4,7" in told
    done = run("serve", "--folder", tmp_path / "service", "--prior", "class")
    assert_one_line(done, "prior is not set there and class now")


def test_keys_are_rotated_while_the_service_is_stopped(tmp_path):
    folder = tmp_path / "service"
    assert_one_line(run("rotate-key", "--folder", folder), "does not exist", "--folder")
    tmp_path.joinpath("empty").mkdir()
    assert_one_line(run("rotate-key", "--folder", tmp_path / "empty"), "holds no keys")
    with serving(folder, "--set", "period=1") as (_, said):
        (first,) = re.findall(r"http://\S+/#enrol=\S+", said)
        assert_one_line(run("rotate-key", "--folder", folder), "held by another process")
    done = run("rotate-key", "--folder", folder, "--overlap", "1")
    assert done.code == 0, done.err
    assert "another 1 hours" in done.out
    with serving(folder) as (_, said):
        (second,) = re.findall(r"http://\S+/#enrol=\S+", said)
        url, _, new = read_link(second)
        old = read_link(first)[2]
        assert old != new
        with CuratorClient(url) as server:
            keys, _ = follow(CuratorKeys(old), server.keys(), verify_ed25519)
            assert (keys.key, keys.before) == (new, old)
            campaign = server.campaign()
        assert len(enrol(first.replace(read_link(first)[0], url))) == 1, "old links stay good"
        assert json.loads(unseal(campaign)[0])["key"] == old.hex(), "the campaign is the same"


def test_the_operators_token_is_not_sent_openly_to_another_machine(tmp_path):
    (tmp_path / "operator.token").write_text("x" * 40)
    done = run("invite", "--server", "http://192.0.2.1:8700", "--folder", tmp_path)
    assert_one_line(done, "not encrypted", "--insecure")


def test_started_again_it_goes_on_and_control_c_is_130(tmp_path):
    manifests = []
    for _ in range(2):
        with serving(tmp_path / "service") as (process, said):
            url = re.search(r"http://127\.0\.0\.1:\d+", said)[0]
            manifests.append(get(f"{url}/v1/status")["manifest"])
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130, err
        assert "Traceback" not in err
    assert manifests[0] == manifests[1]


def test_a_folder_in_use_is_refused_in_one_line(tmp_path):
    with serving(tmp_path / "service"):
        assert_one_line(
            run("serve", "--port", 0, "--folder", tmp_path / "service", "--quiet"),
            "is held by another process",
        )


def test_a_port_in_use_is_refused_in_one_line_before_anything_is_made(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = run("serve", "--port", port, "--folder", tmp_path / "service", "--quiet")
    assert_one_line(outcome, f"127.0.0.1:{port}", "--port")
    assert not (tmp_path / "service").exists()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--set", "windw=5"], "did you mean window?"),
        (["--set", "window=x"], "window"),
        (["--set", "window"], "NAME=VALUE"),
        (["--port", "70000"], "port"),
        (["--host", "no.such.host.invalid"], "no.such.host.invalid"),
        (["--host", "x" * 70], "x" * 70),
        (["--host", ""], "host ''"),
        (["--config", "missing.toml"], "missing.toml"),
        (["--set", "method=lbd"], "lbd"),
        (["--roads", "missing.geojson"], "missing.geojson"),
        (["--prior", "clss"], "did you mean class?"),
        (["--prior", "class"], "give roads as well"),
        (["--set", "tls_certificate=missing.pem"], "belong together"),
        (["--set", "tls_certificate=a.pem", "--set", "tls_key=b.pem"], "a.pem"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(tmp_path, monkeypatch, arguments, named):
    monkeypatch.chdir(tmp_path)
    if "--port" not in arguments:
        arguments = [*arguments, "--port", "0"]
    assert_one_line(run("serve", "--folder", tmp_path / "service", "--quiet", *arguments), named)


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("map.tiles=none.pmtiles", "none.pmtiles"),
        ("map.roads=none.geojson", "none.geojson"),
        ("map.style=none.json", "none.json"),
        ("map.hosts=example.org", "https://tiles.example.org"),
        ("map.travellers=10001", "travellers"),
    ],
)
def test_a_base_map_that_is_none_is_refused_in_one_line_before_anything_is_made(
    tmp_path, monkeypatch, setting, named
):
    monkeypatch.chdir(tmp_path)
    outcome = run("serve", "--folder", tmp_path / "service", "--port", 0, "--set", setting)
    assert_one_line(outcome, named)
    assert not (tmp_path / "service").exists()


@pytest.mark.parametrize("text", ["[campaign", "[campaign]\nwindow = 'x'\n", "[nonsense]\na = 1\n"])
def test_a_configuration_that_is_none_is_refused_in_one_line(tmp_path, text):
    config = tmp_path / "curator.toml"
    config.write_text(text)
    outcome = run("serve", "--config", config, "--folder", tmp_path / "service", "--port", 0)
    assert_one_line(outcome)
    assert not (tmp_path / "service").exists()


def test_the_printed_configuration_is_complete_and_says_the_defaults(tmp_path):
    outcome = run("serve", "--print-config")
    assert outcome.code == 0
    config = tmp_path / "curator.toml"
    config.write_text(outcome.out)
    assert Settings.load(config) == Settings.load()
    for section, table in Settings.model_fields.items():
        given = tomllib.loads(outcome.out)[section]
        for name, field in type(table.default).model_fields.items():
            assert field.description, name
            assert (name in given) or f"\n# {name} =\n" in outcome.out, name


def test_links_need_a_running_service_and_its_token(tmp_path):
    assert_one_line(run("invite", "--folder", tmp_path, "--wait", 0), "address", "running?")
    (tmp_path / "operator.token").write_text("nonsense\n")
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    assert_one_line(run("invite", "--folder", tmp_path, "--server", url), url, "running?")
    assert_one_line(run("invite", "--folder", tmp_path, "--server", "ftp://x"), "http://")
    with serving(tmp_path / "service") as (_, said):
        url = re.search(r"http://127\.0\.0\.1:\d+", said)[0]
        refused = run("invite", "--server", url, "--operator-token", tmp_path / "operator.token")
        assert_one_line(refused, "401", "operator's token")
        assert "nonsense" not in refused.err
        assert_one_line(run("invite", 0, "--folder", tmp_path / "service"), "422")


def test_a_link_can_be_asked_for_while_the_service_is_still_starting(tmp_path):
    folder = tmp_path / "service"
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    (folder / "address").write_text(f"http://127.0.0.1:{port}\n")  # left by one that was killed
    asking = subprocess.Popen(
        [COMMAND, "invite", "--folder", folder, "--wait", "60"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    with serving(folder):
        link, _ = asking.communicate(timeout=60)
    assert asking.returncode == 0
    assert "/#enrol=" in link


class Stranger(http.server.BaseHTTPRequestHandler):
    """Answers everything but what was asked, by the first part of the path."""

    def do_POST(self):
        status, body = {
            "page": (404, b"<html>"),
            "list": (200, b"[1]"),
            "number": (200, b'{"tokens": 5, "key": ""}'),
            "text": (200, b"hello"),
            "elsewhere": (302, b""),
        }.get(self.path.split("/")[1], (None, b"hello\r\n\r\n"))
        if status is not None:
            self.send_response(status)
            self.send_header("location", "/taken")
            self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.server.taken.append(self.headers["authorization"])

    def log_message(self, *_):
        pass


@pytest.fixture
def stranger(tmp_path):
    (tmp_path / "operator.token").write_text("secret\n")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        server.taken = []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ("page", "404"),
        ("list", "no service of ours"),
        ("number", "no service of ours"),
        ("text", "no service of ours"),
        ("nothing", "cannot be asked"),
        ("elsewhere", "302"),
    ],
)
def test_links_from_a_server_that_is_no_curator_are_one_clear_line(
    stranger, tmp_path, answer, named
):
    url = f"http://127.0.0.1:{stranger.server_port}/{answer}"

    done = run("invite", "--folder", tmp_path, "--server", url)

    assert_one_line(done, url, named)
    assert not stranger.taken, "the operator's token follows no redirect"


def test_the_operators_token_goes_through_no_proxy_to_this_machine(stranger, tmp_path, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{stranger.server_port}")
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"

    assert_one_line(run("invite", "--folder", tmp_path, "--server", url), "running?")


@pytest.mark.parametrize("url", ["http://a b", "http://[::1", "ftp://x", "http://" + "x" * 70])
def test_links_from_what_is_no_address_are_one_clear_line(tmp_path, url):
    (tmp_path / "operator.token").write_text("secret\n")

    assert_one_line(run("invite", "--folder", tmp_path, "--server", url), url)


@pytest.mark.parametrize("name", ["granian", "fastapi", "prometheus_client"])
def test_a_missing_extra_says_what_to_type(name, tmp_path):
    program = (
        f"import sys; sys.modules[{name!r}] = None\n"
        "from retrasyn.cli import main\n"
        f"main(['serve', '--port', '0', '--folder', {str(tmp_path / 'service')!r}])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr == f'error: {name} is not installed: pip install "retrasyn[serve]"\n'
    assert not (tmp_path / "service").exists()
