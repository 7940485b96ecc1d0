"""``retrasyn validate``: whether a file can be used, and what stands in the way."""

import json

import pytest

from retrasyn.data.metadata import Clock
from retrasyn.data.trajectories import Trajectories
from retrasyn.data.writing_files import write
from support.command_line import TWO_STREAMS, assert_refused, run, write_table


@pytest.fixture
def broken(tmp_path):
    """Two streams, the first with a gap, the second with a word and a point far away."""
    path = tmp_path / "broken.csv"
    path.write_text("traj_id,t,x,y\n1,0,0.1,0.1\n1,2,0.2,0.1\n2,1,[red],0.7\n2,2,7,0.7\n")
    return path


def test_a_usable_file_is_counted_and_ends_well(small):
    outcome = run("validate", small, "--box", "0,0,1,1", "--grid", 10)

    assert (outcome.code, outcome.err) == (0, "")
    assert "5 points, 2 streams, 3 timestamps, 0 jumps at grid 10" in outcome.out
    assert f"{small} can be used" in outcome.out


def test_what_is_wrong_is_named_with_its_row_and_cells(broken, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")

    outcome = run("validate", broken, "--box", "0,0,1,1")

    assert (outcome.code, outcome.err) == (2, "")
    for words in (
        "traj_id 1 goes from t=0 (row 1) to t=2",
        "row 3",
        "x='[red]' is no number",
        "traj_id=2, t=2, x=7, y=0.7",
        f"{broken} cannot be used as it is",
    ):
        assert words in outcome.out


def test_findings_are_printed_as_json_and_nothing_else(broken):
    outcome = run("validate", broken, "--box", "0,0,1,1", "--json")

    assert outcome.code == 2
    found = json.loads(outcome.out)
    assert not found["usable"]
    assert {fault["rule"]: fault["first"][0]["row"] for fault in found["faults"]} == {
        "kind": 3,
        "gap": 2,
        "outside": 4,
    }


def test_unsorted_rows_are_noted(tmp_path):
    columns = {name: column[::-1] for name, column in TWO_STREAMS.items()}

    outcome = run("validate", write_table(tmp_path / "in.parquet", columns))

    assert outcome.code == 0
    assert "note: rows are not sorted by (traj_id, t); synthesize sorts them" in outcome.out


def test_a_geoparquet_file_is_checked_too(tmp_path):
    clock = Clock("2008-02-02T00:00:00+00:00", 60.0)
    write(Trajectories.from_columns(**TWO_STREAMS, clock=clock), tmp_path / "in.geoparquet")

    assert run("validate", tmp_path / "in.geoparquet", "--json").code == 0


def test_what_is_no_file_is_refused_in_one_line(tmp_path):
    assert_refused(tmp_path, ["validate", tmp_path / "no.csv"], "no.csv", "does not exist")


def test_a_box_that_is_none_is_refused_in_one_line(small, tmp_path):
    assert_refused(tmp_path, ["validate", small, "--box", "0,0"], "0,0", "x0,y0,x1,y1")


def test_a_file_found_usable_is_synthesised(small, tmp_path):
    assert run("validate", small, "--box", "0,0,1,1").code == 0

    outcome = run("synthesize", small, "-o", tmp_path / "out.csv", "--box", "0,0,1,1")

    assert outcome.code == 0
