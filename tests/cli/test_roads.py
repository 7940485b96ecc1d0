"""``retrasyn roads``: what was understood of a road network, with a picture."""

import json

import pytest

from support.command_line import assert_refused, run

NETWORK = ("--network", "city", "--size", 50, "--objects", 5, "--new", 1, "--steps", 3)


@pytest.fixture
def city(tmp_path):
    assert run("generate", *NETWORK, "-o", tmp_path / "city.parquet").code == 0
    return tmp_path / "city.roads.geojson"


def test_everything_that_was_understood_is_told(city):
    outcome = run("roads", city)

    assert (outcome.code, outcome.err) == (0, "")
    told = dict(line.split(maxsplit=1) for line in outcome.out.splitlines()[1:])
    assert outcome.out.startswith(str(city))
    assert told["nodes"] == "73, of which 0 are dead ends"
    assert "0 motorway" in told["classes"]
    assert told["one-ways"] == "0"
    assert told["prior"] == "between"
    assert len(told["sha256"]) == 64


def test_json_is_all_that_is_printed_and_a_box_cuts(city):
    whole = json.loads(run("roads", city, "--json").out)
    half = json.loads(run("roads", city, "--json", "--box", "0,0,400,400", "--prior", "length").out)

    assert whole["map"]["public"] is True
    assert whole["n_cut"] == 0 < half["n_cut"]
    assert half["n_edges"] < whole["n_edges"]
    assert half["map"]["weighting"] == "length"
    assert half["map"]["sha256"] == whole["map"]["sha256"]


@pytest.mark.filterwarnings("ignore:.*disconnected")
def test_what_was_left_out_is_counted(tmp_path):
    def road(*places, **tags):
        shape = {"type": "LineString", "coordinates": places}
        return {"type": "Feature", "properties": tags, "geometry": shape}

    path = tmp_path / "town.geojson"
    features = [
        road([0, 0], [1, 0], [1, 1], [0, 0], highway="primary", oneway="yes"),
        road([1, 0], [0, 0], highway="service"),
        road([1, 1], [9, 9], highway="primary", oneway="yes"),
        road([5, 5], [6, 6], highway="steps"),
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    outcome = run("roads", path)

    assert "1 lines that are no roads for cars, 1 loops or roads beside" in outcome.out
    assert "1 nodes without a way to the others and back" in outcome.out
    assert "EPSG:4326" in outcome.out
    assert "one-ways    2" in outcome.out


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture_is_drawn_the_same_again(city, tmp_path, ending):
    pytest.importorskip("matplotlib")
    one, again = tmp_path / f"one.{ending}", tmp_path / f"again.{ending}"
    for plot in (one, again):
        outcome = run("roads", city, "--plot", plot)
        assert outcome.code == 0, outcome.err
        assert outcome.out.endswith(f"plot: {plot}\n")

    assert one.read_bytes() == again.read_bytes()
    assert one.read_bytes()[:4] == {"png": b"\x89PNG", "svg": b"<?xm"}[ending]


def test_roads_without_classes_are_drawn_too(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "town.geojson"
    path.write_text('{"type": "LineString", "coordinates": [[8, 53], [8.1, 53], [8.1, 53.2]]}')
    outcome = run("roads", path, "--plot", tmp_path / "town.png")

    assert "classes     none: all roads are as fast" in outcome.out
    assert "prior       length" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("none.geojson",), ("none.geojson does not exist",)),
        (("town.txt",), ("no known form",)),
        (("city.roads.geojson", "--plot", "plot.pdf"), ("plot.pdf", ".png or .svg")),
        (("city.roads.geojson", "--box", "1,2"), ("'1,2'", "four numbers")),
        (("city.roads.geojson", "--box", "9e6,9e6,9.1e6,9.1e6"), ("map of another place",)),
        (("city.roads.geojson", "--prior", "clas"), ("did you mean class",)),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(city, tmp_path, monkeypatch, arguments, names):
    monkeypatch.chdir(tmp_path)
    assert_refused(tmp_path, ("roads", *arguments), *names)
