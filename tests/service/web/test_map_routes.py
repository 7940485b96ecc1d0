"""The map's own routes on a campaign: frames, cells and counts of what was really released."""

import csv
import io

import numpy as np
import pyarrow.parquet as pq
import pytest

from retrasyn.service.viewing.source import TimestampPoints
from support import plain_frames as plain
from support.living import living

TIMES = [0, 1, 2, 4, 5]  # of releases; 3 was deleted by an operator
SIDE, BOX = 6, (0.0, 0.0, 10.0, 10.0)


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """A service that has released six timestamps of fifty devices, one of which is gone again."""
    folder = tmp_path_factory.mktemp("mapped") / "folder"
    with living(folder) as live:
        devices = live.enrol(50)
        for t in range(6):
            live.open_round(t)
            for device in devices[: 50 - 3 * t]:
                assert live.send(live.heartbeat(device, t)) == "accepted"
            for device in devices[8 * t : 8 * (t + 1)]:
                assert live.send(live.report(device, t)) == "accepted"
            live.release(t)
        releases = live.service.runtime.releases
        live.points = {t: parquet(releases.path(t)) for t in range(6)}
        releases.path(3).unlink()
        del live.points[3]
        yield live


def parquet(path):
    """Read a release as anybody would."""
    table = pq.read_table(path)
    return TimestampPoints(*(table.column(name).to_numpy() for name in ("traj_id", "x", "y")))


def frame(live, t, query=""):
    answer = live.ask("GET", f"/v1/frames/{t}{query}")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/octet-stream"
    return plain.decode(answer.body)


@pytest.mark.parametrize("t", TIMES)
def test_a_frame_is_what_a_loop_over_the_release_finds(mapped, t):
    found, points = frame(mapped, t), mapped.points[t]
    listed = mapped.ask("GET", f"/v1/releases/{t}").json()
    for name in ("t", "n_points", "n_born", "n_ended", "n_reports", "cells"):
        assert found[name] == listed[name]
    assert found["has_moves"] == (t - 1 in mapped.points)
    if found["has_moves"]:
        table, _ = plain.flows(mapped.points[t - 1], points, SIDE, BOX)
        assert found["moves"] == plain.balance(table)
        assert sum(table) == found["n_points"] - found["n_born"]
    k, left = plain.travellers(points, 3000, BOX)
    assert (found["sampled"], k) == (0, 0)
    assert [*zip(found["ids"], found["x"], found["y"], strict=True)] == left


def test_a_frame_is_an_average_of_the_latest_timestamps_if_asked(mapped):
    found = frame(mapped, 5, "?over=4")
    assert found["rounds"] == 3, "one of the four was deleted"
    cells = [mapped.ask("GET", f"/v1/releases/{t}").json()["cells"] for t in (2, 4, 5)]
    assert found["cells"] == pytest.approx(np.mean(cells, axis=0))
    assert found["ids"] == frame(mapped, 5)["ids"], "travellers are those of the timestamp"


@pytest.mark.parametrize("most", [0, 1, 7, 20, 10_000])
def test_as_many_travel_as_are_asked_for(mapped, most):
    found = frame(mapped, 5, f"?travellers={most}")
    if most == 0:
        assert found["ids"] == []
    else:
        k, left = plain.travellers(mapped.points[5], most, BOX)
        assert found["sampled"] == k
        assert found["ids"] == [one for one, _, _ in left]


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/v1/frames/3", 404),
        ("/v1/frames/6", 404),
        ("/v1/frames/4294967295", 404),
        ("/v1/frames/4294967296", 422),
        ("/v1/frames/-1", 422),
        ("/v1/frames/x", 422),
        ("/v1/frames/0?travellers=10001", 422),
        ("/v1/frames/0?travellers=-1", 422),
        ("/v1/frames/0?over=0", 422),
        ("/v1/frames/0?over=121", 422),
        ("/v1/cells/36", 404),
        ("/v1/cells/4095", 404),
        ("/v1/cells/4096", 422),
        ("/v1/cells/-1", 422),
        ("/v1/cells/0?from=3&to=2", 422),
        ("/v1/count", 422),
        ("/v1/count?box=", 422),
        ("/v1/count?box=1,2,3", 422),
        ("/v1/count?box=1,2,3,4,5", 422),
        ("/v1/count?box=nan,0,1,1", 422),
        ("/v1/count?box=0,0,inf,1", 422),
        ("/v1/count?box=0,0,1e999,1", 422),
        ("/v1/count?box=-1e999,0,1,1", 422),
        ("/v1/count?box=0x1,0,1,1", 422),
        ("/v1/count?box=1_0,0,11,1", 422),
        ("/v1/count?box=2,0,1,1", 422),
        ("/v1/count?box=0,2,1,1", 422),
        ("/v1/count?box=0,0,1,1&from=3&to=2", 422),
        ("/v1/count?box=0,0,1,1&format=xlsx", 422),
        ("/v1/count?box=0,0,1,1&from=-1", 422),
        ("/v1/map/roads", 404),
        ("/v1/map/style.json", 404),
        ("/v1/map/style.json?theme=pink", 422),
        ("/v1/map/tiles/0/0/0", 404),
        ("/v1/map/tiles/32/0/0", 422),
        ("/v1/map/tiles/0/x/0", 422),
    ],
)
def test_what_is_not_there_or_no_question_is_refused(mapped, address, status):
    answer = mapped.ask("GET", address)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status


@pytest.mark.parametrize("cell", [0, 5, 14, 35])
def test_the_history_of_a_cell_is_what_a_loop_over_the_releases_finds(mapped, cell):
    found = mapped.ask("GET", f"/v1/cells/{cell}").json()
    wanted = plain.history(mapped.points, cell, TIMES, SIDE, BOX)
    assert found.pop("cell") == cell
    assert [found.pop(f"{name}_band") for name in ("n", "inflow", "outflow")] == [None] * 3
    for one in found["destinations"] + found["origins"]:
        assert (one.pop("low"), one.pop("high")) == (None, None)
    # The summary of the release that is gone is still there, so its points are still counted.
    place = found["t"].index(3)
    gone = {name: found[name].pop(place) for name in ("t", "n", "inflow", "outflow")}
    assert gone["t"] == 3
    assert gone["inflow"] is gone["outflow"] is None
    assert found == wanted


def test_a_range_of_a_history_holds_its_ends(mapped):
    found = mapped.ask("GET", "/v1/cells/7?from=1&to=2").json()
    assert found["t"] == [1, 2]
    assert None not in found["inflow"]
    assert mapped.ask("GET", "/v1/cells/7?from=70").json()["t"] == []


@pytest.mark.parametrize(
    "box",
    ["0,0,10,10", "2.5,1e0,7.25,9.875", "-5,-5,3,3", "20,20,30,30", "+1.,.5,9,9.0", "4,4,4,4"],
)
def test_counts_are_those_of_a_loop_over_the_releases(mapped, box):
    found = mapped.ask("GET", f"/v1/count?box={box.replace('+', '%2B')}").json()
    corners = [float(part) for part in box.split(",")]
    assert found["box"] == corners
    assert found["t"] == TIMES
    assert found["n"] == [plain.inside(mapped.points[t], corners) for t in TIMES]


def test_a_count_can_be_downloaded_with_its_times(mapped):
    answer = mapped.ask("GET", "/v1/count?box=0,0,5,5&from=1&to=4&format=csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="count.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.body.decode())))
    counted = mapped.ask("GET", "/v1/count?box=0,0,5,5&from=1&to=4").json()
    assert [int(row["t"]) for row in rows] == counted["t"] == [1, 2, 4]
    assert [int(row["n"]) for row in rows] == counted["n"]
    times = [mapped.ask("GET", f"/v1/releases/{t}").json()["time"] for t in (1, 2, 4)]
    assert [row["time"] for row in rows] == times


def test_the_status_tells_the_first_and_the_latest_release(mapped):
    status = mapped.ask("GET", "/v1/status").json()
    assert (status["oldest_release"], status["newest_release"]) == (0, 5)


def test_a_page_is_told_what_there_is_to_draw(mapped):
    assert mapped.ask("GET", "/v1/map").json() == {
        "mode": "campaign",
        "unfolds": True,
        "coordinates": "plain",
        "style": None,
        "roads": False,
        "attribution": "",
        "travellers": 3000,
        "zones": None,
    }


def test_a_campaign_knows_nothing_real(mapped):
    for address in ("/v1/real/frames/0", "/v1/real/errors", "/v1/real"):
        assert mapped.ask("GET", address).status == 404
    assert not [
        path for path in mapped.ask("GET", "/openapi.json").json()["paths"] if "real" in path
    ]


def test_before_anything_is_released_histories_and_counts_are_empty(tmp_path):
    with living(tmp_path / "folder", grid=1) as live:
        assert live.ask("GET", "/v1/count?box=0,0,1,1").json()["t"] == []
        assert live.ask("GET", "/v1/cells/0").json()["t"] == []
        assert live.ask("GET", "/v1/frames/0").status == 404
        status = live.ask("GET", "/v1/status").json()
        assert status["oldest_release"] is status["newest_release"] is None


def test_a_release_of_nobody_has_an_empty_frame(tmp_path):
    with living(tmp_path / "folder", grid=2) as live:
        live.open_round(0)
        live.release(0)
        found = frame(live, 0)
        assert (found["n_points"], found["cells"], found["ids"]) == (0, [0] * 4, [])
        assert live.ask("GET", "/v1/count?box=0,0,9,9").json()["n"] == [0]
        assert live.ask("GET", "/v1/cells/3").json()["n"] == [0]


def test_reports_are_acknowledged_while_counts_are_made(mapped, monkeypatch):
    import threading

    started, go_on = threading.Event(), threading.Event()
    original = type(mapped.service.runtime.releases).places_at

    def slow(self, t):
        started.set()
        assert go_on.wait(20)
        return original(self, t)

    monkeypatch.setattr(type(mapped.service.runtime.releases), "places_at", slow)
    asked = [
        threading.Thread(target=mapped.ask, args=("GET", "/v1/count?box=0,0,1,1")) for _ in range(8)
    ]
    for thread in asked:
        thread.start()
    try:
        assert started.wait(20)
        mapped.open_round(6)
        (device,) = mapped.enrol(1)
        assert mapped.send(mapped.report(device, 6)) == "accepted"
        assert frame(mapped, 5)["t"] == 5
        assert np.sum(frame(mapped, 4)["cells"]) == len(mapped.points[4].ids)
    finally:
        go_on.set()
        for thread in asked:
            thread.join()
