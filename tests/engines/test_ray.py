"""A cluster of two nodes makes the bytes of one process, also when one of them is lost."""

import importlib.util
import os
from pathlib import Path

import pytest

from support import components
from support.command_line import assert_one_line, run
from support.namespaces import run_in_namespace

pytestmark = pytest.mark.system

DATA = os.environ.get("RETRASYN_DATA")


def run_on_ray(*arguments, **options):
    if importlib.util.find_spec("ray") is None:
        components.give_up("ray is missing, and not every Python has a wheel: pip install ray")
    return run_in_namespace("-m", "support.ray_runs", *arguments, **options)


@pytest.fixture(scope="module")
def found():
    return run_on_ray("quick")


@pytest.mark.parametrize(
    ("method", "counts"),
    [
        ("steered", ["1", "4"]),
        ("retrasyn-p", ["2"]),
        ("steered-map", ["2"]),
        ("steered-roads", ["2"]),
    ],
)
def test_any_number_of_actors_makes_the_bytes_of_one_process(found, method, counts):
    digests = found["bytes"][method]
    assert list(digests) == ["local", *counts]
    assert len(set(digests.values())) == 1


def test_parts_written_by_shards_are_the_one_file_although_a_machine_was_killed(found):
    assert found["parts"]["n_machines"] == [2]
    assert found["parts"]["n_revived"] >= 1
    assert found["parts"]["same"]
    assert found["parts"]["n_files"] == 6


def test_a_worker_without_its_saves_is_an_error_and_not_a_new_beginning(found):
    assert "holds no save it can begin from" in found["lost"]
    assert "name a shared one" in found["lost"]


def test_what_fails_in_a_worker_fails_here(found):
    assert found["failing"] == "on purpose"


def test_four_actors_add_reports_up_exactly(found):
    sums = found["sums"]
    assert (sums["same"], sums["again"], sums["n"]) == (True, True, 300_000)
    assert sums["half"] == 150_000
    assert sums["n_revived"] == 1


def test_a_service_on_the_cluster_recovers_to_the_same_files(found):
    assert found["service"] == {"same": True, "n_files": 27}


def test_tasks_run_on_the_cluster(found):
    assert found["tasks"] == "b"


@pytest.mark.long
def test_five_million_reports_add_up_exactly_in_four_actors():
    sums = run_on_ray("sums")["sums"]
    assert (sums["same"], sums["again"], sums["n"]) == (True, True, 5_000_000)


@pytest.mark.long
@pytest.mark.skipif(DATA is None, reason="RETRASYN_DATA names no folder with tdrive.parquet")
def test_recorded_taxis_come_out_the_same_on_one_two_and_four_actors():
    found = run_on_ray(Path(DATA) / "tdrive.parquet", patience=3600)
    for digests in found["bytes"].values():
        assert len(set(digests.values())) == 1
    assert found["killed"]["same"]
    assert found["killed"]["n_revived"] >= 1


@pytest.fixture
def without_ray(monkeypatch):
    """Let ray be as if it was not installed."""
    import sys

    for name in [name for name in sys.modules if name == "ray" or name.startswith("ray.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "retrasyn.engines.ray", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)


@pytest.mark.parametrize(
    "command",
    [
        ["synthesize", "trips.csv", "-o", "out.parquet", "--engine", "ray"],
        ["reproduce", "table5", "--quick", "--engine", "ray"],
        ["serve", "--engine", "ray", "--port", "0"],
    ],
    ids=lambda command: command[0],
)
def test_without_ray_one_line_says_what_to_type(without_ray, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trips.csv").write_text("traj_id,t,x,y\n1,0,0.1,0.1\n1,1,0.2,0.2\n")
    outcome = run(*command)
    assert_one_line(outcome, 'ray is not installed: pip install "retrasyn[ray]"')
