"""Public maps on the command line: what is used, what is said of it, and what is refused."""

import json

import pytest

from retrasyn import RoadNetwork, read, synthesize
from retrasyn.data.writing_roads import write_roads
from support.command_line import TWO_STREAMS, assert_one_line, run, write_table

FEW = ("--network", "city", "--size", 50, "--objects", 30, "--new", 3, "--steps", 12)


@pytest.fixture
def streams(tmp_path):
    return write_table(tmp_path / "in.csv", TWO_STREAMS)


@pytest.fixture
def roads(tmp_path):
    """A square with a crossing in its middle, around the streams."""
    network = RoadNetwork.from_edges(
        x=[0, 1, 1, 0, 0.5], y=[0, 0, 1, 1, 0.5], tail=[0, 1, 2, 3, 0, 2], head=[1, 2, 3, 0, 4, 4]
    )
    write_roads(network, tmp_path / "town.geojson")
    return tmp_path / "town.geojson"


def receipt_beside(out):
    return json.loads(out.with_name(f"{out.name}.receipt.json").read_text())


def test_with_roads_streams_drive_and_the_receipt_says_so(streams, roads, tmp_path):
    out = tmp_path / "out.csv"
    outcome = run("synthesize", streams, "-o", out, "--box", "0,0,1,1", "--roads", roads)

    assert outcome.code == 0, outcome.err
    receipt = receipt_beside(out)
    assert receipt["method"] == "steered-roads"
    assert receipt["public_map"]["public"] is True
    assert receipt["public_map"]["source"] == "roads of town.geojson"
    assert len(receipt["public_map"]["sha256"]) == 64
    assert any("traces the map was drawn" in line for line in receipt["not_protected"])
    shown = run("receipt", "show", f"{out}.receipt.json").out
    assert "roads of town.geojson (class" in shown or "roads of town.geojson (between" in shown
    assert run("receipt", "verify", f"{out}.receipt.json").code == 0


def test_a_prior_alone_leaves_streams_walking(streams, tmp_path):
    out = tmp_path / "out.csv"
    prior = "centre:0.5,0.5,0.2"
    outcome = run("synthesize", streams, "-o", out, "--box", "0,0,1,1", "--prior", prior)

    assert outcome.code == 0, outcome.err
    receipt = receipt_beside(out)
    assert (receipt["method"], receipt["public_map"]["weighting"]) == ("steered-map", prior)
    assert receipt["public_map"]["roads"] is False


def test_without_a_box_it_is_that_of_the_roads(streams, roads, tmp_path):
    out = tmp_path / "out.csv"
    outcome = run("synthesize", streams, "-o", out, "--roads", roads)

    assert "note: without --box, the box is that of the roads: 0,0,1,1" in outcome.err
    assert receipt_beside(out)["box"] == [0, 0, 1, 1]
    assert not receipt_beside(out)["box_inferred_from_data"]


def test_the_network_of_generated_data_is_found_beside_them(tmp_path):
    made, out = tmp_path / "made.parquet", tmp_path / "out.csv"
    assert run("generate", *FEW, "-o", made).code == 0
    assert (tmp_path / "made.roads.geojson").exists()

    outcome = run("synthesize", made, "-o", out)
    left = run("synthesize", made, "-o", out, "--method", "steered", "--box", "0,0,9000,9000")

    assert "streams drive on" in outcome.err
    assert "made.roads.geojson" in outcome.err
    assert "lies beside the data" not in left.err
    assert receipt_beside(out)["public_map"] is None


def test_python_takes_the_same_files(streams, roads, tmp_path):
    out = tmp_path / "out.csv"
    run("synthesize", streams, "-o", out, "--roads", roads, "--seed", 3, "--no-ledger")
    _, receipt = synthesize(read(streams), roads=roads, seed=3)
    _, walking = synthesize(read(streams), box=(0, 0, 1, 1), prior="centre:0,0,1", seed=3)

    assert receipt_beside(out) | {"data_file": None} == json.loads(receipt.to_json())
    assert walking.method == "steered-map"


def test_a_receipt_is_verified_by_running_again_with_its_map(streams, roads, tmp_path):
    out = tmp_path / "out.csv"
    run("synthesize", streams, "-o", out, "--roads", roads, "--seed", 3)
    verify = ("receipt", "verify", f"{out}.receipt.json", "--input", streams)

    assert "needs the public map" in run(*verify).out
    same, other = run(*verify, "--roads", roads), run(*verify, "--roads", roads, "--prior", "class")
    assert (same.code, other.code) == (0, 1)
    assert "run again from the input, with the same outcome" in same.out
    assert "public_map comes out otherwise" in other.out


def test_a_stream_line_names_the_map(roads):
    line = '{"t": 0, "traj_id": [1], "x": [0.5], "y": [0.5]}\n'
    outcome = run("stream", "--box", "0,0,1,1", "--roads", roads, stdin=line)

    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["receipt"]["public_map"]["public"] is True


def test_going_on_with_another_map_is_refused(streams, roads, tmp_path, monkeypatch):
    from retrasyn.simulation import run as runs

    kept = ("--checkpoint", tmp_path / "kept", "--box", "0,0,1,1")

    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runs.synthesize(
            read(streams),
            box=(0, 0, 1, 1),
            roads=roads,
            checkpoint=tmp_path / "kept",
            progress=interrupt,
        )
    out = tmp_path / "out.csv"
    other = tmp_path / "other.geojson"
    other.write_text(roads.read_text() + " ")
    again = ("synthesize", streams, "-o", out, *kept, "--resume")

    for options in (("--roads", other), ("--roads", roads, "--prior", "class")):
        assert_one_line(run(*again, *options), "made with another public map, or none")
    assert_one_line(run(*again, "--method", "steered"), "method=")
    outcome = run(*again, "--roads", roads)
    assert outcome.code == 0, outcome.err


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--prior", "centre:0,0,1"), "--prior needs --box"),
        (("--box", "0,0,1,1", "--prior", "betwen"), "did you mean between"),
        (("--box", "0,0,1,1", "--prior", "between"), "give roads as well"),
        (("--box", "5,5,6,6", "--roads", "town.geojson"), "is it a map of another place"),
        (("--roads", "none.geojson"), "none.geojson does not exist"),
        (("--roads", "in.csv"), "no known form"),
        (("--roads", "town.geojson", "--method", "retrasyn-p"), "retrasyn-p uses no public map"),
        (("--box", "0,0,1,1", "--method", "steered-roads"), "needs a public map"),
        (
            ("--box", "0,0,1,1", "--prior", "centre:0,0,1", "--method", "steered-roads"),
            "with roads",
        ),
    ],
)
def test_a_map_that_cannot_be_used_is_refused(
    streams, roads, tmp_path, monkeypatch, options, named
):
    monkeypatch.chdir(tmp_path)
    outcome = run("synthesize", "in.csv", "-o", "out.csv", *options)

    assert_one_line(outcome, named)
    assert not (tmp_path / "out.csv").exists()
