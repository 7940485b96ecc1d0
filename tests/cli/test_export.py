"""`retrasyn export`: a release in, what another tool reads out."""

import dataclasses
import json

import geopandas
import pytest

import retrasyn
from retrasyn.cli.export import Tool
from retrasyn.data.writing_roads import write_roads
from retrasyn.errors import OutputError
from retrasyn.exports import EXPORTS, export
from support.command_line import assert_refused, run
from support.exported import CLOCK, city, plain, roads

OUT = {name: f"out{(row.endings or ('',))[0]}" for name, row in EXPORTS.items()}


@pytest.fixture
def release(tmp_path):
    """Return a file that says its clock and system, with a receipt beside it."""
    retrasyn.write(city(), tmp_path / "real.parquet")
    options = ("--box", "446000,5887000,447200,5888200", "--grid", 5, "--window", 3, "--no-ledger")
    made = run("synthesize", tmp_path / "real.parquet", "-o", tmp_path / "made.parquet", *options)
    assert made.code == 0, made.err
    return tmp_path / "made.parquet"


def test_every_tool_is_offered():
    assert set(Tool.__args__) == set(EXPORTS)


@pytest.mark.parametrize("tool", list(EXPORTS))
def test_every_tool_is_written_for_and_said_so(tool, release, tmp_path):
    outcome = run("export", release, "--to", tool, "-o", tmp_path / OUT[tool])

    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"{tmp_path / OUT[tool]}: ")
    assert (tmp_path / OUT[tool]).exists()
    told = run("export", release, "--to", tool, "-o", tmp_path / OUT[tool], "--json")
    assert json.loads(told.out)["said"][0] in outcome.out
    assert run("export", release, "--to", tool, "-o", tmp_path / OUT[tool], "--quiet").out == ""


@pytest.mark.parametrize(("zones", "n"), [((), 25), (("--zones", "grid:3"), 9)])
def test_trips_are_counted_between_the_cells_of_the_release_or_other_zones(
    zones, n, release, tmp_path
):
    write_roads(roads(), tmp_path / "roads.geojson")
    words = ("--to", "sumo", "-o", tmp_path / "sumo", "--roads", tmp_path / "roads.geojson", *zones)

    outcome = run("export", release, *words)

    assert outcome.code == 0, outcome.err
    assert f"trips between {n} zones" in outcome.out
    assert (tmp_path / "sumo/taz.xml").read_text().count("<taz ") == n
    programs = [line.split()[0] for line in outcome.out.splitlines()[1:]]
    assert programs == ["netconvert", "od2trips", "duarouter", "sumo"]


def test_without_roads_it_says_what_zones_lack(release, tmp_path):
    outcome = run("export", release, "--to", "sumo", "-o", tmp_path / "sumo")
    assert "give --roads" in outcome.out


@pytest.mark.parametrize("tool", ["sumo", "matsim", "kepler", "qgis"])
def test_a_clock_that_is_not_known_is_asked_for_and_taken(tool, tmp_path):
    retrasyn.write(plain(), tmp_path / "in.csv")
    words = ["export", tmp_path / "in.csv", "--to", tool, "-o", tmp_path / OUT[tool]]

    assert_refused(tmp_path, words, "needs real times", "--begin", "--every")

    outcome = run(*words, "--begin", "2026-05-04T06:00+02:00", "--every", "10min")
    assert outcome.code == 0, outcome.err


def test_what_is_told_of_clock_and_system_stands_in_the_output(tmp_path):
    far = plain(x=[9e5, 9.1e5, 9.2e5], y=[7e6, 7e6, 7.01e6])
    retrasyn.write(far, tmp_path / "in.csv")
    known = ("--begin", "2026-05-04", "--every", "1h", "--crs", "EPSG:3857")

    outcome = run(
        "export", tmp_path / "in.csv", "--to", "qgis", "-o", tmp_path / "out.gpkg", *known
    )

    assert outcome.code == 0, outcome.err
    frame = geopandas.read_file(tmp_path / "out.gpkg", layer="points")
    assert frame.crs == "EPSG:3857"
    assert [at.isoformat() for at in frame["time"]][1] == "2026-05-04T01:00:00+00:00"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--to", "kepler", "-o", "out.parquet"], ["out.parquet", ".geojson or .json"]),
        (["--to", "matsim", "-o", "out"], [".xml or .xml.gz"]),
        (["--to", "kepler", "-o", "none/out.json"], ["none does not exist"]),
        (["--to", "sumo", "-o", "in.csv"], ["is a file; sumo needs a folder"]),
        (["--to", "sumo", "-o", "none/out"], ["none does not exist"]),
        (["--to", "vissim", "-o", "out"], ["'vissim'", "'sumo'"]),
        (["--to", "kepler", "-o", "out.json", "--zones", "grid:3"], ["--zones is for sumo"]),
        (["--to", "kepler", "-o", "out.json", "--begin", "2026-05-04"], ["--every stand together"]),
        (["--to", "kepler", "-o", "o.json", "--begin", "soon", "--every", "1h"], ["'soon'"]),
        (["--to", "kepler", "-o", "o.json", "--begin", "2026-05-04", "--every", "x"], ["'x'"]),
        (["--to", "pmtiles", "-o", "o.pmtiles"], ["--crs EPSG:3857"]),
        (["--to", "pmtiles", "-o", "o.pmtiles", "--crs", "moon"], ["moon"]),
        (["--to", "sumo", "-o", "s", "--crs", "moon"], ["'moon'"]),
        (["--to", "sumo", "-o", "s", "--zones", "none.geojson"], ["none.geojson"]),
        (["--to", "sumo", "-o", "s", "--zones", "grid:x"], ["grid:x"]),
        (["--to", "sumo", "-o", "s", "--roads", "none.net.xml"], ["none.net.xml"]),
        (["--to", "sumo", "-o", "s", "--roads", "none.geojson"], ["none.geojson"]),
    ],
)
def test_a_wrong_word_is_one_line_and_leaves_nothing(words, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    retrasyn.write(plain(x=[1e3, 2e3, 3e3]), tmp_path / "in.csv")
    if "sumo" in words and "in.csv" not in words:
        words = [*words, "--begin", "2026-05-04", "--every", "1h"]
    assert_refused(tmp_path, ["export", "in.csv", *words], *named)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("", "in.csv"),
        ("traj_id,t,x,y\n", "no rows"),
        ("traj_id,t,x,y\n1,0,nan,0\n", "nan"),
        ("traj_id,t,x,y\n1,0,0,0\n1,2,0,0\n", "missing between t=0 and t=2"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(content, named, tmp_path):
    (tmp_path / "in.csv").write_text(content)
    words = ["export", tmp_path / "in.csv", "--to", "kepler", "-o", tmp_path / "out.json"]
    assert_refused(tmp_path, words, named)


def test_what_is_read_is_not_overwritten(release, tmp_path):
    assert_refused(
        tmp_path, ["export", release, "--to", "geoparquet2", "-o", release], "is the input itself"
    )
    nowhere = ["export", tmp_path / "none.csv", "--to", "kepler", "-o", tmp_path / "out.json"]
    assert_refused(tmp_path, nowhere, "none.csv")


def test_trajectories_are_written_from_python(tmp_path):
    said = export(plain(clock=CLOCK), tmp_path / "out.json", "kepler")
    assert said == ["2 lines with times"]
    empty = plain()._of_streams(0, 0)
    with pytest.raises(OutputError, match="no points"):
        export(empty, tmp_path / "other.json", "kepler")


def test_a_clock_that_is_told_goes_before_that_of_the_data(tmp_path):
    other = dataclasses.replace(CLOCK, epoch="2001-01-01T00:00:00+00:00")
    export(plain(clock=other), tmp_path / "o.json", "kepler", begin="2026-05-04", every=60)
    first = json.loads((tmp_path / "o.json").read_text())["features"][0]
    assert [place[3] for place in first["geometry"]["coordinates"]] == [1777852800, 1777852860]
