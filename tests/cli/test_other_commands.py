"""`retrasyn` alone, its version, `methods`, `demo`, and what is not a command."""

import functools
import json
import subprocess
import sys

import numpy as np
import pytest

from retrasyn import METHODS, __version__
from retrasyn.simulation import city
from support.command_line import (
    COMMAND,
    PATIENCE,
    assert_is_stream,
    assert_one_line,
    contents,
    environment,
    points_per_timestamp,
    read_table,
    run,
    run_command,
)


@pytest.mark.system
def test_the_version_is_that_of_the_package():
    outcome = run_command("--version")

    assert (outcome.code, outcome.out, outcome.err) == (0, f"retrasyn {__version__}\n", "")


@pytest.mark.system
def test_the_command_runs_as_a_module_too():
    ended = subprocess.run(
        [sys.executable, "-m", "retrasyn", "--version"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env=environment(),
    )

    assert (ended.returncode, ended.stdout) == (0, f"retrasyn {__version__}\n")


def test_the_help_lists_the_commands():
    outcome = run("--help")

    assert (outcome.code, outcome.err) == (0, "")
    for name in ("synthesize", "stream", "methods", "demo"):
        assert name in outcome.out


@pytest.mark.parametrize("command", ["synthesize", "stream", "methods", "demo"])
def test_every_command_has_a_help(command):
    outcome = run(command, "--help")

    assert (outcome.code, outcome.err) == (0, "")
    assert f"retrasyn {command}" in outcome.out


@pytest.mark.parametrize(
    "flag",
    [
        *("--out", "--method", "--epsilon", "--window", "--grid", "--box", "--unit", "--ledger"),
        *("--jump", "--length-scale", "--outside", "--faithful", "--set", "--seed", "--json"),
        *("--checkpoint", "--resume"),
    ],
)
def test_the_help_of_synthesize_names_every_promised_flag(flag):
    assert flag in run("synthesize", "--help").out


WRONG = {
    "an unknown command": (("synthesise",), ("synthesise", "retrasyn --help")),
    "an unknown flag": (("--verbose",), ("--verbose", "retrasyn --help")),
    "an unknown flag of methods": (("methods", "--all"), ("--all", "retrasyn methods --help")),
    "an argument of methods": (("methods", "exact"), ("exact", "retrasyn methods --help")),
    "an unknown flag of demo": (("demo", "--size", 3), ("--size", "retrasyn demo --help")),
    "a flag without its value": (("demo", "--out"), ("--out", "--help")),
    "a word for a seed": (("demo", "--seed", "luck"), ("luck", "--seed")),
    "a negative seed": (("demo", "--seed", -1), ("-1", "seed")),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_command_line_is_refused_in_one_line(case, tmp_path, monkeypatch):
    arguments, names = WRONG[case]
    monkeypatch.chdir(tmp_path)

    outcome = run(*arguments)

    assert_one_line(outcome, *names)
    assert outcome.out == ""
    assert contents(tmp_path) == {}


@pytest.mark.system
def test_a_wrong_flag_of_the_real_command_shows_no_traceback():
    assert_one_line(run_command("synthesize", "--nope"), "--nope", "retrasyn synthesize --help")


@pytest.mark.system
def test_the_command_line_needs_no_package_that_is_not_declared():
    alone = (
        "import sys; sys.modules['click'] = None; from retrasyn.cli import main; main(['methods'])"
    )

    ended = subprocess.run(
        [sys.executable, "-c", alone],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env=environment(),
    )

    assert (ended.returncode, ended.stderr) == (0, "")


# methods


def test_methods_lists_every_method_with_one_line_each():
    outcome = run("methods")

    assert (outcome.code, outcome.err) == (0, "")
    listed = [line.split(maxsplit=1) for line in outcome.out.splitlines()]
    assert listed == [[row.name, row.summary] for row in METHODS.values()]


def test_methods_can_be_had_as_json():
    outcome = run("methods", "--json")

    assert json.loads(outcome.out) == {row.name: row.summary for row in METHODS.values()}


@pytest.mark.system
def test_a_reader_who_leaves_sees_no_traceback():
    with subprocess.Popen(
        [COMMAND, "methods"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        process.stdout.close()
        said = process.stderr.read()

    assert said == b""
    assert process.returncode == 1


# demo


@pytest.fixture
def small_city(monkeypatch):
    """The demo's city with few commuters."""
    monkeypatch.setattr(city, "demo_city", functools.partial(city.demo_city, n_users=300))


def test_the_demo_leaves_a_picture_both_streams_and_a_receipt(small_city, tmp_path):
    out = tmp_path / "shown" / "here"

    outcome = run("demo", "--out", out)

    assert (outcome.code, outcome.err) == (0, "")
    assert sorted(path.name for path in out.iterdir()) == [
        *("real.parquet", "real.roads.geojson", "report.html"),
        *("synthetic.parquet", "synthetic.parquet.receipt.json"),
    ]
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    synthetic = read_table(out / "synthetic.parquet")
    assert_is_stream(synthetic, box=(0, 0, 10, 10), side=6)
    real = read_table(out / "real.parquet")
    assert points_per_timestamp(synthetic["t"]) == points_per_timestamp(real["t"])
    receipt = json.loads((out / "synthetic.parquet.receipt.json").read_text())
    assert (receipt["epsilon"], receipt["window"], receipt["grid"]) == (1, 20, 6)


def test_the_demo_says_what_happened_and_what_is_protected(small_city, tmp_path):
    outcome = run("demo", "--out", tmp_path)

    for part in ("What happened", "What is protected", "What is not", "300 simulated commuters"):
        assert part in outcome.out
    assert str(tmp_path / "report.html") in outcome.out


def test_the_demo_drives_on_the_public_streets_of_its_city(small_city, tmp_path):
    outcome = run("demo", "--out", tmp_path)

    n_streets = city.city_roads().n_edges
    receipt = json.loads((tmp_path / "synthetic.parquet.receipt.json").read_text())
    assert receipt["method"] == "steered-roads"
    assert receipt["public_map"]["source"] == "roads of real.roads.geojson"
    assert (
        f"The map of the city is public: the trips drive on its\n  {n_streets} streets."
        in outcome.out
    )
    assert "main flows that are the same" in outcome.out
    assert f"{n_streets} streets of the public map" in (tmp_path / "report.html").read_text()


def test_another_seed_is_another_city(small_city, tmp_path):
    run("demo", "--out", tmp_path / "one")
    run("demo", "--out", tmp_path / "two", "--seed", 5)

    one, two = (read_table(tmp_path / name / "real.parquet") for name in ("one", "two"))
    assert not np.array_equal(one["x"], two["x"])


def test_a_demo_that_cannot_be_written_is_refused(small_city, tmp_path):
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "below", "/proc/demo"):
        assert_one_line(run("demo", "--out", out), str(out))
    assert contents(tmp_path) == {"file": b"mine"}
