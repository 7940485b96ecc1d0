"""`retrasyn plan`: what a planner reads, and what is refused."""

import functools
import json
import sys

import pytest

from retrasyn.planning import forecast as module
from support.command_line import run


@pytest.fixture
def short(monkeypatch):
    """Simulate a few timestamps only."""
    monkeypatch.setattr(module, "forecast", functools.partial(module.forecast, n_timestamps=4))


def test_closed_forms_come_at_once():
    done = run("plan", "--users", 2100, "--no-simulation")
    assert done.code == 0
    assert "about 45 reports of states and 45 of cells, each with epsilon 1" in done.out
    assert "known to +- 29 %" in done.out
    assert "need the simulation" in done.out
    assert "206" in done.out


def test_a_plan_shows_errors_a_grid_changes_and_totals(short):
    done = run("plan", "--users", 50000, "--method", "uniform-p", "--period", "1h")
    assert done.code == 0
    assert "Recommended: --grid" in done.out
    assert "two built-in cities" in done.out
    assert "each for" in done.out
    assert "twice the window" in done.out
    assert "a timestamp every 1h" in done.out
    assert "grow without end" in done.out
    assert "…" not in done.out, "no figure is cut short"


def test_json_and_nothing_else(short):
    done = run("plan", "--users", 300, "--method", "uniform-b", "--json", "--period", "1h")
    values = json.loads(done.out)
    assert done.err == ""
    assert values["period"] == 3600
    assert values["lifetime"][0] == {
        "span": "a day",
        "n_timestamps": 24,
        "n_windows": 2,
        "epsilon": 2.0,
    }
    assert values["recommended"] in [row["side"] for row in values["rows"]]


def test_a_plot_is_written(short, tmp_path):
    path = tmp_path / "plan.svg"
    done = run("plan", "--users", 300, "--method", "uniform-b", "--plot", path)
    assert done.out.endswith(f"plot: {path}\n")
    assert path.read_text().rstrip().endswith("</svg>")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--users", "0"], "users=0 must be 1 to"),
        (["--users", "many"], "many"),
        ([], "Missing option '--users'"),
        (["--users", "5", "--epsilon", "0"], "epsilon=0"),
        (["--users", "5", "--window", "0"], "window=0"),
        (["--users", "5", "--method", "exact"], "exact is not private"),
        (["--users", "5", "--period", "soon"], "'soon' is not a length of time"),
        (["--users", "5", "--plot", "plan.pdf"], "use .svg or .png"),
        (["--users", "5", "--plot", "plan.svg", "--no-simulation"], "leave --no-simulation away"),
    ],
)
def test_what_cannot_be_planned_is_one_line(arguments, says):
    done = run("plan", *arguments)
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert says in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_a_missing_plotting_library_is_said_before_anything_is_computed(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = run("plan", "--users", 5, "--plot", "plan.svg")
    assert (done.code, done.err) == (
        2,
        'error: matplotlib is not installed: pip install "retrasyn[report]"\n',
    )


def test_an_interrupt_leaves_nothing_behind(monkeypatch, tmp_path):
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run_trial", interrupted)
    monkeypatch.setattr(module, "forecast", functools.partial(module.forecast, n_timestamps=4))
    done = run("plan", "--users", 5, "--plot", tmp_path / "plan.svg")
    assert done.code == 130
    assert done.err.startswith("stopped: nothing was written\n")
    assert "Traceback" not in done.err
    assert not list(tmp_path.iterdir())
