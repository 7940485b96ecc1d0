"""``retrasyn generate``: a network in, a stream of moving objects out."""

import json

import numpy as np
import pytest

from support.command_line import (
    assert_one_line,
    assert_refused,
    contents,
    read_table,
    run,
    run_command,
)

FEW = ("--objects", 20, "--new", 2, "--steps", 11)


@pytest.fixture
def roads(tmp_path):
    """A square of four nodes with one diagonal, as .cnode and .cedge."""
    (tmp_path / "map.cnode").write_text("0 0 0\n1 10 0\n2 10 10\n3 0 10\n")
    (tmp_path / "map.cedge").write_text("0 0 1 10\n1 1 2 10\n2 2 3 10\n3 3 0 10\n4 0 2 14.2\n")
    return tmp_path / "map.cnode"


def test_a_network_file_becomes_a_stream_with_a_summary(roads, tmp_path):
    out = tmp_path / "out.parquet"

    outcome = run("generate", "--network", roads, *FEW, "-o", out)

    assert outcome.code == 0, outcome.err
    table = read_table(out)
    assert list(table) == ["traj_id", "t", "x", "y"]
    assert table["x"].dtype == np.float64
    assert np.unique(table["traj_id"]).tolist() == list(range(40))
    assert table["t"].max() <= 10
    lines = dict(line.rsplit(maxsplit=1) for line in outcome.out.splitlines()[1:])
    assert outcome.out.startswith(str(out))
    assert lines["  streams"] == "40"
    assert lines["  points"] == f"{table['t'].size:,}"
    assert lines["  steps"] == "11"
    assert float(lines["  mean length"]) == pytest.approx(table["t"].size / 40, abs=0.01)


def test_the_city_needs_no_file_and_json_is_all_that_is_printed(tmp_path):
    out = tmp_path / "out.csv"

    outcome = run("generate", "--network", "city", "--size", 50, *FEW, "--json", "-o", out)

    summary = json.loads(outcome.out)
    assert outcome.err == ""
    assert summary["streams"] == 40
    assert summary["nodes"] >= 50
    assert summary["points"] == read_table(out)["t"].size


def test_the_same_seed_writes_the_same_bytes(tmp_path):
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        arguments = ("--network", "city", "--size", 50, *FEW, "--seed", seed)
        assert run("generate", *arguments, "-o", tmp_path / f"{name}.parquet").code == 0

    written = contents(tmp_path)
    assert written["a.parquet"] == written["b.parquet"] != written["c.parquet"]


def test_rhythm_reroute_and_speed_change_the_stream(tmp_path):
    changes = {
        "plain": (),
        "rhythm": ("--rhythm", 8),
        "reroute": ("--reroute", 4),
        "speed": ("--speed", 0.05),
    }
    for name, more in changes.items():
        arguments = ("--network", "city", "--size", 50, *FEW, *more)
        assert run("generate", *arguments, "-o", tmp_path / f"{name}.parquet").code == 0

    streams = {path.read_bytes() for path in tmp_path.glob("*.parquet")}
    networks = {path.read_bytes() for path in tmp_path.glob("*.roads.geojson")}
    assert (len(streams), len(networks)) == (len(changes), 1)


def test_a_network_file_can_be_rerouted_and_is_the_same_before(roads, tmp_path):
    for name, more in (("plain", ()), ("turned", ("--reroute", 6))):
        outcome = run("generate", "--network", roads, *FEW, *more, "-o", tmp_path / f"{name}.csv")
        assert outcome.code == 0, outcome.err

    plain, turned = (read_table(tmp_path / f"{name}.csv") for name in ("plain", "turned"))
    for column in ("traj_id", "t", "x", "y"):
        early = [table[column][table["t"] < 6] for table in (plain, turned)]
        assert np.array_equal(*early)
    assert not np.array_equal(plain["x"], turned["x"])


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("--network", "city", "--speed", 0), ("speed=0",)),
        (("--network", "city", "--steps", 0), ("steps=0",)),
        (("--network", "city", "--size", 1), ("size=1",)),
        (("--network", "city", "--reroute", 99, "--steps", 9), ("reroute=99", "0 to 8")),
        (("--network", "city", "--reroute", -1, "--steps", 9), ("reroute=-1", "0 to 8")),
        (("--network", "nowhere.cnode"), ("nowhere.cnode", "does not exist")),
        (("--network", "map.xyz"), ("map.xyz", "no known form", ".geojson")),
        (("--network", "map.cnode", "--size", 9), ("--size 9", "city")),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line_and_nothing_is_written(arguments, names, tmp_path):
    assert_refused(tmp_path, ("generate", *arguments, "-o", tmp_path / "out.parquet"), *names)


def test_a_bad_line_is_named_with_file_and_number(roads, tmp_path):
    edges = roads.with_suffix(".cedge")
    edges.write_text(edges.read_text() + "5 0 9 1.0\n")

    assert_refused(
        tmp_path,
        ("generate", "--network", roads, "-o", tmp_path / "out.parquet"),
        f"{edges}, line 6",
        "node 9",
    )


def test_an_output_that_cannot_be_written_is_refused_first(tmp_path):
    outcome = run("generate", "--network", "nowhere.cnode", "-o", tmp_path / "no" / "out.parquet")

    assert_one_line(outcome, "does not exist", str(tmp_path / "no"))


@pytest.mark.system
def test_a_disconnected_network_gives_one_warning_line(roads, tmp_path):
    roads.write_text(roads.read_text() + "4 50 50\n")

    outcome = run_command("generate", "--network", roads, *FEW, "-o", tmp_path / "out.parquet")

    assert outcome.code == 0
    assert outcome.err.count("\n") == 1
    assert outcome.err.startswith("WARNING: ")
    assert "1 of 5 nodes" in outcome.err


def test_the_roads_that_were_driven_can_be_written_beside_the_stream(roads, tmp_path):
    lines = tmp_path / "roads.geojson"

    outcome = run("generate", "--network", roads, *FEW, "-o", tmp_path / "o.csv", "--roads", lines)

    assert outcome.code == 0, outcome.err
    collection = json.loads(lines.read_text())
    drawn = [
        sorted(map(tuple, line))
        for feature in collection["features"]
        for line in feature["geometry"]["coordinates"]
    ]
    corners = [(0, 0), (10, 0), (10, 10), (0, 10)]
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
    assert sorted(drawn) == sorted(sorted([corners[a], corners[b]]) for a, b in edges)
    assert {feature["geometry"]["type"] for feature in collection["features"]} == {
        "MultiLineString"
    }


def test_roads_that_cannot_be_written_are_refused_before_anything_is_made(roads, tmp_path):
    arguments = ("generate", "--network", roads, *FEW, "-o", tmp_path / "out.csv", "--roads")

    assert_refused(tmp_path, (*arguments, tmp_path / "roads.txt"), "roads.txt", ".geojson")
    assert_refused(tmp_path, (*arguments, tmp_path / "none" / "r.geojson"), "create it first")
