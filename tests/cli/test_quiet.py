"""``--quiet`` and ``--json``: the same words and the same meaning wherever they are."""

import functools
import json

import pytest
import typer

from retrasyn.cli import app
from retrasyn.simulation import city as cities
from support.command_line import run

pytestmark = pytest.mark.system


def options_of(*words):
    command = typer.main.get_command(app)
    for word in words:
        command = command.commands[word]
    return {option for parameter in command.params for option in parameter.opts}


BOTH = [
    *("synthesize", "convert", "validate", "generate", "evaluate", "compare", "plan", "demo"),
    *("reproduce", "fleet", "audit", "audit window", "receipt verify", "doctor"),
]
JSON_ONLY = ["methods", "roads", "invite", "device status", "receipt show"]
QUIET_ONLY = ["serve", "gateway", "device run"]


@pytest.mark.parametrize("name", BOTH + JSON_ONLY)
def test_json_is_where_there_are_figures(name):
    assert "--json" in options_of(*name.split())


@pytest.mark.parametrize("name", BOTH + QUIET_ONLY)
def test_quiet_is_where_there_is_something_to_leave_out(name):
    assert "--quiet" in options_of(*name.split())


@pytest.fixture
def made(city, tmp_path):
    """A synthetic file with its receipt."""
    out = tmp_path / "synthetic.parquet"
    done = run("synthesize", city, "-o", out, "--box", "0,0,10,10", "--quiet", "--no-ledger")
    assert (done.code, done.out, done.err) == (0, "", "")
    return out


def test_what_writes_files_says_nothing_when_it_shall_be_quiet(made, city, tmp_path, monkeypatch):
    monkeypatch.setattr(cities, "demo_city", functools.partial(cities.demo_city, n_users=60))
    for arguments in (
        ("convert", city, "-o", tmp_path / "converted.parquet"),
        ("generate", "--network", "city", "--steps", 5, "-o", tmp_path / "generated.parquet"),
        ("demo", "--out", tmp_path / "demo"),
    ):
        done = run(*arguments, "--quiet")
        assert (done.code, done.out, done.err) == (0, "", ""), arguments


def test_what_judges_says_it_by_its_exit_code(made, tmp_path):
    receipt = made.with_name(f"{made.name}.receipt.json")
    good = run("validate", made, "--box", "0,0,10,10", "--quiet")
    bad = run("validate", made, "--box", "0,0,1,1", "--quiet")
    holds = run("receipt", "verify", receipt, "--quiet")
    made.write_bytes(made.read_bytes() + b" ")
    broken = run("receipt", "verify", receipt, "--quiet")

    assert [one.code for one in (good, bad, holds, broken)] == [0, 2, 0, 1]
    assert {one.out + one.err for one in (good, bad, holds, broken)} == {""}


def test_json_wins_over_quiet(made, city):
    for arguments in (
        ("evaluate", city, made),
        ("compare", city, made),
        ("validate", made, "--box", "0,0,10,10"),
        ("receipt", "verify", made.with_name(f"{made.name}.receipt.json")),
        ("plan", "--users", 100, "--no-simulation"),
        ("audit", "--reports", 1000),
        ("doctor",),
    ):
        done = run(*arguments, "--json", "--quiet")
        assert json.loads(done.out), arguments


def test_the_figures_of_the_demo_can_be_had_as_json(tmp_path, monkeypatch):
    monkeypatch.setattr(cities, "demo_city", functools.partial(cities.demo_city, n_users=60))

    done = run("demo", "--out", tmp_path / "demo", "--json")

    facts = json.loads(done.out)
    assert facts["files"] == sorted(path.name for path in (tmp_path / "demo").iterdir())
    assert facts["worst_window"] <= facts["epsilon"]
    assert facts["scores"]


def test_a_demo_that_goes_on_has_no_figures():
    for option in ("--json", "--quiet"):
        assert run("demo", "--live", option).code == 2
        assert run("demo", "--devices", 20, option).code == 2


def test_a_receipt_is_shown_as_the_json_it_is(made):
    place = made.with_name(f"{made.name}.receipt.json")

    assert json.loads(run("receipt", "show", place, "--json").out) == json.loads(place.read_text())
    refused = run("receipt", "show", place, "--json", "--html", made.with_name("page.html"))
    assert refused.code == 2
