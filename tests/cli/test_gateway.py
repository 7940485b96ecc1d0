"""`retrasyn gateway` from the command line."""

import http.client
import re
import subprocess
import time

import pytest

from support.command_line import assert_one_line, run
from support.live_service import COMMAND
from support.plain_curator import PlainCurator, serving, small_campaign

pytestmark = pytest.mark.system


@pytest.fixture
def served():
    campaign = small_campaign(period=1, window=1, epoch=int(time.time()))
    with serving(PlainCurator(campaign)) as curator:
        yield curator


def test_a_gateway_without_phones_says_what_it_needs(tmp_path):
    done = run("gateway", "--folder", tmp_path / "gateway")
    assert_one_line(done, "no phones yet", "link")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--mqtt", "nonsense"), ("--mqtt", "mqtt://")),
        (("--host", ""), ("--host", "every address")),
        (("--host", "x" * 70), ("x" * 70, "--host")),
        (("--host", "no.such.host.invalid"), ("no.such.host.invalid",)),
    ],
)
def test_what_cannot_be_listened_to_is_found_before_a_link_is_used_up(
    served, tmp_path, words, names
):
    done = run("gateway", served.link(), "--folder", tmp_path / "g", "--yes", "--port", 0, *words)
    assert_one_line(done, *names)
    assert served.tokens
    assert not (tmp_path / "g").exists()


def test_who_does_not_agree_has_no_gateway(served, tmp_path):
    done = run("gateway", served.link(), "--folder", tmp_path / "gateway", stdin="n\n")
    assert done.code == 2
    assert not served.devices


def test_a_gateway_takes_a_phone_through_its_rounds_and_ends(served, tmp_path):
    process = subprocess.Popen(
        [
            *(*COMMAND, "gateway", f"anna={served.link()}", "--folder", str(tmp_path / "gateway")),
            *("--port", "0", "--yes", "--rounds", "4"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while "phones post to" not in (line := process.stdout.readline()):
        assert line
    host, port = re.search(r"http://([\d.]+):(\d+)/", line).groups()
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    connection.request("GET", f"/?id=anna&lat=1&lon=1&timestamp={int(time.time())}")
    assert connection.getresponse().status == 200
    connection.close()
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    sent = [line for line in said.splitlines() if "reported, accepted" in line]
    assert len(sent) == len(served.reports()) >= 1
    assert all(line.startswith("phone 1, round ") for line in sent)


def test_a_changed_campaign_is_refused_until_the_owner_agrees(served, tmp_path):
    folder, port = tmp_path / "gateway", ("--port", "0", "--rounds", "1")
    first = run("gateway", f"anna={served.link()}", "--folder", folder, "--yes", *port)
    assert first.code == 0, first.err
    served.change(epsilon=2_000_000)
    assert_one_line(run("gateway", "--folder", folder, *port), "agree with", "phone-1")
    agreed = run("gateway", "--folder", folder, "--accept", *port)
    assert agreed.code == 0, agreed.err


def test_ctrl_c_ends_a_gateway_with_one_line(served, tmp_path):
    words = ("gateway", f"anna={served.link()}", "--folder", str(tmp_path / "g"), "--port", "0")
    process = subprocess.Popen(
        [*COMMAND, *words, "--yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while "phones post to" not in (line := process.stdout.readline()):
        assert line
    process.send_signal(2)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors == "stopped: the phones are silent until it runs again\n"
