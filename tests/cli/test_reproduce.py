"""``retrasyn reproduce``: tables and plots, in one sitting or several, and what is refused."""

import re
import signal
import subprocess
import time

import pytest

import retrasyn
from support.command_line import (
    COMMAND,
    PATIENCE,
    assert_refused,
    contents,
    environment,
    run,
)

pytestmark = pytest.mark.system

STUDY = ("reproduce", "table4", "--only", "tdrive", "--seeds", "2")


@pytest.fixture(scope="session")
def taxis(tmp_path_factory):
    """A small city that passes for T-Drive."""
    path = tmp_path_factory.mktemp("taxis") / "taxis.parquet"
    retrasyn.write(retrasyn.demo_city(n_users=500, n_timestamps=40, seed=4), path)
    return path


@pytest.fixture(scope="session")
def whole(tmp_path_factory, taxis):
    """A study run in one sitting."""
    folder = tmp_path_factory.mktemp("whole")
    outcome = run(*STUDY, "--data", f"tdrive={taxis}", "--out", folder, "--jobs", 1)
    assert outcome.code == 0, outcome
    return folder, outcome


def results(folder):
    """Return everything that must not depend on when or where it was run."""
    kept = {
        name: data
        for name, data in contents(folder).items()
        if name.endswith((".md", ".svg", ".png")) or name == "data.json"
    }
    rows = (folder / "cells.csv").read_text().splitlines()
    return kept, [row.rpartition(",")[0] for row in rows]  # the last column is the time it took


def test_a_study_leaves_results_a_table_and_plots(whole, taxis):
    folder, outcome = whole
    written = [str(folder / f"table4.{end}") for end in ("md", "svg", "png")]
    assert outcome.out.split()[-3:] == written
    assert re.search(r"Density error .*│ +\d\.\d{3} ± \d\.\d{3}", outcome.out), "its table is shown"
    quiet = run(*STUDY, "--data", f"tdrive={taxis}", "--out", folder, "--quiet")
    assert quiet.out.split() == written
    assert (folder / "table4.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "table4.svg").read_text()[:1000]
    text = (folder / "table4.md").read_text()
    assert "noeq-b" in text
    assert "±" in text
    assert len((folder / "cells.csv").read_text().splitlines()) == 1 + 7 * 2


def test_what_was_run_is_not_run_again(whole, taxis):
    folder, _ = whole
    before = results(folder)
    outcome = run(*STUDY, "--data", f"tdrive={taxis}", "--out", folder)
    assert outcome.code == 0
    assert "runs" not in outcome.err
    assert results(folder) == before


def test_fewer_seeds_show_fewer_seeds(whole, taxis, tmp_path):
    folder, _ = whole
    (tmp_path / "cells.csv").write_bytes((folder / "cells.csv").read_bytes())
    arguments = (*STUDY[:-1], 1, "--data", f"tdrive={taxis}", "--out", tmp_path)
    assert run(*arguments).code == 0
    assert (tmp_path / "table4.md").read_text() != (folder / "table4.md").read_text()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_stopped_and_started_again_it_gives_the_same(whole, taxis, tmp_path, how):
    arguments = [*STUDY, "--data", f"tdrive={taxis}", "--out", str(tmp_path)]
    process = subprocess.Popen(
        [COMMAND, *arguments, "--jobs", "2"], stderr=subprocess.PIPE, text=True, env=environment()
    )
    deadline = time.monotonic() + PATIENCE
    cells = tmp_path / "cells.csv"
    while time.monotonic() < deadline and not (
        cells.exists() and cells.read_text().count("\n") >= 3
    ):
        time.sleep(0.02)
    process.send_signal(how)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode in (-signal.SIGKILL, 130)
    done = cells.read_text().count("\n") - 1
    assert 0 < done < 14
    assert not (tmp_path / "table4.md").exists()
    if how == signal.SIGINT:
        assert "kept in" in err
        assert "Traceback" not in err
    assert run(*arguments, "--jobs", 1).code == 0
    assert results(tmp_path) == results(whole[0])


def test_table1_needs_no_run(taxis, tmp_path):
    arguments = ("reproduce", "table1", "--only", "tdrive", "--data", f"tdrive={taxis}")
    outcome = run(*arguments, "--out", tmp_path)
    assert outcome.code == 0
    text = (tmp_path / "table1.md").read_text()
    assert "232,640" in text  # published
    assert f"{retrasyn.read(taxis).n_points:,}" in text
    assert not (tmp_path / "cells.csv").exists()


def test_times_name_the_machine(taxis, tmp_path):
    arguments = ("reproduce", "table5", "--only", "tdrive", "--data", f"tdrive={taxis}")
    assert run(*arguments, "--out", tmp_path).code == 0
    machine = (tmp_path / "machine.txt").read_text().strip()
    assert "cores" in machine
    assert machine in (tmp_path / "table5.md").read_text()


def test_results_of_other_data_are_not_mixed(whole, city):
    folder, _ = whole
    before = contents(folder)
    outcome = run(*STUDY, "--data", f"tdrive={city}", "--out", folder)
    assert outcome.code == 2
    assert "holds results of another file called tdrive" in outcome.err
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["table2"], ["unknown study 'table2'", "table3"]),
        (["table3", "--data", "tdrive"], ["is not NAME=FILE"]),
        (["table3", "--data", "tdrive=missing.csv"], ["no such file"]),
        (["table3", "--data", "paris=x.csv"], ["unknown data set 'paris'"]),
        (["table3", "--data", "tdrive=a", "--data", "tdrive=b"], ["twice"]),
        (["window", "--only", "sanjoaquin"], ["this is about tdrive, oldenburg"]),
        (["table3", "--seeds", "0"], ["--seeds 0"]),
        (["table3", "--seeds", "9" * 20], ["--seeds 9", "at most 1000"]),
        (["table3", "--jobs", "0"], ["--jobs 0"]),
        (["table3", "--jobs", "1001"], ["--jobs 1001", "at most 1000"]),
        (["table3", "--epsilon", "nan"], ["--epsilon nan"]),
        (["table3", "--epsilon", "0"], ["--epsilon 0"]),
        (["table3", "--network", "tdrive=x"], ["recorded, not generated"]),
    ],
)
def test_wrong_arguments_are_refused(tmp_path, arguments, names):
    assert_refused(tmp_path, ["reproduce", *arguments, "--out", tmp_path / "out"], *names)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    arguments = ["reproduce", "table1", "--quick", "--out", tmp_path / "file" / "out"]
    assert_refused(tmp_path, arguments, "cannot be made", "--out")


def test_an_empty_data_file_is_refused(tmp_path):
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    arguments = ("reproduce", "table4", "--data", f"tdrive={empty}", "--only", "tdrive")
    outcome = run(*arguments, "--out", tmp_path / "out")
    assert outcome.code == 2
    assert outcome.err.splitlines()[-1].startswith("error: ")
    assert str(empty) in outcome.err
