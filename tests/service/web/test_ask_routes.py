"""Questions over HTTP: the same rows as `retrasyn ask` gives of the same releases and replicas."""

import csv
import io
import json

import pyarrow.parquet as pq
import pytest

import retrasyn
from retrasyn import Box, Grid
from retrasyn.data.replica_files import replica_folder
from retrasyn.service.viewing.recordings import InMemory
from retrasyn.service.web import ask_routes
from support.command_line import run
from support.living import living
from support.showing import shown

N_ROUNDS, REPLICAS = 6, 3
ZONES = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {"name": name},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[x, 0], [x + 5, 0], [x + 5, 10], [x, 10], [x, 0]]],
            },
        }
        for name, x in (("west", 0), ("east", 5))
    ],
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A service with replicas that has released six timestamps, and what can be fetched of it."""
    folder = tmp_path_factory.mktemp("asked")
    (folder / "districts.geojson").write_text(json.dumps(ZONES))
    settings = {"replicates": REPLICAS, "fewest": 1, "map.zones": folder / "districts.geojson"}
    with living(folder / "service", **settings) as live:
        devices = live.enrol(60)
        for t in range(N_ROUNDS):
            live.open_round(t)
            for device in devices[: 60 - 2 * t]:
                assert live.send(live.heartbeat(device, t)) == "accepted"
            for device in devices[10 * t : 10 * (t + 1)]:
                assert live.send(live.report(device, t)) == "accepted"
            live.release(t)
        live.file = folder / "all.parquet"
        replica_folder(live.file).mkdir()
        fetch(live, live.file, "")
        for number in range(1, REPLICAS + 1):
            fetch(live, replica_folder(live.file) / f"{number:04}.parquet", f"&replica={number}")
        yield live


def fetch(live, path, query):
    answer = live.ask("GET", f"/v1/points?from=0&to={N_ROUNDS - 1}{query}")
    assert answer.status == 200
    path.write_bytes(answer.body)


def rows_of_command(live, tmp_path, *words):
    """Return what `retrasyn ask` says of the file that was fetched."""
    out = tmp_path / "answer.csv"
    done = run("ask", live.file, *words, "-o", out, "--box", "0,0,10,10")
    assert done.code == 0, done.err
    with out.open() as file:
        return list(csv.DictReader(file))


def rows_of_service(live, query):
    answer = live.ask("GET", f"/v1/ask/{query}&format=csv")
    assert answer.status == 200, answer.body
    return list(csv.DictReader(io.StringIO(answer.body.decode())))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("counts?zones=cells&by=2", ("counts", "--zones", "grid:6", "--by", "2")),
        ("od?zones=grid:3", ("od", "--zones", "grid:3")),
        ("flows?zones=grid:2&by=2min", ("flows", "--zones", "grid:2", "--by", "2min")),
        ("hotspots?zones=grid:3&top=4", ("hotspots", "--zones", "grid:3", "--top", "4")),
        ("profile?zones=grid:2&by=1h", ("profile", "--zones", "grid:2", "--by", "1h")),
        ("trips?by=6", ("trips", "--by", "6")),
    ],
)
def test_an_answer_is_the_one_of_the_command_on_the_same_releases(asked, query, words, tmp_path):
    mine, theirs = rows_of_service(asked, query), rows_of_command(asked, tmp_path, *words)
    assert mine == theirs
    assert len(mine) > 0
    assert any(float(row["standard_error"] or 0) > 0 for row in mine)


def test_zones_of_the_operator_are_known_by_the_name_of_their_file(asked):
    rows = asked.ask("GET", "/v1/ask/counts?zones=districts").json()["rows"]
    assert [row["zone"] for row in rows] == ["west", "east"]
    mean = sum(60 - 2 * t for t in range(N_ROUNDS)) / N_ROUNDS
    assert sum(row["value"] for row in rows) == pytest.approx(mean)
    shapes = asked.ask("GET", "/v1/ask/counts?zones=districts&format=geojson").json()
    assert shapes["features"][0]["geometry"]["type"] == "Polygon"


def test_json_says_what_was_gone_through_and_has_the_rows_of_the_csv(asked):
    found = asked.ask("GET", "/v1/ask/counts?zones=grid:2&by=3&from=1&to=4").json()
    assert (found["first"], found["last"], found["n_replicas"]) == (1, 4, REPLICAS)
    rows = rows_of_service(asked, "counts?zones=grid:2&by=3&from=1&to=4")
    assert [row["time"] for row in found["rows"]] == [row["time"] for row in rows]
    assert [row["value"] for row in found["rows"]] == [float(row["value"]) for row in rows]


def test_without_a_range_the_latest_releases_are_asked_and_with_one_what_there_is_of_it(asked):
    usual = asked.ask("GET", "/v1/ask/flows").json()
    assert (usual["first"], usual["last"]) == (0, N_ROUNDS - 1)
    later = asked.ask("GET", "/v1/ask/flows?from=4&to=99").json()
    assert (later["first"], later["last"]) == (4, N_ROUNDS - 1)
    whole = asked.ask("GET", "/v1/ask/flows?by=1").json()["rows"]
    later = asked.ask("GET", "/v1/ask/flows?by=1&from=4").json()["rows"]
    assert later == [row for row in whole if row["t"] >= 4], "moves into round 4 are seen"


@pytest.mark.parametrize(
    "query",
    [
        "counts?zones=nowhere",
        "counts?zones=grid:0",
        "counts?zones=grid:999",
        "counts?zones=h3:99",
        "counts?zones=../../etc/passwd",
        "counts?zones=/etc/passwd.geojson",
        "counts?by=1s",
        "counts?by=NaN",
        "counts?from=3&to=1",
        "counts?top=0",
        "counts?format=parquet",
        "trips?format=geojson",
        "everything",
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence_that_repeats_nothing(asked, query):
    answer = asked.ask("GET", f"/v1/ask/{query}")
    assert answer.status == 422
    said = answer.json()["detail"]
    for word in ("nowhere", "passwd", "NaN", "999", "everything"):
        assert word not in said


def test_a_recording_answers_as_well_and_without_replicas_claims_nothing():
    city = retrasyn.demo_city(n_users=200, n_timestamps=30, seed=1)
    with shown(InMemory.of_recording(city, Grid(Box(0, 0, 10, 10), 6))) as live:
        found = live.ask("GET", "/v1/ask/od?zones=grid:2&by=10&from=0").json()
    theirs = retrasyn.ask(city, "od", zones="grid:2", by=10, box=(0, 0, 10, 10))
    assert [row["value"] for row in found["rows"]] == theirs["value"].tolist()
    assert {row["unclear"] for row in found["rows"]} == {None}


def test_a_range_of_nothing_is_not_found(asked):
    assert asked.ask("GET", "/v1/ask/counts?from=99").status == 404


def test_an_answer_goes_through_max_points_at_most(asked, monkeypatch):
    monkeypatch.setattr(ask_routes, "MAX_SPAN", 3)
    assert asked.ask("GET", "/v1/ask/counts?from=0").status == 422
    assert asked.ask("GET", "/v1/ask/counts?from=3").status == 200


def test_an_answer_is_made_once(asked):
    asked.ask("GET", "/v1/ask/od?zones=grid:4&by=5")
    releases = asked.service.runtime.releases
    places = [releases._replicas_place(t) for t in range(N_ROUNDS)]
    kept = [place.read_bytes() for place in places]
    try:
        first = asked.ask("GET", "/v1/ask/od?zones=grid:4&by=5").body
        for place in places:
            place.unlink()
        assert asked.ask("GET", "/v1/ask/od?zones=grid:4&by=5").body == first
        bare = asked.ask("GET", "/v1/ask/od?zones=grid:4&by=4").json()
        assert bare["n_replicas"] == 0
        assert {row["standard_error"] for row in bare["rows"]} == {None}
    finally:
        for place, content in zip(places, kept, strict=True):
            place.write_bytes(content)


def test_a_replica_is_a_population_of_its_own_and_has_no_number_beyond_the_last(asked):
    tables = [pq.read_table(asked.file)]
    tables += [pq.read_table(path) for path in sorted(replica_folder(asked.file).iterdir())]
    assert len(tables) == 1 + REPLICAS
    assert {table.num_rows for table in tables} == {tables[0].num_rows}  # how many is public
    assert len({str(table.column("x").to_pylist()) for table in tables}) == 1 + REPLICAS
    assert asked.ask("GET", f"/v1/points?replica={REPLICAS + 1}").status == 404
    assert asked.ask("GET", "/v1/points?replica=0").status == 422
