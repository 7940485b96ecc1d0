"""`retrasyn device`: enrolling, reporting, looking, agreeing, leaving; and every way it fails."""

import json
import socket
import stat
import subprocess
import time

import pytest

from retrasyn.client.owner import write_link
from support.command_line import assert_one_line, run
from support.live_service import COMMAND, service
from support.live_service import run as run_process
from support.plain_curator import PlainCurator, serving, small_campaign

pytestmark = pytest.mark.system


@pytest.fixture
def served():
    campaign = small_campaign(period=1, window=1, epoch=int(time.time()))
    with serving(PlainCurator(campaign)) as curator:
        yield curator


@pytest.fixture
def folder(served, tmp_path):
    """A folder with a device that has just enrolled."""
    done = run("device", "enrol", served.link(), "--folder", tmp_path / "mine", "--yes")
    assert done.code == 0, done.err
    return tmp_path / "mine"


def closed_port():
    """Return a port at which nobody listens, and the socket that keeps it so."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    return taken, taken.getsockname()[1]


def test_enrolling_shows_the_promise_and_asks(served, tmp_path):
    done = run("device", "enrol", served.link(), "--folder", tmp_path / "mine", stdin="y\n")
    assert done.code == 0, done.err
    assert "any 1 consecutive positions is 1-differentially private" in done.out
    assert "Do you agree?" in done.out
    assert len(served.devices) == 1


@pytest.mark.parametrize("word", ["n\n", ""])
def test_who_does_not_agree_sends_nothing_and_the_link_stays_good(served, tmp_path, word):
    link = served.link()
    done = run("device", "enrol", link, "--folder", tmp_path / "mine", stdin=word)
    assert done.code == 2
    assert not served.devices
    assert run("device", "enrol", link, "--folder", tmp_path / "mine", "--yes").code == 0


def test_identity_and_ledger_are_for_their_owner_only(folder):
    for name in ("identity.json", "ledger", "ledger.witness"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, name
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_link_is_good_for_once(served, tmp_path):
    link = served.link()
    assert run("device", "enrol", link, "--folder", tmp_path / "one", "--yes").code == 0
    again = run("device", "enrol", link, "--folder", tmp_path / "two", "--yes")
    assert_one_line(again, "used it already", "ask for a new one")


def test_a_folder_holds_one_device(served, folder):
    again = run("device", "enrol", served.link(), "--folder", folder, "--yes")
    assert_one_line(again, str(folder), "already holds a device", "--folder")


@pytest.mark.parametrize(
    "link",
    [
        "nonsense",
        "http://127.0.0.1:1/",
        "http://127.0.0.1:1/#enrol=",
        "http://[::1",
        "http://127.0.0.1:1/#enrol=token",  # without the curator's key
        "http://127.0.0.1:1/#enrol=token.AAAA",
        "http://127.0.0.1:1/#enrol=token." + "A" * 42 + "B",  # another way to write a key
        "http://127.0.0.1:1/#enrol=." + "A" * 43,
        "http://127.0.0.1:1/#enrol=token." + "é" * 43,
    ],
)
def test_what_is_no_link_is_refused(tmp_path, link):
    done = run("device", "enrol", link, "--folder", tmp_path / "mine", "--yes")
    assert_one_line(done, "no enrolment link", "#enrol=TOKEN")


def test_an_address_that_is_none_is_refused(tmp_path):
    link = write_link("ftp://h", "a", bytes(32))
    done = run("device", "enrol", link, "--folder", tmp_path / "mine", "--yes")
    assert_one_line(done, "http://HOST:PORT")


def test_a_server_that_is_down_is_one_clear_line(tmp_path):
    taken, port = closed_port()
    with taken:
        link = write_link(f"http://127.0.0.1:{port}", "a", bytes(32))
        done = run("device", "enrol", link, "--folder", tmp_path / "mine", "--yes")
    assert_one_line(done, f"127.0.0.1:{port}", "cannot be reached")


def test_a_server_that_is_no_curator_is_one_clear_line(served, tmp_path):
    link = write_link(f"{served.url}/deeper", "a", bytes(32))
    done = run("device", "enrol", link, "--folder", tmp_path / "mine", "--yes")
    assert_one_line(done)


def test_a_folder_that_cannot_be_made_is_found_before_the_link_is_used_up(served, tmp_path):
    (tmp_path / "file").write_text("")
    link = served.link()
    done = run("device", "enrol", link, "--folder", tmp_path / "file" / "mine", "--yes")
    assert_one_line(done, "cannot be made", "--folder")
    assert served.tokens


def test_without_a_device_every_command_says_how_to_get_one(tmp_path):
    for command in (("run", "--at", "1,1"), ("status",), ("accept",), ("leave",)):
        done = run("device", *command, "--folder", tmp_path / "nothing")
        assert_one_line(done, "retrasyn device enrol LINK")


def test_a_damaged_identity_is_one_clear_line(folder):
    (folder / "identity.json").write_text('{"server": 1}')
    assert_one_line(run("device", "status", "--folder", folder), "damaged", "enrol again")
    kept = {"server": "http://a", "device": "00" * 16, "key": "00" * 32}
    for curator in ("", {}, {"key": "00", "before": "", "until": 0}):
        (folder / "identity.json").write_text(json.dumps(kept | {"curator": curator}))
        assert_one_line(run("device", "status", "--folder", folder), "damaged", "enrol again")
    (folder / "identity.json").write_text(json.dumps(kept))
    done = run("device", "status", "--folder", folder)
    assert_one_line(done, "earlier version", "enrol again", "ledger beside it stays")


AWAY = "http://192.0.2.1:8700"


@pytest.mark.parametrize("command", [("run", "--at", "1,1"), ("accept", "--yes"), ("leave",)])
def test_no_command_speaks_openly_with_another_machine_unasked(folder, command):
    kept = json.loads((folder / "identity.json").read_text())
    (folder / "identity.json").write_text(json.dumps(kept | {"server": AWAY}))
    done = run("device", *command, "--folder", folder)
    assert_one_line(done, AWAY, "not encrypted", "https://", "--insecure")


def test_an_open_link_to_another_machine_is_refused_before_anything_is_sent(tmp_path):
    link = write_link(AWAY, "a", bytes(32))
    done = run("device", "enrol", link, "--folder", tmp_path / "mine", "--yes")
    assert_one_line(done, "not encrypted", "--insecure")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--at", "here"), ("--at X,Y",)),
        (("--at", "1,2", "--csv", "x.csv"), ("--at and --csv",)),
        (("--csv", "missing.csv"), ("missing.csv", "cannot be read")),
        (("--at", "1,2", "--rounds", "0"), ("--rounds",)),
    ],
)
def test_positions_that_are_none_are_refused(folder, words, names):
    assert_one_line(run("device", "run", "--folder", folder, *words), *names)


def test_a_device_runs_from_a_file_and_ends_with_it(served, folder, tmp_path):
    (tmp_path / "walk.csv").write_text("x,y\n1.2345,1\n,\n2,1\n3,1.3456\n3,2\n")
    done = run("device", "run", "--folder", folder, "--csv", tmp_path / "walk.csv")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert len(lines) == 6
    sent = [line for line in lines if line.endswith("reported, accepted")]
    assert len(sent) == len(served.reports()) >= 1
    who = json.loads((folder / "identity.json").read_text())
    for secret in ("1.234", "1.345", who["device"], who["key"]):
        assert secret not in done.out + done.err
    status = run("device", "status", "--folder", folder).out
    assert f"spent       {len(sent)} of 1000" in status
    assert "quarantine  none" in status


def test_a_device_hears_positions_from_standard_input_until_it_ends(served, folder):
    process = subprocess.Popen(
        [*COMMAND, "device", "run", "--folder", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write('{"x": 1.5, "y": 2}\nrubbish\n')
    process.stdin.flush()
    first = process.stdout.readline()
    rest, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert first.startswith("round ")
    assert len(rest.splitlines()) <= 2  # sharing is over: one last round
    assert errors.count("WARNING: a line of the input is no position") == 1


def test_ctrl_c_ends_a_device_without_a_traceback(folder):
    process = subprocess.Popen(
        [*COMMAND, "device", "run", "--folder", str(folder), "--at", "1,1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    process.send_signal(2)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors == "stopped: silent until it runs again\n"


@pytest.mark.long
def test_a_device_that_is_killed_again_and_again_never_reports_twice(served, folder):
    for delay in (0.1, 0.4, 0.7, 0.2, 0.9, 0.3, 0.6, 0.0, 0.8, 0.5) * 2:
        process = subprocess.Popen(
            [*COMMAND, "device", "run", "--folder", str(folder), "--at", "1,1"],
            stdout=subprocess.PIPE,
            text=True,
        )
        process.stdout.readline()
        time.sleep(delay)  # anywhere in the round that follows
        process.kill()
        process.communicate()
    frames = {}
    for frame in served.received:
        if frame[1] < 64:
            frames.setdefault(frame[4:8], set()).add(frame)
    assert all(len(same) == 1 for same in frames.values())
    assert "conflict" not in {served.judge(frame) for frame in list(served.received)}


def test_a_ledger_in_use_by_another_process_is_one_clear_line(served, folder):
    process = subprocess.Popen(
        [*COMMAND, "device", "run", "--folder", str(folder), "--at", "1,1"],
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    try:
        done = run("device", "run", "--folder", folder, "--at", "1,1", "--rounds", "1")
        assert_one_line(done, "end the other process")
    finally:
        process.kill()
        process.communicate()


def test_a_server_of_another_campaign_is_refused_until_the_owner_agrees(served, folder):
    served.change(name="another", epsilon=2_000_000)
    refused = run("device", "run", "--folder", folder, "--at", "1,1")
    assert_one_line(refused, "'another'", "retrasyn device accept")
    agreed = run("device", "accept", "--folder", folder, "--yes")
    assert agreed.code == 0
    assert "2-differentially private" in agreed.out
    assert "the campaign changed" in run("device", "status", "--folder", folder).out
    assert run("device", "run", "--folder", folder, "--at", "1,1", "--rounds", "1").code == 0


def test_agreeing_while_running_is_said_on_the_command_line(served, folder):
    served.change(name="another")
    done = run("device", "run", "--folder", folder, "--at", "1,1", "--rounds", "1", "--accept")
    assert done.code == 0, done.err
    assert "Campaign 'another'" in done.out


def test_who_leaves_is_forgotten_and_keeps_the_ledger_until_its_window_has_passed(served, folder):
    done = run("device", "leave", "--folder", folder)
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == "the curator has forgotten this device"
    assert not served.devices
    assert min(path.name for path in folder.iterdir()) == "ledger"
    assert "stays for another" in run("device", "status", "--folder", folder).out
    deadline = time.monotonic() + 20
    while folder.exists() and time.monotonic() < deadline:
        assert run("device", "leave", "--folder", folder).code == 0
        time.sleep(0.2)
    assert not folder.exists()


def test_who_leaves_and_comes_back_brings_the_ledger_along(served, folder):
    run("device", "leave", "--folder", folder)
    done = run("device", "enrol", served.link(), "--folder", folder, "--yes")
    assert done.code == 0, done.err
    assert "the owner left" in run("device", "status", "--folder", folder).out


def test_a_device_the_server_forgot_is_told_to_leave_and_enrol_again(served, folder):
    served.devices.clear()
    done = run("device", "run", "--folder", folder, "--at", "1,1", "--rounds", "2")
    assert_one_line(done, "does not know this device", "enrol again")
    unconfirmed = run("device", "leave", "--folder", folder)
    assert_one_line(unconfirmed, "does not confirm", "--force")
    left = run("device", "leave", "--folder", folder, "--force")
    assert "the curator did not confirm" in left.out.splitlines()[0]


def run_until_reported(*arguments):
    """Take part for six rounds at a time: a device that tells its age has few slots."""
    said = ""
    while "reported, accepted" not in said:
        assert said.count("\n") < 60, said
        ran = run_process("device", "run", "--rounds", "6", *arguments)
        assert ran.returncode == 0, ran.stderr
        said += ran.stdout
    return said


def test_a_service_and_a_device_work_by_the_documented_commands(tmp_path):
    mine = ("--folder", tmp_path / "mine")
    with service(tmp_path / "service", period=1, window=1) as live:
        assert run_process("device", "enrol", live.link, "--yes", *mine).returncode == 0
        said = run_until_reported("--at", "2.5,7.1", *mine)
        reported = [line for line in said.splitlines() if "reported, accepted" in line]
        t = int(reported[0].split()[1].rstrip(":"))
        summary = json.loads(live.release(t).with_suffix(".summary.json").read_text())
        assert summary["n_reports"] == 1
        left = run_process("device", "leave", *mine)
        assert left.stdout.startswith("the curator has forgotten this device"), left.stderr


def test_a_restart_with_other_privacy_settings_is_refused_until_the_owner_agrees(tmp_path):
    mine, settings = ("--folder", tmp_path / "mine"), {"period": 1, "window": 4}
    with service(tmp_path / "service", **settings) as live:
        port = int(live.url.rpartition(":")[2])
        assert run_process("device", "enrol", live.link, "--yes", *mine).returncode == 0
    with service(tmp_path / "service", port=port, new_campaign=True, epsilon=2) as live:
        refused = run("device", "run", "--at", "2,7", "--rounds", "2", *mine)
        assert_one_line(refused, "promises something else", "retrasyn device accept")
        agreed = run("device", "accept", "--yes", *mine)
        assert agreed.code == 0, agreed.err
        assert "2-differentially private" in agreed.out
        said = run_until_reported("--at", "2,7", *mine)
        assert "quarantine (the campaign changed)" in said.splitlines()[0]
