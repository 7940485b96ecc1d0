"""The script that compares two trees finds no difference in one, and every one that there is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from retrasyn.cli import app

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "docs" / "making" / "same_bytes.py"
sys.path.insert(0, str(SCRIPT.parent))
import same_bytes  # noqa: E402 - a script beside the documents

A_FEW = ("vectors/*", "city/retrasyn-p/*/counts/0", "city/lbd/grr/*", "checkpoint/lpa")


@pytest.fixture
def recorded(tmp_path):
    """Record a few things of this tree."""

    def record():
        parts = [same_bytes.record(ROOT, None, tmp_path, only) for only in A_FEW]
        return {name: value for part in parts for name, value in part.items()}

    return record


def test_a_tree_makes_the_same_twice(recorded, capsys):
    once, again = recorded(), recorded()

    assert same_bytes.compare(once, again) == []
    assert {name.partition("/")[0] for name in once} == {"vectors", "city", "checkpoint"}
    assert once["city/lbd/grr/counts/0"].startswith("refused: lbd foresees")
    assert once["checkpoint/lpa/as the whole run"] == "True"
    assert same_bytes.tell(once, again) == 0
    assert f"{len(once):6,} compared, 0 differ" in capsys.readouterr().out


def test_what_changed_came_or_went_is_found(capsys):
    before = {"city/a": "1", "city/b": "2", "stream/c": "3"}
    after = {"city/a": "1", "city/b": "4", "stream/d": "3"}

    assert same_bytes.compare(before, after) == [
        "city/b: 2 became 4",
        "stream/c: 3 became missing",
        "stream/d: missing became 3",
    ]
    assert same_bytes.tell(before, after) == 1
    assert "     4 compared, 3 differ" in capsys.readouterr().out


def test_what_is_wrong_in_both_trees_is_found():
    found = {"checkpoint/a/as the whole run": "False", "command/b": "failed: OSError: full"}

    assert same_bytes.tell(found, found) == 1


def test_only_what_differs_from_run_to_run_is_replaced():
    text = f'{{"at": "http://127.0.0.1:8701", "in": "{ROOT}/x", "slowest": 0.25, "n": 0.25}}'

    plain = same_bytes.normalise(text, ROOT)

    assert plain == '{"at": "ADDRESS", "in": "FOLDER/x", "slowest": MEASURED, "n": 0.25}'


@pytest.mark.system
def test_two_trees_are_run_by_processes_of_their_own(tmp_path):
    words = ("--before", ROOT, "--after", ROOT, "--keep", tmp_path, "--only", "vectors/*")

    done = subprocess.run(
        [sys.executable, SCRIPT, *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": "elsewhere"},
    )

    assert "6 compared, 0 differ" in done.stdout
    assert "left out: T-Drive" in done.stdout


def test_every_command_with_json_is_compared():
    def commands(command, words=()):
        if any("--json" in parameter.opts for parameter in command.params):
            yield words
        for name, below in getattr(command, "commands", {}).items():
            yield from commands(below, (*words, name))

    compared = [*same_bytes.COMMANDS.values(), *(name.split() for name in same_bytes.SERVED)]
    for words in commands(typer.main.get_command(app)):
        assert any(tuple(run[: len(words)]) == words for run in compared), words
