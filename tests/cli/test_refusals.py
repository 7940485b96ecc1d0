"""What stands in the way of any command: names, places, permissions, full disks, Ctrl-C."""

import functools
import os
import re
import subprocess

import pytest

from retrasyn.cli import installation, pages
from retrasyn.client import owner
from retrasyn.data import reading_files, validation
from retrasyn.data.trajectories import Trajectories
from retrasyn.receipts import verify
from retrasyn.simulation import city as cities
from retrasyn.simulation import stream
from support import components
from support.command_line import (
    COMMAND,
    TWO_STREAMS,
    Outcome,
    assert_one_line,
    assert_refused,
    contents,
    environment,
    run,
    run_command,
    write_table,
)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A file, what was made of it, and lines for a stream, in the folder where one stands."""
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "real.csv", TWO_STREAMS)
    flags = ("--box", "0,0,1,1", "--quiet", "--no-ledger")
    done = run("synthesize", "real.csv", "-o", "made.csv", *flags)
    assert done.code == 0, done.err
    (tmp_path / "lines.jsonl").write_text('{"t": 0, "traj_id": [7], "x": [0.1], "y": [0.2]}\n')
    return tmp_path


SYNTHESIZE = ("synthesize", "real.csv", "--box", "0,0,1,1")


@pytest.mark.parametrize(
    "arguments",
    [
        (*SYNTHESIZE, "-o", "real.csv"),
        (*SYNTHESIZE, "-o", "out.csv", "--errors", "real.csv"),
        (*SYNTHESIZE, "-o", "out.csv", "--errors", "./out.csv"),
        (*SYNTHESIZE, "-o", "linked.csv"),
        ("convert", "real.csv", "-o", "linked.csv"),
        ("stream", "lines.jsonl", "--box", "0,0,1,1", "--receipt", "lines.jsonl"),
        ("fleet", "real.csv", "--record", "real.csv"),
    ],
    ids=" ".join,
)
def test_no_output_takes_the_place_of_another_file_of_the_command(files, arguments):
    os.link("real.csv", "linked.csv")

    assert_refused(files, arguments, "itself", "name another file")


@pytest.mark.parametrize("page", ["made.csv", "made.csv.receipt.json", "page"])
def test_a_receipt_as_a_page_takes_no_place_of_data(files, page):
    arguments = ("receipt", "show", "made.csv.receipt.json", "--html", page)

    assert_refused(files, arguments, page, ".html", "retrasyn help receipts")


@pytest.mark.system
@pytest.mark.parametrize("words", [("validate",), (*SYNTHESIZE[:1], "-o", "out.csv")], ids=str)
def test_a_name_that_is_no_text_is_refused(files, words):
    (files / "\udcff.csv").write_bytes((files / "real.csv").read_bytes())

    assert_one_line(run_command(*words, "\udcff.csv"), r"\udcff.csv", "UTF-8", "rename")


def test_data_beside_a_receipt_that_is_only_shown_is_refused(files):
    arguments = ("receipt", "show", "made.csv.receipt.json", "--data", "made.csv")

    assert_refused(files, arguments, "--data", "--html", "retrasyn receipt verify")


def test_a_method_without_a_name_is_refused(files):
    assert_refused(files, (*SYNTHESIZE, "-o", "out.csv", "--method", ""), "method ''", "steered")


def test_a_number_of_shards_nobody_has_is_refused(files):
    assert_refused(files, (*SYNTHESIZE, "-o", "out.csv", "--shards", "9" * 20), "--shards", "10000")


def test_a_wrong_choice_is_refused_with_the_right_ones():
    done = run(*SYNTHESIZE, "-o", "out.csv", "--unit", "metre")

    assert_one_line(done, "'--unit': 'metre' is not one of 'position', 'transition'; see")


@pytest.mark.system
def test_a_full_disk_behind_the_output_is_one_clear_line():
    with open("/dev/full", "w") as full:  # noqa: PTH123 - no file
        done = subprocess.run(
            [COMMAND, "methods"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )

    assert_one_line(Outcome(done.returncode, "", done.stderr), "No space left on device")


@pytest.mark.system
def test_a_terminal_with_few_letters_is_no_reason_to_fail():
    done = run_command("help", "audit", PYTHONIOENCODING="ascii")

    assert (done.code, done.err) == (0, "")


# permissions


@functools.cache
def ordinary():
    """Return the command that runs another one without the right to read and write everything."""
    if os.geteuid() != 0:
        return []
    program = components.need("setpriv", package="util-linux")
    return [str(program), "--bounding-set=-dac_override,-dac_read_search"]


@pytest.mark.system
@pytest.mark.parametrize(
    "arguments",
    [
        ("synthesize", "closed.csv", "-o", "out.csv"),
        ("stream", "closed.csv", "--box", "0,0,1,1"),
        ("validate", "closed.csv"),
        ("convert", "closed.csv", "-o", "out.csv"),
        ("evaluate", "real.csv", "closed.csv"),
        ("compare", "closed.csv", "real.csv"),
        ("watch", "closed.csv"),
        ("fleet", "closed.csv"),
        ("receipt", "show", "closed.csv"),
        ("receipt", "verify", "closed.csv.receipt.json"),
        ("receipt", "show", "closed.csv.receipt.json", "--html", "page.html"),
        ("reproduce", "table1", "--data", "tdrive=closed.csv", "--only", "tdrive", "--quiet"),
        ("invite", "--server", "http://127.0.0.1:9", "--operator-token", "closed.csv"),
        ("device", "run", "--csv", "closed.csv"),
        ("serve", "--config", "closed.csv"),
    ],
    ids=" ".join,
)
def test_a_file_without_permission_is_one_clear_line(files, arguments):
    (files / "made.csv").rename("closed.csv")
    (files / "made.csv.receipt.json").rename("closed.csv.receipt.json")
    (files / "closed.csv").chmod(0)

    done = subprocess.run(
        [*ordinary(), COMMAND, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )

    assert_one_line(Outcome(done.returncode, done.stdout, done.stderr), "closed.csv", "; see retra")
    assert not (files / "out.csv").exists()
    assert not (files / "page.html").exists()


# Ctrl-C


def interrupted(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("arguments", "place", "name"),
    [
        ((*SYNTHESIZE, "-o", "out.csv", "--no-ledger"), Trajectories, "blocks"),
        (("stream", "lines.jsonl", "--box", "0,0,1,1"), stream.Live, "step"),
        (("validate", "real.csv"), validation, "validate"),
        (("convert", "real.csv", "-o", "out.csv"), Trajectories, "blocks"),
        (("evaluate", "real.csv", "made.csv"), reading_files, "read"),
        (("compare", "real.csv", "made.csv"), reading_files, "read"),
        (("receipt", "verify", "made.csv.receipt.json"), verify, "verify"),
        (("demo", "--out", "out"), cities, "demo_city"),
        (("doctor",), installation, "examine"),
        (("device", "status"), owner, "Owned"),
        (("help",), pages, "find_pages"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_ctrl_c_is_one_line_and_leaves_nothing(files, monkeypatch, arguments, place, name):
    before = contents(files)
    monkeypatch.setattr(place, name, interrupted)

    done = run(*arguments)

    assert (done.code, done.out) == (130, "")
    assert re.fullmatch("stopped: .+\n", done.err)
    assert {path: held for path, held in contents(files).items() if held is not None} == before
