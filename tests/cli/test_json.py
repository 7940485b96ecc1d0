"""The contract of `--json`: one JSON value with known fields and nothing else, from any command."""

import dataclasses
import functools
import json
import math
import time

import pytest
import typer

from retrasyn import METHODS, demo_city, write
from retrasyn.cli import app
from retrasyn.data.writing_roads import write_roads
from retrasyn.metrics.suite import METRICS
from retrasyn.privacy.receipt import Receipt
from retrasyn.simulation import city as cities
from support.command_line import run, write_table
from support.plain_curator import PlainCurator, serving, small_campaign

pytestmark = pytest.mark.system

BOX = ("--box", "0,0,10,10")
RUNS = {
    "synthesize": ("real.parquet", "-o", "new.parquet", *BOX, "--no-ledger"),
    "methods": (),
    "evaluate": ("real.parquet", "made.parquet"),
    "compare": ("real.parquet", "made.parquet", "real.parquet"),
    "convert": ("real.parquet", "-o", "new.parquet"),
    "validate": ("real.parquet", *BOX),
    "suggest": ("real.parquet", "--epsilon", 4),
    "generate": (
        *("--network", "city", "--objects", 50, "--new", 5, "--steps", 5),
        *("-o", "new.parquet"),
    ),
    "export": ("real.parquet", "--to", "pmtiles", "-o", "new.pmtiles"),
    "roads": ("roads.geojson",),
    "demo": ("--out", "demo"),
    "plan": ("--users", 100, "--no-simulation"),
    "reproduce": ("table1", "--only", "tdrive", "--data", "tdrive=real.parquet", "--out", "new"),
    "fleet": (
        *("walk.csv", "--server", "URL", "--folder", "fleet", "--operator-token", "token"),
        *("--rounds", 3),
    ),
    "invite": (2, "--server", "URL", "--operator-token", "token"),
    "doctor": (),
    "audit": ("--reports", 2000),
    "audit window": ("--runs", 100),
    "receipt show": ("made.parquet.receipt.json",),
    "receipt verify": ("made.parquet.receipt.json",),
    "device status": ("--folder", "mine"),
}
"""What each command that has the option is run with."""

SCORES = {metric.key for metric in METRICS}
RECEIPT = {field.name for field in dataclasses.fields(Receipt)} | {"retrasyn_version"}
FIELDS = {
    "synthesize": RECEIPT,
    "methods": set(METHODS),
    "evaluate": SCORES,
    "compare": {"made", "real"},
    "convert": {
        *("n_fixes", "n_points", "n_users", "n_streams", "mean_length", "n_timestamps"),
        *("n_outside", "n_duplicates", "n_skipped", "n_unprojectable", "clock", "crs"),
        *("understood", "warnings"),
    },
    "validate": {
        *("usable", "counts", "active", "extent", "outlook", "grid", "faults", "notes"),
    },
    "suggest": {
        *("every", "period", "as_recorded", "fold", "box", "outside", "grid", "window"),
        *("epsilon", "active", "outlook", "reasons", "options", "privacy", "commands"),
    },
    "generate": {"points", "streams", "mean_length", "steps", "nodes", "edges"},
    "export": {"out", "to", "said"},
    "roads": {
        *("n_nodes", "n_edges", "length", "by_class", "n_one_way", "n_stubs", "n_doubled"),
        *("n_left_out", "n_others", "n_cut", "box", "crs", "map"),
    },
    "demo": {
        *("folder", "files", "epsilon", "window", "worst_window", "scores", "streets"),
        *("shared_flows", "fine_density_errors", "verdict"),
    },
    "plan": {
        *("method", "n_users", "epsilon", "window", "gap", "noise", "rows", "changes", "lifetime"),
        *("n_timestamps", "recommended", "simulated_reports", "n_simulated", "period"),
        "outlook",
    },
    "fleet": {
        *("n_devices", "n_rounds", "n_missed", "n_reports", "n_heartbeats", "statuses"),
        *("slowest", "ledgers"),
    },
    "doctor": {"ok", "checks"},
    "audit": {
        *("oracle", "path", "epsilon", "epsilon_lower_bound", "alpha", "reports_per_input"),
        *("answers", "exact_ok", "marginals_ok", "independence_ok", "unbiased_ok", "variance_ok"),
        "violations",
    },
    "audit window": {
        *("unit", "window", "epsilon", "epsilon_lower_bound", "alpha", "runs_per_input"),
        *("violated", "attacks"),
    },
    "receipt show": RECEIPT,
    "receipt verify": {"ok", "checks"},
    "device status": {
        *("enrolled", "campaign", "server", "quarantine", "rounds_left", "spent", "lifetime_cap"),
        "stopped",
    },
}
"""The fields of those that print an object; the others print a list of texts."""
TELLS = {"reproduce"}  # says on standard error what it does, unless it shall be quiet


def commands(command, words=()):
    """Return the words that lead to every command with the option."""
    if any("--json" in parameter.opts for parameter in command.params):
        yield " ".join(words)
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*words, name))


@pytest.fixture(scope="module")
def standing(tmp_path_factory):
    """A folder with all files that the runs need, and the address of a curator."""
    folder = tmp_path_factory.mktemp("json")
    real = demo_city(n_users=60, n_timestamps=30, seed=1)
    write(real, folder / "real.parquet")
    walk = [(n, t, 1 + n, 1 + t / 2) for n in range(4) for t in range(3)]
    columns = zip(("traj_id", "t", "x", "y"), zip(*walk, strict=True), strict=True)
    write_table(folder / "walk.csv", {name: list(values) for name, values in columns})
    write_roads(cities.city_roads(), folder / "roads.geojson")
    (folder / "token").write_text("operator\n")
    made = folder / "made.parquet"
    assert run("synthesize", folder / "real.parquet", "-o", made, *BOX, "--quiet").code == 0
    campaign = small_campaign(period=1, window=1, epoch=int(time.time()))
    with serving(PlainCurator(campaign)) as curator:
        mine = ("--folder", folder / "mine", "--yes")
        assert run("device", "enrol", curator.link(), *mine).code == 0
        yield folder, curator.url


def one_value(text):
    """Read one JSON value, strictly."""

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def said(standing, monkeypatch):
    """Return what a command prints, once it is sure that it is JSON and nothing else."""
    folder, url = standing
    monkeypatch.chdir(folder)
    monkeypatch.setattr(cities, "demo_city", functools.partial(cities.demo_city, n_users=60))

    def ask(name, *more):
        words = [url if word == "URL" else word for word in RUNS[name]]
        done = run(*name.split(), *words, "--json", *more)
        assert done.code == 0, done.err
        return one_value(done.out), done.err

    return ask


def test_every_command_with_the_option_is_run_here():
    assert set(commands(typer.main.get_command(app))) == RUNS.keys()


@pytest.mark.parametrize("name", RUNS)
def test_a_command_prints_one_json_value_with_its_fields_and_nothing_else(said, name):
    value, err = said(name)

    if name in FIELDS:
        assert value.keys() == FIELDS[name]
    else:
        assert value
        assert all(isinstance(entry, str) for entry in value)
    assert err == "" or name in TELLS


@pytest.mark.parametrize("name", sorted(TELLS))
def test_quiet_leaves_the_json_alone(said, name):
    value, err = said(name, "--quiet")

    assert value
    assert err == ""


def test_links_are_a_list_of_links_good_for_once(said, standing):
    links, _ = said("invite")

    assert len(set(links)) == 2
    assert all(link.startswith(f"{standing[1]}/#enrol=") for link in links)


def test_the_status_of_a_device_says_what_was_spent_and_what_is_left(said, standing):
    status, _ = said("device status")

    assert (status["enrolled"], status["campaign"], status["server"]) == (True, "test", standing[1])
    assert 0 == status["spent"] < status["lifetime_cap"]
    assert (status["quarantine"] is None) == (status["rounds_left"] == 0)


def test_a_fleet_counts_what_became_of_what_it_sent(said):
    done, _ = said("fleet")

    assert (done["n_devices"], done["n_rounds"] + done["n_missed"] >= 3) == (4, True)
    assert sum(done["statuses"].values()) == done["n_reports"] + done["n_heartbeats"] > 0
    assert done["ledgers"].keys() == {"reports", "worst_window", "epsilon", "within"}
    assert done["ledgers"]["within"] is True


def test_the_files_of_a_reproduction_are_there(said, standing):
    files, _ = said("reproduce")

    assert [name for name in files if (standing[0] / name).is_file()] == files != []


def test_the_files_of_the_demo_are_those_it_made(said, standing):
    (standing[0] / "demo").mkdir(exist_ok=True)
    (standing[0] / "demo" / "other.txt").write_text("not of the demo")

    files = said("demo")[0]["files"]

    assert "other.txt" not in files
    assert all((standing[0] / "demo" / name).is_file() for name in files)
    assert len(files) == 5


def test_figures_that_are_none_are_null(tmp_path):
    one = {"traj_id": [1], "t": [0], "x": [0.5], "y": [0.5]}
    path = write_table(tmp_path / "one.csv", one)

    figures = one_value(run("evaluate", path, path, "--box", "0,0,1,1", "--json").out)

    assert None in figures.values()


def test_what_validate_finds_is_json_too(tmp_path):
    wrong = {"traj_id": [1, 1], "t": [0, 1], "x": [0.5, math.nan], "y": [0.5, math.inf]}
    path = write_table(tmp_path / "wrong.csv", wrong)

    done = run("validate", path, "--json")

    assert (done.code, done.err) == (2, "")
    assert one_value(done.out)["usable"] is False
