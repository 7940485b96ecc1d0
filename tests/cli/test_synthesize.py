"""`retrasyn synthesize`: every case of good and bad input, checkpoints and Ctrl-C."""

import contextlib
import errno
import hashlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import retrasyn
from retrasyn.cli.interrupts import interruptible_progress
from retrasyn.data.replica_files import replica_paths
from retrasyn.data.trajectories import Trajectories
from retrasyn.sinks.collected import Collected
from support.command_line import (
    COMMAND,
    PATIENCE,
    TWO_STREAMS,
    assert_is_stream,
    assert_one_line,
    assert_refused,
    contents,
    environment,
    points_per_timestamp,
    read_table,
    run,
    run_command,
    write_table,
)

UNIT_BOX = ("--box", "0,0,1,1")
PAPER = ("--method", "retrasyn-p")
CITY_BOX = ("--box", "0,0,10,10")
REPEATED = ("--seed", 0)  # for runs whose bytes are compared
PROMISED = {
    *("method", "unit", "window", "gap", "epsilon", "division", "seed", "timestamps", "n_reports"),
    *("box", "box_inferred_from_data", "worst_window", "not_protected"),
}


def receipt_of(out):
    return json.loads(out.with_name(f"{out.name}.receipt.json").read_text())


def run_of(out):
    """Return all that a receipt says of the run, without the file it travels with."""
    return receipt_of(out) | {"data_file": None}


def uncounted(folder):
    """Return what is in a folder but the count of releases."""
    return {name: data for name, data in contents(folder).items() if ".spent." not in name}


def refuse(folder, source, flags, *names):
    """Check that a run into a folder is refused in one line and leaves nothing behind."""
    assert_refused(folder, ["synthesize", source, "-o", folder / "out.csv", *flags], *names)


def same_columns(one, other):
    return all(one[name].tobytes() == other[name].tobytes() for name in ("traj_id", "t", "x", "y"))


# Replicas


def synthesize_with(n, source, out, *flags):
    return run("synthesize", source, "-o", out, *CITY_BOX, *REPEATED, "--replicates", n, *flags)


def test_replicas_lie_beside_the_release_and_the_receipt_tells_them(city, tmp_path):
    out = tmp_path / "out.csv"
    assert synthesize_with(2, city, out).code == 0

    paths = replica_paths(out)
    assert [path.name for path in paths] == ["0001.parquet", "0002.parquet"]
    one, other = map(retrasyn.read, paths)
    assert one.n_points == other.n_points == retrasyn.read(out).n_points
    lines = "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths
    )
    assert receipt_of(out)["replicas"] == {
        "n": 2,
        "name": "out.replicas",
        "n_bytes": sum(path.stat().st_size for path in paths),
        "sha256": hashlib.sha256(lines.encode()).hexdigest(),
    }
    told = f"{out}.receipt.json"
    assert run("receipt", "verify", told).code == 0
    paths[0].unlink()
    assert "2 replicas are stated" in run("receipt", "verify", told).out


@pytest.mark.parametrize("n", [0, 1])
def test_replicas_of_an_earlier_run_do_not_stay(n, city, tmp_path):
    out = tmp_path / "out.parquet"
    synthesize_with(2, city, out)
    synthesize_with(n, city, out)
    assert len(replica_paths(out)) == n
    assert (receipt_of(out)["replicas"] is None) == (n == 0)


def test_what_else_lies_where_replicas_go_is_left_and_the_run_refused(city, tmp_path):
    (tmp_path / "out.replicas").mkdir()
    (tmp_path / "out.replicas" / "notes.txt").write_text("mine")
    outcome = synthesize_with(1, city, tmp_path / "out.parquet")
    assert_one_line(outcome, "notes.txt is in the way of replicas")
    assert (tmp_path / "out.replicas" / "notes.txt").read_text() == "mine"


def test_a_disk_that_fills_up_leaves_the_earlier_replicas(city, tmp_path, monkeypatch):
    out = tmp_path / "out.parquet"
    synthesize_with(1, city, out)
    before = out.read_bytes(), replica_paths(out)[0].read_bytes()

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("retrasyn.data.replica_files.write", fail)
    outcome = run("synthesize", city, "-o", out, *CITY_BOX, "--no-ledger", "--replicates", 2)
    assert_one_line(outcome, "out.replicas cannot be written: No space left on device")
    assert (out.read_bytes(), *(path.read_bytes() for path in replica_paths(out))) == before


def test_replicas_with_parts_are_refused_before_the_data_is_read(tmp_path):
    outcome = synthesize_with(1, tmp_path / "none.csv", tmp_path / "out.parquet", "--parts")
    assert_one_line(outcome, "--replicates cannot go with --parts")


# What is accepted


def walks(*spans):
    """Return one stream per span of timestamps, each walking across the unit square."""
    columns = {"traj_id": [], "t": [], "x": [], "y": []}
    for number, (first, last) in enumerate(spans):
        for t in range(first, last + 1):
            columns["traj_id"].append(number)
            columns["t"].append(t)
            columns["x"].append((0.03 * (t + number)) % 1)
            columns["y"].append((0.05 * (t + 2 * number)) % 1)
    return columns


def with_users(columns, n_users):
    """Deal the streams out to users, round and round."""
    return {**columns, "user_id": [number % n_users for number in columns["traj_id"]]}


ACCEPTED = {
    "one user": walks((0, 15)),
    "one timestamp": walks(*[(7, 7)] * 20),
    "one point": walks((3, 3)),
    "timestamps with nobody": walks(*[(0, 4)] * 10, *[(9, 14)] * 10),
    "everyone quitting at once": walks(*[(0, 8)] * 30),
    "everyone quitting at once, then others": walks(*[(0, 8)] * 30, *[(9, 12)] * 5),
    "users who quit and return": with_users(walks(*[(0, 5)] * 8, *[(8, 12)] * 8), 8),
    "users who return at once": with_users(walks(*[(0, 5)] * 8, *[(6, 12)] * 8), 8),
    "times before zero": walks(*[(-9, -2)] * 10),
    "extra columns": {**walks(*[(0, 5)] * 5), "speed": [1.5] * 30, "note": ["ok"] * 30},
}


@pytest.mark.parametrize("method", ["retrasyn-p", "retrasyn-b"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("ids", ["whole numbers", "text"])
@pytest.mark.parametrize("case", ACCEPTED)
def test_an_unusual_stream_gets_as_many_synthetic_points_at_every_timestamp(
    case, ids, suffix, method, tmp_path
):
    columns = dict(ACCEPTED[case])
    if ids == "text":
        columns["traj_id"] = [f"trip {number}" for number in columns["traj_id"]]
        if "user_id" in columns:
            columns["user_id"] = [f"Zoë {number}" for number in columns["user_id"]]
        order = np.lexsort((columns["t"], columns["traj_id"]))  # text sorts in its own way
        columns = {name: [column[row] for row in order] for name, column in columns.items()}
    source, out = write_table(tmp_path / f"in{suffix}", columns), tmp_path / f"out{suffix}"

    outcome = run(
        "synthesize", source, "-o", out, *UNIT_BOX, "--window", 3, "--grid", 4, "--method", method
    )

    assert (outcome.code, outcome.err) == (0, "")
    table = read_table(out)
    assert_is_stream(table, box=(0, 0, 1, 1), side=4)
    assert points_per_timestamp(table["t"]) == points_per_timestamp(columns["t"])
    receipt = receipt_of(out)
    assert receipt["timestamps"] == max(columns["t"]) - min(columns["t"]) + 1
    assert receipt["n_points_out"] == len(columns["t"])
    assert receipt["within_guarantee"]
    assert receipt["worst_window"]["person_position"]["epsilon"] <= 1


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("ids", ["whole numbers", "text"])
def test_unsorted_rows_are_sorted_with_exactly_one_note(ids, suffix, tmp_path):
    columns = dict(walks((0, 6), (2, 8), (3, 4)))
    if ids == "text":
        columns["traj_id"] = [f"trip {number}" for number in columns["traj_id"]]
    mixed = np.random.default_rng(5).permutation(len(columns["t"]))
    unsorted = {name: [column[row] for row in mixed] for name, column in columns.items()}
    straight = write_table(tmp_path / f"sorted{suffix}", columns)
    crooked = write_table(tmp_path / f"unsorted{suffix}", unsorted)

    flags = (*UNIT_BOX, *REPEATED)
    quiet = run("synthesize", straight, "-o", tmp_path / f"one{suffix}", *flags)
    noted = run("synthesize", crooked, "-o", tmp_path / f"two{suffix}", *flags)

    assert (quiet.code, noted.code) == (0, 0)
    assert "note: " not in quiet.err
    assert [line for line in noted.err.splitlines() if line not in quiet.err] == [
        f"note: {crooked}: rows were not sorted by (traj_id, t); they have been sorted"
    ]
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


def test_csv_and_parquet_hold_the_same_output(city, tmp_path):
    run("synthesize", city, "-o", tmp_path / "out.csv", *CITY_BOX, *REPEATED)
    run("synthesize", city, "-o", tmp_path / "out.parquet", *CITY_BOX, *REPEATED)

    assert same_columns(read_table(tmp_path / "out.csv"), read_table(tmp_path / "out.parquet"))
    assert run_of(tmp_path / "out.csv") == run_of(tmp_path / "out.parquet")


def test_the_output_is_a_sorted_consecutive_neighbourly_stream_of_the_right_size(city, tmp_path):
    out = tmp_path / "out.parquet"

    outcome = run("synthesize", city, "-o", out, *CITY_BOX, "--window", 5)

    assert outcome.code == 0
    table = read_table(out)
    assert_is_stream(table, box=(0, 0, 10, 10), side=6)
    assert np.unique(table["traj_id"]).size > 10
    assert points_per_timestamp(table["t"]) == points_per_timestamp(read_table(city)["t"])
    assert receipt_of(out)["n_reports"] > 0


def test_the_summary_names_the_files_and_the_worst_window(small, tmp_path):
    out = tmp_path / "out.csv"

    outcome = run("synthesize", small, "-o", out, *UNIT_BOX)

    assert str(out) in outcome.out
    assert f"{out}.receipt.json" in outcome.out
    assert "worst window" in outcome.out


def test_the_exact_method_says_that_it_is_not_private(small, tmp_path):
    out = tmp_path / "out.csv"

    outcome = run("synthesize", small, "-o", out, *UNIT_BOX, "--method", "exact")

    assert "NOT PRIVATE" in outcome.out
    receipt = receipt_of(out)
    assert not receipt["private"]
    assert not receipt["within_guarantee"]
    assert "NOT PRIVATE" in receipt["guarantee"]


# The receipt


@pytest.mark.system
def test_json_prints_the_receipt_and_nothing_else(city, tmp_path):
    out = tmp_path / "out.parquet"

    outcome = run_command("synthesize", city, "-o", out, *CITY_BOX, "--json", "--no-ledger")

    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads(outcome.out).keys() >= PROMISED
    assert outcome.out == out.with_name("out.parquet.receipt.json").read_text()


def test_json_keeps_notes_and_warnings_off_standard_output(tmp_path):
    backwards = {name: column[::-1] for name, column in TWO_STREAMS.items()}
    source = write_table(tmp_path / "in.csv", backwards)

    outcome = run("synthesize", source, "-o", tmp_path / "out.csv", "--json")

    assert json.loads(outcome.out)["box_inferred_from_data"] is True
    assert [line.split(":")[0] for line in outcome.err.splitlines()] == ["note", "WARNING"]


def test_the_receipt_states_what_was_asked_for(small, tmp_path):
    out = tmp_path / "out.csv"

    run(
        *("synthesize", small, "-o", out, "--box", "0,0,2,1", "--method", "uniform-b"),
        *("--epsilon", 2.5, "--window", 7, "--grid", 3, "--seed", 11, "--jump", "clamp"),
    )

    receipt = receipt_of(out)
    stated = {
        "method": "uniform-b",
        "division": "budget",
        "unit": "position",
        "ledger": "stream",
        "epsilon": 2.5,
        "window": 7,
        "gap": 8,
        "grid": 3,
        "seed": 11,
        "jump": "clamp",
        "box": [0, 0, 2, 1],
        "box_inferred_from_data": False,
        "timestamps": 3,
        "n_users": 2,
        "n_points_in": 5,
        "n_points_dropped": 0,
        "n_points_out": 5,
        "faithful": False,
    }
    assert {name: receipt[name] for name in stated} == stated
    assert receipt["presence"].startswith("count")
    assert 0 < receipt["worst_window"]["declared"]["epsilon"] <= 2.5
    assert receipt["not_protected"]


def test_the_unit_of_transitions_has_the_shorter_gap(small, tmp_path):
    out = tmp_path / "out.csv"

    run("synthesize", small, "-o", out, *UNIT_BOX, "--unit", "transition", "--window", 7)

    assert (receipt_of(out)["unit"], receipt_of(out)["gap"]) == ("transition", 7)


@pytest.mark.parametrize("ledger", ["user", "stream"])
def test_the_ledger_can_be_kept_by_user_or_by_stream(ledger, tmp_path):
    source = write_table(tmp_path / "in.csv", ACCEPTED["users who return at once"])
    out = tmp_path / "out.csv"

    run("synthesize", source, "-o", out, *UNIT_BOX, "--ledger", ledger, "--method", "sample-p")

    receipt = receipt_of(out)
    assert receipt["ledger"] == ledger
    assert receipt["worst_window"]["declared"]["per"] == ledger
    assert receipt["n_users"] == 8


def test_settings_reach_the_method(small, tmp_path):
    out = tmp_path / "out.csv"

    run(
        *("synthesize", small, "-o", out, *UNIT_BOX, *PAPER, "--length-scale", "12.5"),
        *("--set", "alpha=3", "--set", "kappa = 4", "--set", "p_max=0.25", "--set", "warm_up=3"),
    )

    receipt = receipt_of(out)
    assert receipt["settings"] == {"gain": 3.0, "lookback": 4, "max_portion": 0.25}
    assert receipt["reading"]["warm_up"] == 3
    assert receipt["length_scale"] == 12.5


def test_a_faithful_run_says_what_it_takes_from_the_data(city, tmp_path):
    out = tmp_path / "out.csv"

    outcome = run("synthesize", city, "-o", out, *CITY_BOX, "--faithful", "--length-scale", "data")

    assert outcome.code == 0
    receipt = receipt_of(out)
    assert receipt["faithful"]
    assert receipt["length_scale_from_data"]
    assert (receipt["unit"], receipt["gap"]) == ("transition", receipt["window"])
    assert any("mean stream length" in item for item in receipt["not_protected"])


@pytest.mark.system
def test_an_inferred_box_is_announced_loudly_and_marked(small, tmp_path):
    out = tmp_path / "out.csv"

    outcome = run_command("synthesize", small, "-o", out)

    assert outcome.code == 0
    assert outcome.err.startswith("WARNING: ")
    assert outcome.err.count("\n") == 1
    for name in ("0.1,0.1,0.9,0.7", "NOT private", "--box"):
        assert name in outcome.err
    receipt = receipt_of(out)
    assert receipt["box_inferred_from_data"] is True
    assert receipt["box"] == [0.1, 0.1, 0.9, 0.7]
    assert any("outermost" in item for item in receipt["not_protected"])


def test_an_inferred_box_around_a_single_place_still_has_an_area(tmp_path):
    columns = {"traj_id": [1, 1], "t": [0, 1], "x": [116.4, 116.4], "y": [0.0, 0.0]}
    source, out = write_table(tmp_path / "in.csv", columns), tmp_path / "out.csv"

    outcome = run("synthesize", source, "-o", out)

    assert outcome.code == 0
    x0, y0, x1, y1 = receipt_of(out)["box"]
    assert x0 < 116.4 < x1
    assert y0 < 0.0 < y1


# Seeds


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(city, tmp_path):
    outs = [tmp_path / name for name in ("one.csv", "again.csv", "other.csv")]
    for out, seed in zip(outs, (3, 3, 4), strict=True):
        run("synthesize", city, "-o", out, *CITY_BOX, "--seed", seed)

    one, again, other = (out.read_bytes() for out in outs)
    assert one == again
    assert one != other


def test_random_seeds_differ_and_stay_out_of_the_receipt(city, tmp_path):
    outs = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for out in outs:
        run("synthesize", city, "-o", out, *CITY_BOX, "--seed", "random")

    assert outs[0].read_bytes() != outs[1].read_bytes()
    for out in outs:
        assert receipt_of(out)["seed"] is None
        assert not any("knows the seed" in item for item in receipt_of(out)["not_protected"])


# Points outside the box


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_points_outside_the_box_are_refused(suffix, tmp_path):
    columns = {**TWO_STREAMS, "x": [0.1, 1.2, 0.3, 0.8, 0.9]}
    source = write_table(tmp_path / f"in{suffix}", columns)

    refuse(tmp_path, source, UNIT_BOX, "1 of 5 points", "0,0,1,1", "--outside drop")


def test_points_outside_the_box_can_be_dropped_and_the_receipt_says_so(tmp_path):
    columns = {**TWO_STREAMS, "x": [0.1, 1.2, 0.3, 0.8, 0.9]}
    source, out = write_table(tmp_path / "in.csv", columns), tmp_path / "out.csv"

    outcome = run("synthesize", source, "-o", out, *UNIT_BOX, "--outside", "drop")

    assert outcome.code == 0
    assert points_per_timestamp(read_table(out)["t"]) == {0: 1, 1: 1, 2: 2}
    receipt = receipt_of(out)
    assert "depends on the box" in receipt["presence"]
    assert receipt["n_points_dropped"] == 1
    assert any("edge of the box" in item for item in receipt["not_protected"])


def test_dropping_where_nothing_lies_outside_changes_nothing(small, tmp_path):
    kept, dropped = tmp_path / "kept.csv", tmp_path / "dropped.csv"

    run("synthesize", small, "-o", kept, *UNIT_BOX, *REPEATED)
    run("synthesize", small, "-o", dropped, *UNIT_BOX, *REPEATED, "--outside", "drop")

    assert kept.read_bytes() == dropped.read_bytes()
    assert receipt_of(dropped)["presence"] == receipt_of(kept)["presence"]


def test_a_box_with_no_point_inside_is_refused(small, tmp_path):
    refuse(tmp_path, small, ["--box", "5,5,6,6", "--outside", "drop"], "5,5,6,6", "--box")


# Files that are refused


@pytest.mark.parametrize("name", ["missing.csv", "missing.parquet"])
def test_a_missing_file_is_refused(name, tmp_path):
    refuse(tmp_path, tmp_path / name, UNIT_BOX, str(tmp_path / name), "does not exist")


def test_an_input_with_too_long_a_name_is_refused(tmp_path):
    source = tmp_path / ("i" * 300 + ".csv")

    refuse(tmp_path, source, UNIT_BOX, str(source))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("column", ["traj_id", "t", "x", "y"])
def test_a_missing_column_is_refused_by_name(column, suffix, tmp_path):
    columns = {name: values for name, values in TWO_STREAMS.items() if name != column}
    source = write_table(tmp_path / f"in{suffix}", columns)

    refuse(
        tmp_path, source, UNIT_BOX, f"no column {column} ", f"it has {', '.join(columns)}", "rename"
    )


def changed(row, **cells):
    """Return the two streams with some cells of one row changed."""
    columns = {name: list(values) for name, values in TWO_STREAMS.items()}
    for name, value in cells.items():
        columns[name][row] = value
    return columns


FAULTY = {
    "two points of a stream at once": (
        changed(1, t=0),
        ("traj_id 1", "t=0", "one row per (traj_id, t)"),
    ),
    "two points of a text stream at once": (
        {**changed(1, t=0), "traj_id": ["bus", "bus", "bus", "cab", "cab"]},
        ("traj_id bus", "t=0", "one row per (traj_id, t)"),
    ),
    "two points of a user at once": (
        {**TWO_STREAMS, "user_id": [7, 7, 7, 7, 7]},
        ("user_id 7", "t=1", "one row per (user_id, t)"),
    ),
    "two points of a text user at once": (
        {**TWO_STREAMS, "user_id": ["Ann"] * 5},
        ("user_id Ann", "t=1", "one row per (user_id, t)"),
    ),
    "a stream that changes hands": (
        {**TWO_STREAMS, "user_id": ["Ann", "Ann", "Ben", "Cy", "Cy"]},
        ("traj_id 1", "t=2", "its own traj_id"),
    ),
    "a gap inside a stream": (
        changed(2, t=5),
        ("traj_id 1", "t=1", "t=5", "another traj_id"),
    ),
    "NaN in x": (changed(3, x=float("nan")), ("column x", "nan", "row 4", "remove")),
    "NaN in y": (changed(0, y=float("nan")), ("column y", "nan", "row 1", "remove")),
    "infinity": (changed(3, x=float("inf")), ("column x", "inf", "row 4", "remove")),
    "minus infinity": (changed(3, y=float("-inf")), ("column y", "-inf", "row 4", "remove")),
    "an empty x": (changed(2, x=None), ("column x", "empty", "row 3", "remove")),
    "an empty t": (changed(2, t=None), ("column t", "empty", "row 3", "remove")),
    "an empty traj_id": (changed(2, traj_id=None), ("column traj_id", "empty", "row 3", "remove")),
    "an empty user_id": (
        {**TWO_STREAMS, "user_id": [1, 1, 1, None, 2]},
        ("column user_id", "empty", "row 4", "remove"),
    ),
    "an empty text traj_id": (
        {**TWO_STREAMS, "traj_id": ["bus", "bus", "bus", None, "cab"]},
        ("column traj_id", "empty", "row 4", "remove"),
    ),
    "an empty text user_id": (
        {**TWO_STREAMS, "user_id": ["Ann", "Ann", "Ann", "Ben", None]},
        ("column user_id", "empty", "row 5", "remove"),
    ),
    "half a timestamp": (changed(1, t=0.5), ("column t", "0.5", "row 2", "whole numbers")),
    "a word for a number": (
        {**TWO_STREAMS, "x": ["0.1", "0.2", "east", "0.8", "0.9"]},
        ("column x", "east", "row 3"),
    ),
    "clock times": (
        {**walks((0, 0), (20_000_000, 20_000_000))},
        ("20,000,001 steps", "number the time steps"),
    ),
    "times too large to count": (
        walks((2**40, 2**40 + 3)),
        (str(2**40), "number the time steps"),
    ),
}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("case", FAULTY)
def test_a_faulty_row_is_refused_by_its_value_and_place(case, suffix, tmp_path):
    columns, names = FAULTY[case]
    source = write_table(tmp_path / f"in{suffix}", columns)

    refuse(tmp_path, source, UNIT_BOX, str(source), *names)


UNREADABLE = {
    "an empty csv": ("in.csv", b"", ("is empty", "traj_id, t, x, y")),
    "an empty parquet": ("in.parquet", b"", ("is empty", "traj_id, t, x, y")),
    "a csv of blank lines": ("in.csv", b"\n\n", ("in.csv",)),
    "a header alone": ("in.csv", b"traj_id,t,x,y\n", ("no rows",)),
    "a header without a line end": ("in.csv", b"traj_id,t,x,y", ("in.csv",)),
    "garbage called parquet": ("in.parquet", b"garbage" * 20, ("cannot be read as parquet",)),
    "a csv called parquet": ("in.parquet", b"traj_id,t,x,y\n1,0,0,0\n", ("as parquet",)),
    "garbage called csv": ("in.csv", bytes(range(256)), ("in.csv",)),
    "a row with a missing cell": (
        "in.csv",
        b"traj_id,t,x,y\n1,0,0.1,0.1\n1,1,0.2\n",
        ("Expected 4 columns, got 3",),
    ),
    "text that is not UTF-8": (
        "in.csv",
        b"traj_id,t,x,y\nZo\xeb,0,0.1,0.1\n",
        ("traj_id", "UTF-8"),
    ),
    "an unknown suffix": ("in.xlsx", b"traj_id,t,x,y\n1,0,0,0\n", (".xlsx", ".parquet or .csv")),
    "no suffix": ("in", b"traj_id,t,x,y\n1,0,0,0\n", ("nothing", ".parquet or .csv")),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_file_that_is_none_is_refused(case, tmp_path):
    name, data, names = UNREADABLE[case]
    source = tmp_path / name
    source.write_bytes(data)

    refuse(tmp_path, source, UNIT_BOX, str(source), *names)


def test_a_parquet_without_rows_is_refused(tmp_path):
    nothing = {name: pa.array([], pa.int64()) for name in TWO_STREAMS}
    source = write_table(tmp_path / "in.parquet", nothing)

    refuse(tmp_path, source, UNIT_BOX, str(source), "no rows")


@pytest.mark.parametrize("name", ["folder.csv", "folder.parquet"])
def test_a_folder_as_input_is_refused(name, tmp_path):
    (tmp_path / name).mkdir()

    refuse(tmp_path, tmp_path / name, UNIT_BOX, str(tmp_path / name))


# Settings that are refused

BAD_SETTINGS = {
    "epsilon zero": (("--epsilon", 0), ("epsilon=0 ", "above 0")),
    "epsilon negative": (("--epsilon", -1), ("epsilon=-1 ", "above 0")),
    "epsilon NaN": (("--epsilon", "nan"), ("epsilon=nan", "above 0")),
    "epsilon infinite": (("--epsilon", "inf"), ("epsilon=inf", "at most 40")),
    "epsilon too large": (("--epsilon", 41), ("epsilon=41", "at most 40")),
    "epsilon too small": (("--epsilon", 1e-9), ("epsilon=1e-09", "below 1e-06")),
    "epsilon a word": (("--epsilon", "much"), ("much", "--epsilon")),
    "window zero": (("--window", 0), ("window=0 ", "at least 1")),
    "window negative": (("--window", -3), ("window=-3", "at least 1")),
    "window a fraction": (("--window", "1.5"), ("1.5", "--window")),
    "window beyond counting": (("--window", 10**23), (f"window={10**23}",)),
    "grid zero": (("--grid", 0), ("0", "1..64")),
    "grid too fine": (("--grid", 65), ("65", "1..64")),
    "grid negative": (("--grid", -1), ("-1", "1..64")),
    "box without width": (("--box", "1,0,1,1"), ("1,0,1,1", "no area", "x0 < x1")),
    "box without height": (("--box", "0,1,1,1"), ("0,1,1,1", "no area", "y0 < y1")),
    "box turned round": (("--box", "1,1,0,0"), ("1,1,0,0", "no area", "lower-left corner first")),
    "box of three numbers": (("--box", "0,0,1"), ("'0,0,1'", "x0,y0,x1,y1")),
    "box of five numbers": (("--box", "0,0,1,1,1"), ("'0,0,1,1,1'", "x0,y0,x1,y1")),
    "box of words": (("--box", "a,b,c,d"), ("'a,b,c,d'", "x0,y0,x1,y1")),
    "box empty": (("--box", ""), ("''", "x0,y0,x1,y1")),
    "box with NaN": (("--box", "nan,0,1,1"), ("nan,0,1,1", "not finite")),
    "box with infinity": (("--box", "0,0,inf,1"), ("0,0,inf,1", "not finite")),
    "box too wide for floats": (
        ("--box", "-1e308,-1e308,1e308,1e308"),
        ("-1e+308,-1e+308,1e+308,1e+308",),
    ),
    "box too narrow for floats": (("--box", "1,0,1.0000000001,1"), ("too narrow", "offset")),
    "method misspelt": (("--method", "retrasyn-pp"), ("'retrasyn-pp'", "did you mean retrasyn-p?")),
    "method unknown": (("--method", "zzz"), ("'zzz'", "choose from steered, ")),
    "setting unknown": ((*PAPER, "--set", "beta=1"), ("'beta'", "alpha")),
    "setting of the paper": (("--set", "alpha=1"), ("'alpha'", "age_share")),
    "switch neither on nor off": (("--set", "steers=1"), ("steers='1'", "true nor false")),
    "nobody left to report": (("--set", "age_share=1"), ("age_share=1", "leave somebody")),
    "no length scale": (("--length-scale", 9), ("steered", "no length scale")),
    "ours as the authors": (("--method", "steered", "--faithful"), ("steered", "retrasyn-p")),
    "errors of no format": (("--errors", "e.txt"), ("e.txt", ".parquet or .csv")),
    "errors nobody knows": ((*PAPER, "--errors", "e.csv"), ("retrasyn-p", "--errors")),
    "a role nobody asks for": (
        ("--set", "presence_share=0.1"),
        ("'presence_share'", "age_share"),
    ),
    "errors and a checkpoint": (
        ("--errors", "e.csv", "--checkpoint", "kept"),
        ("--errors", "--checkpoint"),
    ),
    "setting not a number": ((*PAPER, "--set", "alpha=x"), ("alpha='x'", "number")),
    "setting not whole": ((*PAPER, "--set", "kappa=1.5"), ("kappa='1.5'", "whole number")),
    "setting out of range": ((*PAPER, "--set", "p_max=2"), ("p_max=2", "0..1")),
    "setting NaN": ((*PAPER, "--set", "alpha=nan"), ("alpha=nan", "positive")),
    "setting not among the words": (
        (*PAPER, "--set", "quit=never"),
        ("'never'", "renormalised, plain"),
    ),
    "setting without a value": (("--set", "alpha"), ("'alpha'", "NAME=VALUE")),
    "setting with an empty value": (("--set", "alpha="), ("'alpha='", "NAME=VALUE")),
    "setting without a name": (("--set", "=8"), ("'=8'", "NAME=VALUE")),
    "length scale from the data": ((*PAPER, "--length-scale", "data"), ("'data'", "--faithful")),
    "length scale set to the data": (
        (*PAPER, "--set", "length_scale=data"),
        ("'data'", "--faithful"),
    ),
    "length scale a word": (("--length-scale", "long"), ("'long'", "released")),
    "length scale too short": ((*PAPER, "--length-scale", 1), ("1.0", "2..1000")),
    "length scale NaN": ((*PAPER, "--length-scale", "nan"), ("nan", "2..1000")),
    "seed negative": (("--seed", -1), ("'-1'", "random")),
    "seed too long to read": (("--seed", "1" * 5000), ("--seed", "random")),
    "seed a word": (("--seed", "luck"), ("'luck'", "random")),
    "resume alone": (("--resume",), ("--resume", "--checkpoint")),
    "unit unknown": (("--unit", "second"), ("second", "position", "transition")),
    "ledger unknown": (("--ledger", "phone"), ("phone", "user", "stream")),
    "jump unknown": (("--jump", "fly"), ("fly", "clamp", "split")),
    "outside unknown": (("--outside", "keep"), ("keep", "refuse", "drop")),
    "flag unknown": (("--epsilom", 1), ("--epsilom", "synthesize --help")),
    "argument too many": (("more.csv",), ("more.csv", "synthesize --help")),
}


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_a_bad_setting_is_refused_by_name_and_value(case, small, tmp_path):
    flags, names = BAD_SETTINGS[case]

    refuse(tmp_path, small, [*UNIT_BOX, *flags], *names)


def test_bad_settings_are_refused_before_the_data_is_read(tmp_path):
    refuse(tmp_path, tmp_path / "missing.csv", ["--epsilon", "0"], "epsilon=0")


@pytest.mark.parametrize("side", [1, 64])
def test_the_coarsest_and_the_finest_grid_are_accepted(side, small, tmp_path):
    out = tmp_path / "out.csv"

    outcome = run("synthesize", small, "-o", out, *UNIT_BOX, "--grid", side)

    assert outcome.code == 0
    assert_is_stream(read_table(out), box=(0, 0, 1, 1), side=side)


@pytest.mark.parametrize("window", [1, 1000])
def test_a_window_of_one_and_one_beyond_the_stream_are_accepted(window, city, tmp_path):
    out = tmp_path / "out.parquet"

    outcome = run("synthesize", city, "-o", out, *CITY_BOX, "--window", window)

    assert outcome.code == 0
    assert receipt_of(out)["worst_window"]["person_position"]["epsilon"] <= 1


def test_the_input_and_the_output_must_be_named(small, tmp_path):
    assert_refused(tmp_path, ["synthesize", small], "--out", "synthesize --help")
    assert_refused(
        tmp_path, ["synthesize", "-o", tmp_path / "out.csv"], "INPUT", "synthesize --help"
    )


# Outputs that cannot be written


def test_an_output_in_a_missing_folder_is_refused(small, tmp_path):
    assert_refused(
        tmp_path,
        ["synthesize", small, "-o", tmp_path / "no" / "out.csv", *UNIT_BOX],
        *(str(tmp_path / "no"), "does not exist", "create it"),
    )


def test_an_output_onto_a_folder_is_refused(small, tmp_path):
    (tmp_path / "out.csv").mkdir()

    refuse(tmp_path, small, UNIT_BOX, str(tmp_path / "out.csv"), "is a folder")


@pytest.mark.parametrize(("name", "suffix"), [("out.txt", ".txt"), ("out", "nothing")])
def test_an_output_of_an_unknown_suffix_is_refused(name, suffix, small, tmp_path):
    assert_refused(
        tmp_path,
        ["synthesize", small, "-o", tmp_path / name, *UNIT_BOX],
        *(str(tmp_path / name), suffix, ".parquet or .csv"),
    )


@pytest.mark.parametrize("place", ["", ".", "/"])
def test_an_output_that_names_no_file_is_refused(place, small, tmp_path):
    assert_refused(tmp_path, ["synthesize", small, "-o", place, *UNIT_BOX], "output", ".csv")


def test_an_output_under_a_file_is_refused(small, tmp_path):
    assert_refused(
        tmp_path, ["synthesize", small, "-o", small / "out.csv", *UNIT_BOX], str(small), "folder"
    )


def test_an_output_where_nobody_may_write_is_refused(small, tmp_path):
    assert_refused(
        tmp_path, ["synthesize", small, "-o", "/proc/out.csv", *UNIT_BOX], "/proc/out.csv"
    )


def test_an_output_with_too_long_a_name_is_refused(small, tmp_path):
    out = tmp_path / ("o" * 300 + ".csv")

    assert_refused(tmp_path, ["synthesize", small, "-o", out, *UNIT_BOX], str(out))


def test_an_output_whose_receipt_cannot_be_written_is_refused_whole(small, tmp_path):
    (tmp_path / "out.csv.receipt.json").mkdir()

    refuse(tmp_path, small, UNIT_BOX, str(tmp_path / "out.csv.receipt.json"))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_disk_that_fills_up_leaves_the_earlier_output_as_it_was(
    suffix, small, tmp_path, monkeypatch
):
    out = tmp_path / f"out{suffix}"
    assert run("synthesize", small, "-o", out, *UNIT_BOX).code == 0

    def full(self, n_rows):
        yield self
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Trajectories, "blocks", full)

    refuse(tmp_path, small, ["-o", out, *UNIT_BOX, "--no-ledger"], "No space left")


# Checkpoints


def stop_after(n_timestamps):
    """Return a progress function that interrupts the run."""

    def progress(done, _):
        if done == n_timestamps:
            raise KeyboardInterrupt

    return progress


def leave_unfinished(source, folder, **settings):
    """Run on a city with a checkpoint and stop half way."""
    options = {"box": (0, 0, 10, 10), "seed": 0} | settings
    with pytest.raises(KeyboardInterrupt):
        retrasyn.synthesize(
            retrasyn.read(source), checkpoint=folder, progress=stop_after(25), **options
        )
    assert (folder / "state.npz").exists()
    return folder


def resuming(folder, *flags):
    return [*CITY_BOX, *REPEATED, "--checkpoint", folder, "--resume", *flags]


def resume(city, out, folder, *flags):
    return run("synthesize", city, "-o", out, *resuming(folder, *flags))


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--method", "retrasyn-b"),
        ("--method", "random-p"),
        ("--method", "noeq-p"),
        ("--faithful",),
        ("--faithful", "--method", "retrasyn-b"),
    ],
    ids=" ".join,
)
def test_a_resumed_run_gives_the_columns_and_the_receipt_of_an_unbroken_one(flags, city, tmp_path):
    whole, resumed = tmp_path / "whole.parquet", tmp_path / "resumed.parquet"
    settings = {"method": flags[-1]} if "--method" in flags else {}
    folder = leave_unfinished(city, tmp_path / "kept", faithful="--faithful" in flags, **settings)

    run("synthesize", city, "-o", whole, *CITY_BOX, *REPEATED, *flags)
    outcome = resume(city, resumed, folder, *flags)

    assert outcome.code == 0
    assert same_columns(read_table(whole), read_table(resumed))
    assert run_of(whole) == run_of(resumed)
    assert not folder.exists()


def test_a_resumed_run_gives_the_replicas_of_an_unbroken_one(city, tmp_path):
    whole, resumed = tmp_path / "whole.parquet", tmp_path / "resumed.parquet"
    folder = leave_unfinished(city, tmp_path / "kept", replicates=2)

    run("synthesize", city, "-o", whole, *CITY_BOX, *REPEATED, "--replicates", 2)
    outcome = resume(city, resumed, folder, "--replicates", 2)

    assert outcome.code == 0
    assert [path.read_bytes() for path in replica_paths(resumed)] == [
        path.read_bytes() for path in replica_paths(whole)
    ]
    said, again = receipt_of(whole)["replicas"], receipt_of(resumed)["replicas"]
    assert (said["n"], said["name"], again["name"]) == (2, "whole.replicas", "resumed.replicas")
    assert again["sha256"] == said["sha256"]
    assert not folder.exists()


def test_a_run_with_another_number_of_replicas_is_not_gone_on_with(city, tmp_path):
    folder = leave_unfinished(city, tmp_path / "kept", replicates=2)
    outcome = resume(city, tmp_path / "out.parquet", folder, "--replicates", 3)
    assert_one_line(outcome, "replicates=2", "this run has 3")


def test_a_run_stopped_twice_gives_the_columns_of_an_unbroken_one(city, tmp_path):
    whole, resumed, folder = tmp_path / "whole.csv", tmp_path / "resumed.csv", tmp_path / "kept"
    leave_unfinished(city, folder)
    with pytest.raises(KeyboardInterrupt):
        retrasyn.synthesize(
            retrasyn.read(city),
            box=(0, 0, 10, 10),
            checkpoint=folder,
            resume=True,
            progress=stop_after(40),
            seed=0,
        )

    run("synthesize", city, "-o", whole, *CITY_BOX, *REPEATED)
    resume(city, resumed, folder)

    assert whole.read_bytes() == resumed.read_bytes()


def test_a_run_stopped_while_writing_is_written_on_resuming(city, tmp_path, monkeypatch):
    whole, out, folder = tmp_path / "whole.csv", tmp_path / "out.csv", tmp_path / "kept"
    run("synthesize", city, "-o", whole, *CITY_BOX, *REPEATED)

    def interrupted(self, n_rows):
        yield self
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Trajectories, "blocks", interrupted)
        flags = (*CITY_BOX, *REPEATED, "--checkpoint", folder)
        stopped = run("synthesize", city, "-o", out, *flags)
    left = sorted(path.name for path in tmp_path.iterdir())
    resumed = resume(city, out, folder)

    assert stopped.code == 130
    assert left == ["kept", "whole.csv", "whole.csv.receipt.json"]
    assert resumed.code == 0
    assert out.read_bytes() == whole.read_bytes()


def test_a_run_with_a_secret_seed_goes_on_with_the_same_seed(city, tmp_path):
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    folder = leave_unfinished(city, tmp_path / "kept", seed="random")
    copy = tmp_path / "copy"
    copy.mkdir()
    for name, data in contents(folder).items():
        (copy / name).write_bytes(data or b"")

    resume(city, one, folder, "--seed", "random")
    resume(city, two, copy, "--seed", "random")

    assert one.read_bytes() == two.read_bytes()
    assert receipt_of(one)["seed"] is None


def test_a_finished_run_leaves_no_checkpoint(city, tmp_path):
    out, folder = tmp_path / "out.csv", tmp_path / "kept"

    outcome = run("synthesize", city, "-o", out, *CITY_BOX, "--checkpoint", folder)

    assert outcome.code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.csv.receipt.json"]


def test_a_finished_run_leaves_what_else_is_in_the_checkpoint_folder(city, tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")

    run("synthesize", city, "-o", tmp_path / "out.csv", *CITY_BOX, "--checkpoint", folder)

    assert contents(folder) == {"notes.txt": b"mine"}


def test_a_checkpoint_may_be_kept_in_the_working_folder(city, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    outcome = run("synthesize", city, "-o", "../out.csv", *CITY_BOX, "--checkpoint", ".", "--json")

    assert outcome.code == 0
    assert json.loads(outcome.out) == receipt_of(tmp_path / "out.csv")
    assert list((tmp_path / "here").iterdir()) == []


def test_resuming_where_nothing_was_kept_starts_from_the_beginning(city, tmp_path):
    whole, out = tmp_path / "whole.csv", tmp_path / "out.csv"
    run("synthesize", city, "-o", whole, *CITY_BOX, *REPEATED)

    outcome = resume(city, out, tmp_path / "kept")

    assert outcome.code == 0
    assert out.read_bytes() == whole.read_bytes()


def test_an_unfinished_run_is_not_overwritten_without_resume(city, tmp_path):
    folder = leave_unfinished(city, tmp_path / "kept")

    refuse(
        tmp_path,
        city,
        [*CITY_BOX, "--checkpoint", folder],
        str(folder),
        "unfinished run",
        "--resume",
    )


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (("--epsilon", 2), ("epsilon=1.0", "2.0")),
        (("--seed", 1), ("seed=0", "1")),
        (("--seed", "random"), ("seed=0", "random")),
        (("--window", 5), ("window=20", "5")),
        (("--grid", 5), ("side=6", "5")),
        (("--box", "0,0,11,10"), ("box=", "11.0")),
        (("--method", "retrasyn-b"), ("method='steered'", "'retrasyn-b'")),
        (("--set", "age_share=0.2"), ("age_share", "0.2")),
        (("--unit", "transition"), ("position", "transition")),
        (("--ledger", "stream"), ("user", "stream")),
        (("--outside", "drop"), ("refuse", "drop")),
        (("--faithful",), ("method='steered'", "'retrasyn-p'")),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_a_checkpoint_of_another_configuration_is_refused(flags, names, city, tmp_path):
    folder = leave_unfinished(city, tmp_path / "kept")

    refuse(tmp_path, city, resuming(folder, *flags), str(folder), *names, "another folder")


@pytest.mark.parametrize("column", ["traj_id", "t", "x", "y", "user_id"])
def test_a_checkpoint_of_other_data_is_refused(column, city, tmp_path):
    folder = leave_unfinished(city, tmp_path / "kept")
    table = read_table(city)
    if column == "user_id":
        table["user_id"] = table["traj_id"]
    else:
        table[column] = table[column] + (1 if column in ("traj_id", "t") else -1e-9)
    other = write_table(tmp_path / "other.parquet", {n: np.abs(c) for n, c in table.items()})

    refuse(tmp_path, other, resuming(folder), str(folder), "data", "another folder")


@pytest.mark.parametrize("column", ["traj_id", "user_id"])
def test_a_checkpoint_of_the_same_points_under_other_names_is_refused(column, city, tmp_path):
    table = read_table(city)
    table["user_id"] = table["traj_id"]
    for name in ("traj_id", "user_id"):
        table[name] = np.array([f"a{number:06d}" for number in table[name]])
    one = write_table(tmp_path / "one.parquet", table)
    table[column] = np.array([name.replace("a", "b") for name in table[column]])
    two = write_table(tmp_path / "two.parquet", table)
    folder = leave_unfinished(one, tmp_path / "kept")

    refuse(tmp_path, two, resuming(folder), str(folder), "data", "another folder")


def edit_header(folder, edit):
    """Change what a state says about itself."""
    with np.load(folder / "state.npz", allow_pickle=False) as file:
        arrays = dict(file)
    header = edit(json.loads(arrays["header"].tobytes()))
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(folder / "state.npz", **arrays, allow_pickle=False)


@pytest.mark.parametrize(
    ("name", "value"), [("retrasyn", "0.0.1"), ("format", 99), ("numpy", "1.0.0")]
)
def test_a_checkpoint_of_another_version_is_refused(name, value, city, tmp_path):
    folder = leave_unfinished(city, tmp_path / "kept")
    edit_header(
        folder,
        lambda header: {**header, "configuration": {**header["configuration"], name: value}},
    )

    refuse(tmp_path, city, resuming(folder), str(folder), name, str(value), "another folder")


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def drop_array(path, name):
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    del arrays[name]
    np.savez(path, **arrays, allow_pickle=False)


DAMAGE = {
    "empty": lambda folder: (folder / "state.npz").write_bytes(b""),
    "garbage": lambda folder: (folder / "state.npz").write_bytes(b"garbage" * 50),
    "cut short": lambda folder: cut(folder / "state.npz"),
    "one bit changed": lambda folder: flip(folder / "state.npz", 400),
    "packed in an unknown way": lambda folder: flip(
        folder / "state.npz", (folder / "state.npz").read_bytes().index(b"PK\x01\x02") + 10
    ),
    "no clock": lambda folder: drop_array(folder / "state.npz", "clock"),
    "no header": lambda folder: drop_array(folder / "state.npz", "header"),
    "empty header": lambda folder: edit_header(folder, lambda _: {}),
    "header of another kind": lambda folder: edit_header(folder, lambda _: [1, 2]),
    "header without a seed": lambda folder: edit_header(
        folder, lambda header: {"configuration": header["configuration"]}
    ),
    "header that forgets parts": lambda folder: edit_header(
        folder, lambda header: {**header, "n_parts": 0}
    ),
    "part missing": lambda folder: (folder / "part-000000.npz").unlink(),
    "part cut short": lambda folder: cut(folder / "part-000000.npz"),
    "part without x": lambda folder: drop_array(folder / "part-000000.npz", "x"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_checkpoint_is_refused(case, city, tmp_path):
    folder = leave_unfinished(city, tmp_path / "kept")
    DAMAGE[case](folder)

    flags = resuming(folder, "--no-ledger")
    refuse(tmp_path, city, flags, str(folder), "damaged", "start again")


@pytest.mark.system
def test_a_checkpoint_whose_parts_do_not_fit_together_is_refused(city, tmp_path):
    folder = leave_unfinished(city, tmp_path / "kept")
    with np.load(folder / "state.npz", allow_pickle=False) as file:
        arrays = dict(file)
    arrays["streams_cells"] = arrays["streams_cells"][:0]
    np.savez(folder / "state.npz", **arrays, allow_pickle=False)
    before = contents(tmp_path)

    out = tmp_path / "out.csv"  # a process of its own: kernels trust the sizes they are given
    outcome = run_command("synthesize", city, "-o", out, *resuming(folder, "--no-ledger"))

    assert_one_line(outcome, str(folder), "damaged", "start again")
    assert contents(tmp_path) == before


def test_a_checkpoint_folder_that_cannot_be_made_is_refused(small, tmp_path):
    for folder in (small, small / "kept", Path("/proc/kept")):
        refuse(
            tmp_path,
            small,
            [*UNIT_BOX, "--checkpoint", folder],
            f"checkpoint folder {folder}",
            "cannot be made",
        )


# Ctrl-C


@pytest.fixture(scope="module")
def long_stream(tmp_path_factory):
    """Thirty streams of 2500 timestamps: some seconds of work."""
    n_streams, n_timestamps = 30, 2500
    random = np.random.default_rng(0)
    columns = {
        "traj_id": np.repeat(np.arange(n_streams), n_timestamps),
        "t": np.tile(np.arange(n_timestamps), n_streams),
        "x": random.random(n_streams * n_timestamps),
        "y": random.random(n_streams * n_timestamps),
    }
    return write_table(tmp_path_factory.mktemp("long") / "in.parquet", columns)


def interrupt_once_begun(*arguments):
    """Run the command at a terminal, press Ctrl-C when its bar moves; return what it said."""
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=end,
        text=True,
        env=environment(TERM="xterm", COLUMNS="100", NUMBA_NUM_THREADS="2"),
    )
    os.close(end)
    seen, pressed, deadline = b"", False, time.monotonic() + PATIENCE
    try:
        while time.monotonic() < deadline:
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                data = os.read(terminal, 4096)
            except OSError:  # the other end was closed: the process has ended
                break
            seen += data
            if b"/s" in seen and not pressed:
                process.send_signal(signal.SIGINT)
                pressed = True
        out, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        os.close(terminal)
    return process.returncode, out, seen.decode()


@pytest.fixture(scope="module")
def interrupted(long_stream, tmp_path_factory):
    """A run without a checkpoint, interrupted: its exit code, what it said, what it left."""
    folder = tmp_path_factory.mktemp("interrupted")
    said = interrupt_once_begun("synthesize", long_stream, "-o", folder / "out.csv", *UNIT_BOX)
    return *said, contents(folder)


@pytest.mark.system
def test_ctrl_c_without_a_checkpoint_exits_130_and_writes_nothing(interrupted):
    code, out, said, left = interrupted

    assert (code, out, left) == (130, "", {})
    assert "nothing was written" in said
    assert "Traceback" not in said


@pytest.mark.system
def test_the_bar_shows_timestamps_done_and_per_second(interrupted):
    _, _, said, _ = interrupted

    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said)
    assert re.search(r"timestamps .* [1-9]\d*/2500 +[\d,]+/s ", plain)


@pytest.mark.system
def test_ctrl_c_with_a_checkpoint_keeps_it_and_resuming_gives_the_same_bytes(long_stream, tmp_path):
    whole, out, folder = tmp_path / "whole.csv", tmp_path / "out.csv", tmp_path / "kept"

    code, said_out, said = interrupt_once_begun(
        "synthesize", long_stream, "-o", out, *UNIT_BOX, *REPEATED, "--checkpoint", folder
    )
    left = sorted(path.name for path in tmp_path.iterdir())
    with np.load(folder / "state.npz", allow_pickle=False) as state:
        reached = int(state["clock"][1])
    resumed = run_command(
        *("synthesize", long_stream, "-o", out, *UNIT_BOX, *REPEATED),
        *("--checkpoint", folder, "--resume"),
        NUMBA_NUM_THREADS="1",
    )
    run("synthesize", long_stream, "-o", whole, *UNIT_BOX, *REPEATED)

    assert (code, said_out, left) == (130, "", ["kept"])
    assert f"--checkpoint {folder} --resume" in " ".join(said.split())
    assert 0 < reached < 2499
    assert resumed.code == 0
    assert same_columns(read_table(out), read_table(whole))
    assert run_of(out) == run_of(whole)
    assert not folder.exists()


def test_ctrl_c_after_the_last_timestamp_writes_nothing_either(small, tmp_path, monkeypatch):
    collect = Collected.trajectories

    def interrupted(self):
        signal.raise_signal(signal.SIGINT)
        return collect(self)

    monkeypatch.setattr(Collected, "trajectories", interrupted)
    before = contents(tmp_path)

    outcome = run("synthesize", small, "-o", tmp_path / "out.csv", *UNIT_BOX)

    assert outcome.code == 130
    assert uncounted(tmp_path) == before


def test_ctrl_c_while_writing_leaves_the_earlier_output_as_it_was(small, tmp_path, monkeypatch):
    out = tmp_path / "out.csv"
    run("synthesize", small, "-o", out, *UNIT_BOX)
    before = uncounted(tmp_path)

    def interrupted(self, n_rows):
        yield self
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Trajectories, "blocks", interrupted)

    outcome = run("synthesize", small, "-o", out, *UNIT_BOX, "--seed", 9)

    assert outcome.code == 130
    assert uncounted(tmp_path) == before


def test_the_first_ctrl_c_waits_for_the_timestamp_in_hand_and_no_longer():
    reached = []
    with contextlib.suppress(KeyboardInterrupt), interruptible_progress(quiet=True) as progress:
        signal.raise_signal(signal.SIGINT)
        reached.append("the end of the timestamp")
        progress(1, 2)
        reached.append("the next timestamp")

    assert reached == ["the end of the timestamp"]


def test_the_second_ctrl_c_does_not_wait():
    reached = []
    with contextlib.suppress(KeyboardInterrupt), interruptible_progress(quiet=True):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        reached.append("the end of the timestamp")

    assert reached == []


def test_ctrl_c_means_what_it_did_once_a_run_is_over():
    before = signal.getsignal(signal.SIGINT)
    with contextlib.suppress(KeyboardInterrupt), interruptible_progress(quiet=True) as progress:
        signal.raise_signal(signal.SIGINT)
        progress(1, 2)

    assert signal.getsignal(signal.SIGINT) is before


# Standard errors


def test_standard_errors_are_written_beside_the_stream(city, tmp_path):
    out, errors = tmp_path / "out.csv", tmp_path / "errors.csv"

    outcome = run("synthesize", city, "-o", out, *CITY_BOX, "--grid", 3, "--errors", errors)

    assert outcome.code == 0
    table = read_table(errors)
    assert [*table] == ["t", "cell", "to", "share", "standard_error"]
    assert {*table["cell"].tolist()} == {*range(9)}
    assert (table["standard_error"] > 0).all()
    assert receipt_of(out)["standard_error"]["cell"] > 0
