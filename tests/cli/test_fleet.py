"""`retrasyn fleet` and `retrasyn demo --devices` from the command line."""

import json
import signal
import socket
import subprocess
import time
import urllib.request

import pytest

from retrasyn.messages import MICRO
from support.command_line import assert_one_line, run, run_command
from support.foreign_hosts import ALL, answer_to, is_refused, wire
from support.live_service import COMMAND
from support.plain_curator import PlainCurator, serving, small_campaign

pytestmark = pytest.mark.system


@pytest.fixture
def served(tmp_path):
    (tmp_path / "token").write_text("operator\n")
    campaign = small_campaign(period=1, window=1, epoch=int(time.time()))
    with serving(PlainCurator(campaign)) as curator:
        yield curator


def arguments(served, tmp_path, *more):
    return (
        *("fleet", tmp_path / "walk.csv", "--server", served.url, "--folder", tmp_path / "fleet"),
        *("--operator-token", tmp_path / "token", "--quiet", *more),
    )


@pytest.fixture
def walk(tmp_path):
    rows = [f"{n},{t},{1 + n},{1 + t / 2}" for n in range(4) for t in range(3)]
    (tmp_path / "walk.csv").write_text("\n".join(["traj_id,t,x,y", *rows]) + "\n")


def test_a_fleet_reports_recounts_and_records(served, walk, tmp_path):
    record = tmp_path / "frames.jsonl"
    done = run(*arguments(served, tmp_path, "--rounds", "3", "--record", record))
    assert done.code == 0, done.err
    assert "4 devices are silent for 2 more rounds" in done.out
    assert "within epsilon=1" in done.out
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    reports = [f for one in lines for f in one["frames"] if int(f[2:4], 16) < 64]
    assert len(reports) == len(served.reports()) >= 2
    assert f"{len(reports)} reports; at most 1 in any window" in done.out


def test_a_fleet_says_when_its_devices_stop(walk, tmp_path):
    (tmp_path / "token").write_text("operator\n")
    campaign = small_campaign(period=1, window=1, epoch=int(time.time()), lifetime_cap=MICRO)
    with serving(PlainCurator(campaign)) as curator:
        done = run(*arguments(curator, tmp_path, "--rounds", "5"))
        assert done.code == 0, done.err
        assert (
            "devices stop after 2 rounds of sharing, at the campaign's lifetime_cap of 1"
            in done.out
        )
        assert len(curator.reports()) <= 4


def test_a_fleet_of_the_city_has_as_many_devices_as_asked_for(served, tmp_path):
    words = ("--server", served.url, "--folder", tmp_path / "fleet", "--quiet")
    token = ("--operator-token", tmp_path / "token")
    done = run("fleet", *words, *token, "--devices", "3", "--rounds", "1")
    assert done.code == 0, done.err
    assert len(served.devices) == 3


def test_ctrl_c_ends_a_fleet_with_its_summary(served, walk, tmp_path):
    words = arguments(served, tmp_path, "--rounds", "500")
    process = subprocess.Popen(
        [*COMMAND, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert "silent for" in process.stdout.readline()
    process.send_signal(2)
    said, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "ledgers   0 reports" in said
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (("--server", "nowhere"), ("http://HOST:PORT",)),
        (("--operator-token", "missing"), ("missing", "operator's token")),
        (("--record", "no/such/folder/file"), ("no/such/folder/file", "cannot be written")),
        (("--folder", "walk.csv"), ("walk.csv", "--folder")),
    ],
)
def test_what_cannot_work_is_one_clear_line(served, walk, tmp_path, monkeypatch, change, names):
    monkeypatch.chdir(tmp_path)
    assert_one_line(run(*arguments(served, tmp_path, *change)), *names)


def test_a_live_demo_whose_port_is_taken_says_what_its_service_said(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = ("demo", "--devices", 20, "--port", port, "--out", tmp_path / "demo")
        done = run_command(*words)
    assert_one_line(done, f"did not start: 127.0.0.1:{port} cannot be listened on", "--port")


@pytest.mark.parametrize(
    "option", [("--live",), ("--seed", 1), ("--oracle", "grr"), ("--no-baselines",), ("--open",)]
)
def test_a_demo_with_devices_refuses_what_is_about_the_others(option):
    assert_one_line(run("demo", "--devices", 20, *option), "--devices", option[0], "leave it out")


@pytest.mark.parametrize(
    ("old", "new"), [("demo-live", "demo --devices 1000"), ("token", "invite")]
)
def test_a_command_of_earlier_says_its_new_name(old, new):
    assert_one_line(run(old, "--folder", "x"), f"retrasyn {old} is now retrasyn {new}")


@pytest.mark.long
def test_the_live_demo_runs_a_service_and_a_fleet_and_leaves_nothing_behind(tmp_path):
    done = subprocess.run(
        [*COMMAND, "demo", "--port", "0", "--devices", "50", "--rounds", "2"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "demo runs at http://127.0.0.1:" in done.stdout
    assert "The live map:      http://127.0.0.1:" in done.stdout
    assert "#enrol=" in done.stdout
    assert "50 devices, 3 rounds" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "before"),
    [(signal.SIGINT, ()), (signal.SIGTERM, ("env", "--ignore-signal=INT"))],
    ids=["Ctrl-C", "SIGTERM in the background of a script"],
)
def test_whatever_stops_the_live_demo_stops_its_service_and_its_fleet(number, before, tmp_path):
    folder = tmp_path / "demo"
    words = ("demo", "--port", "0", "--devices", "20", "--out", str(folder))
    process = subprocess.Popen(
        [*before, *COMMAND, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while "devices are silent" not in (line := process.stdout.readline()):
        assert line
    url = (folder / "service" / "address").read_text().strip()
    with urllib.request.urlopen(f"{url}/v1/map/roads", timeout=60) as answer:  # noqa: S310 - loopback
        assert json.load(answer)["features"]
    with urllib.request.urlopen(f"{url}/v1/status", timeout=60) as answer:  # noqa: S310 - loopback
        assert json.load(answer)["method"] == "steered-roads"
    own = url.removeprefix("http://")
    address = "127.0.0.1", int(own.rpartition(":")[2])
    for name, form in ALL.items():
        assert is_refused(answer_to(address, wire(form, own, "/v1/status"))), name
    process.send_signal(number)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopping both" in said
    assert "ledgers" in said, "the fleet was ended, not killed"
    assert "Traceback" not in errors
    with socket.socket() as caller:
        port = int((folder / "service" / "address").read_text().rpartition(":")[2])
        assert caller.connect_ex(("127.0.0.1", port)) != 0, "the service listens no more"
