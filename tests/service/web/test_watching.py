"""A recording is shown by the same routes, the real data beside it, and no campaign behind it."""

import json

import pytest

from retrasyn.errors import InputError, SettingError
from retrasyn.metrics.divergence import jsd
from support import plain_frames as plain
from support.made_tiles import PICTURE, SHAPES, made, made_vector
from support.recording import Recording, crowd, nobody
from support.showing import shown

pytestmark = pytest.mark.system

BEIJING = (116.15, 39.75, 116.60, 40.10)


@pytest.fixture(scope="module")
def watched():
    """Synthetic and real points of some timestamps; the real ones begin later and end earlier."""
    real = crowd(2, range(1, 5))
    real._points[3] = nobody()
    with shown(crowd(1, [0, 1, 2, 3, 4, 6]), real) as one:
        yield one


def test_the_real_data_has_frames_of_its_own(watched):
    assert watched.ask("GET", "/v1/map").json()["mode"] == "simulation"
    for t in (1, 2, 4):
        found = plain.decode(watched.ask("GET", f"/v1/real/frames/{t}").body)
        points = watched.content.real._points[t]
        cells = list(plain.located(points, 3, (0, 0, 3, 3)).values())
        assert found["cells"] == [cells.count(cell) for cell in range(9)]
        assert found["ids"] == points.ids.tolist()
    few = plain.decode(watched.ask("GET", "/v1/real/frames/2?travellers=20").body)
    assert few["ids"] == [
        one for one, _, _ in plain.travellers(watched.content.real._points[2], 20, (0, 0, 3, 3))[1]
    ]
    assert watched.ask("GET", "/v1/real/frames/0").status == 404


def test_errors_are_told_where_there_is_something_real(watched):
    found = watched.ask("GET", "/v1/real/errors").json()
    content = watched.content
    assert found["t"] == [1, 2, 3, 4]
    wanted = [
        jsd(content.real.summary(t)["cells"], content.source.summary(t)["cells"])
        for t in (1, 2, 3, 4)
    ]
    assert found["density_error"] == pytest.approx(wanted)
    assert watched.ask("GET", "/v1/real/errors?from=2&to=2").json()["t"] == [2]
    assert watched.ask("GET", "/v1/real/errors?from=3&to=2").status == 422


def test_a_recording_is_documented_and_takes_no_reports(watched):
    paths = set(watched.ask("GET", "/openapi.json").json()["paths"])
    assert {"/v1/real/frames/{t}", "/v1/real/errors", "/v1/frames/{t}", "/v1/status"} <= paths
    assert not [path for path in paths if "report" in path or "enrol" in path or "oper" in path]
    for path in ("/v1/reports", "/v1/reports/batch", "/v1/enrolments", "/v1/operator/tokens"):
        assert watched.ask("POST", path, b"x").status == 404
    assert watched.ask("GET", "/v1/campaign").status == 404
    assert watched.ask("GET", "/healthz").json() == {"status": "ok"}


def test_releases_points_and_receipts_of_a_recording_are_there(watched):
    listed = watched.ask("GET", "/v1/releases").json()["releases"]
    assert [one["t"] for one in listed] == [0, 1, 2, 3, 4, 6]
    assert watched.ask("GET", "/v1/status").json()["newest_release"] == 6
    rows = watched.ask("GET", "/v1/points?from=4&to=4&format=csv").body.decode().splitlines()
    assert len(rows) == 401
    assert watched.ask("GET", "/v1/receipts/latest").json()["guarantee"] == "none"
    assert watched.ask("GET", "/v1/receipts/5").status == 404


def test_without_real_data_there_are_no_routes_to_it():
    with shown(crowd(1, [0])) as one:
        assert one.ask("GET", "/v1/map").json()["mode"] == "campaign"
        assert one.ask("GET", "/v1/real/frames/0").status == 404
        paths = one.ask("GET", "/openapi.json").json()["paths"]
        assert not [path for path in paths if "real" in path]


def test_a_range_has_the_latest_thousand_and_two_hundred_if_no_beginning_is_given():
    source = crowd(0, range(1200), n=2, n_ids=4)
    with shown(source) as one:
        usual = one.ask("GET", "/v1/count?box=0,0,3,3").json()
        assert usual["t"] == list(range(1000, 1200))
        assert one.ask("GET", "/v1/cells/0?to=999").json()["t"] == list(range(800, 1000))
        assert one.ask("GET", "/v1/count?box=0,0,3,3&from=0").json()["t"] == list(range(200, 1200))
        assert one.ask("GET", "/v1/cells/0?from=0&to=999").json()["t"] == list(range(1000))


def test_sixty_four_cells_a_side_are_shown(watched):
    source = crowd(9, [0, 1], side=64, n=3000, box=(0.0, 0.0, 3.0, 3.0))
    with shown(source, travellers=100) as one:
        answer = one.ask("GET", "/v1/frames/1")
        found = plain.decode(answer.body)
        points = source._points
        table, _ = plain.flows(points[0], points[1], 64, (0, 0, 3, 3))
        assert found["moves"] == plain.balance(table)
        assert found["ids"] == [
            number for number, _, _ in plain.travellers(points[1], 100, (0, 0, 3, 3))[1]
        ]
        history = one.ask("GET", "/v1/cells/4095").json()
        wanted = plain.history(points, 4095, [0, 1], 64, (0, 0, 3, 3))
        for name in ("t", "n", "inflow", "outflow"):
            assert history[name] == wanted[name]


def test_roads_are_served_zipped_and_only_once(tmp_path):
    line = [[x / 10, x % 3] for x in range(200)]
    path = tmp_path / "roads.geojson"
    path.write_text(json.dumps({"type": "LineString", "coordinates": line}))
    with shown(crowd(1, [0]), roads=path) as one:
        assert one.ask("GET", "/v1/map").json()["roads"] is True
        plainly = one.ask("GET", "/v1/map/roads")
        assert plainly.headers["content-type"] == "application/geo+json"
        assert plainly.json()["features"][0]["geometry"]["coordinates"] == [line]
        zipped = one.ask("GET", "/v1/map/roads", accept_encoding="gzip")
        assert len(zipped.body) < len(plainly.body) / 2
        again = one.ask("GET", "/v1/map/roads", if_none_match=zipped.headers["etag"])
        assert (again.status, again.body) == (304, b"")


def test_pictures_of_a_local_file_are_served_with_a_style_for_each_theme(tmp_path):
    source = Recording({0: nobody()}, box=BEIJING)
    with shown(source, tiles=made(tmp_path / "a.pmtiles")) as one:
        described = one.ask("GET", "/v1/map").json()
        assert described["style"] == "/v1/map/style.json"
        assert described["coordinates"] == "degrees"
        assert described["attribution"] == "© the makers"
        light = one.ask("GET", "/v1/map/style.json").json()
        assert light != one.ask("GET", "/v1/map/style.json?theme=dark").json()
        assert light["sources"]["base"]["tiles"] == ["/v1/map/tiles/{z}/{x}/{y}"]
        tile = one.ask("GET", "/v1/map/tiles/0/0/0")
        assert (tile.status, tile.body) == (200, PICTURE)
        assert tile.headers["content-type"] == "image/png"
        assert "content-encoding" not in tile.headers
        assert one.ask("GET", "/v1/map/tiles/1/0/1").status == 204
        assert one.ask("GET", "/v1/map/tiles/1/2/0").status == 404


def test_shapes_are_sent_as_they_are_stored_or_unzipped_for_those_who_cannot(tmp_path):
    source = Recording({0: nobody()}, box=BEIJING)
    with shown(source, tiles=made_vector(tmp_path / "a.pmtiles")) as one:
        zipped = one.ask("GET", "/v1/map/tiles/0/0/0", accept_encoding="br, gzip;q=0.5")
        assert zipped.headers["content-encoding"] == "gzip"
        assert zipped.headers["content-type"] == "application/vnd.mapbox-vector-tile"
        assert zipped.body == SHAPES
        for said in ("identity", "gzip;q=0", "gzip;q=0.00"):
            plainly = one.ask("GET", "/v1/map/tiles/0/0/0", accept_encoding=said)
            assert "content-encoding" not in plainly.headers
            assert plainly.body == b"made up shapes"


def test_a_base_map_that_cannot_be_read_is_refused_at_the_start(tmp_path):
    with (
        pytest.raises(InputError, match=r"map\.tiles"),
        shown(Recording({0: nobody()}, box=BEIJING), tiles=tmp_path / "none.pmtiles"),
    ):
        pass
    with (
        pytest.raises(SettingError, match="neither in degrees"),
        shown(Recording({0: nobody()}, box=(0, 0, 1e9, 1e9)), style="https://a.org/s.json"),
    ):
        pass
