"""Each question equals its plain loop, for polygons with holes and overlaps and for grids."""

import math
from itertools import pairwise

import numpy as np
import pytest

import naive
from retrasyn import Box, Grid, Trajectories, ask
from retrasyn.errors import SettingError
from support.asked import CLOCK, RINGS, by_key, paths_of, wanderers, write_zones

BOX = Box(0, 0, 10, 10)
N_TIMESTAMPS = 40


def in_polygons(x, y):
    name = naive.zone_of(x, y, RINGS)
    return "outside" if name == "-" else name


def in_cells(x, y):
    return str(naive.cell_of(x, y, BOX, 4))


def everything(t):
    return 0


def in_sevens(t):
    return t // 7 * 7


@pytest.fixture(scope="module")
def data():
    return wanderers(clock=CLOCK)


@pytest.fixture(params=["polygons", "grid"])
def zoned(request, tmp_path):
    """Zones as they are asked for, and as a function of a point."""
    if request.param == "grid":
        return Grid(BOX, 4), in_cells
    return write_zones(tmp_path / "zones.geojson"), in_polygons


def positive(values):
    return {key: value for key, value in values.items() if value}


@pytest.mark.parametrize(("by", "when", "columns"), [(None, everything, ()), (7, in_sevens, "t")])
def test_counts_are_means_over_timestamps(data, zoned, by, when, columns):
    zones, where = zoned

    found = ask(data, "counts", zones=zones, by=by, box=BOX)

    plain = naive.people_present(paths_of(data), where, when, N_TIMESTAMPS)
    expected = {((key[0], key[1]) if columns else (key[1],)): n for key, n in plain.items()}
    assert positive(by_key(found, *columns, "zone")) == pytest.approx(expected)


def test_every_zone_and_period_has_a_count_even_of_nobody(data):
    found = ask(data, "counts", zones="grid:9", by=3, box=(0, 0, 30, 30))

    assert len(found) == 81 * 14
    assert (found["value"] == 0).sum() > 81 * 14 / 2
    assert found["timestamps"].reshape(14, 81)[:, 0].tolist() == [3] * 13 + [1]


@pytest.mark.parametrize(("by", "when", "columns"), [(None, everything, ()), (7, in_sevens, "t")])
@pytest.mark.parametrize("what", ["flows", "od"])
def test_moves_and_trips_are_counted_between_zones(data, zoned, what, by, when, columns):
    zones, where = zoned
    count = naive.moves_between if what == "flows" else naive.trips_between

    found = ask(data, what, zones=zones, by=by, box=BOX)

    plain = count(paths_of(data), where, when)
    expected = {(key if columns else key[1:]): n for key, n in plain.items()}
    assert by_key(found, *columns, "origin", "destination") == expected
    assert sum(expected.values()) > 200


@pytest.mark.parametrize("what", ["flows", "od"])
def test_many_zones_and_periods_are_counted_without_a_table_of_all_pairs(data, what):
    few, many = (ask(data, what, zones=f"grid:{side}", by=1, box=BOX) for side in (4, 64))

    assert few["value"].sum() < many["value"].sum() if what == "flows" else many["value"].sum()
    cells = Grid(BOX, 64)
    plain = (naive.moves_between if what == "flows" else naive.trips_between)(
        paths_of(data), lambda x, y: str(naive.cell_of(x, y, BOX, cells.side)), lambda t: t
    )
    assert by_key(many, "t", "origin", "destination") == plain


def test_a_span_knows_what_is_around_it(data):
    def within(t):
        return 0 if 10 <= t <= 15 else None

    paths, zones = paths_of(data), {"zones": "grid:4", "box": BOX, "start": 10, "end": 15}

    moves = by_key(ask(data, "flows", **zones), "origin", "destination")
    trips = by_key(ask(data, "od", **zones), "origin", "destination")

    assert moves == {key[1:]: n for key, n in naive.moves_between(paths, in_cells, within).items()}
    assert trips == {key[1:]: n for key, n in naive.trips_between(paths, in_cells, within).items()}


def test_profiles_are_by_the_time_of_day(data):
    def hour(t):
        return f"{(22 + t) % 24 // 6 * 6:02}:00"

    found = ask(data, "profile", by="6h", zones="grid:4", box=BOX)

    plain = naive.people_present(paths_of(data), in_cells, hour, N_TIMESTAMPS)
    assert positive(by_key(found, "time_of_day", "zone")) == pytest.approx(plain)
    alone = ask(data, "profile", by="6h")
    whole = naive.people_present(paths_of(data), lambda *_: "all", hour, N_TIMESTAMPS)
    expected = {(time,): n for (time, _), n in whole.items()}
    assert by_key(alone, "time_of_day") == pytest.approx(expected)


@pytest.mark.parametrize(("zones", "by"), [(None, None), ("grid:2", 20)])
def test_trips_have_means_deciles_and_classes(data, zones, by):
    found = ask(data, "trips", zones=zones, by=by, box=BOX)

    columns = [*(["t", "zone"] if zones else []), "measure", "statistic"]
    values = by_key(found, *columns)
    groups = {}
    for begin, path in paths_of(data):
        group = (begin // 20 * 20, str(naive.cell_of(*path[0], BOX, 2))) if zones else ()
        length = sum(math.dist(a, b) for a, b in pairwise(path))
        groups.setdefault((*group, "length"), []).append(length)
        groups.setdefault((*group, "duration"), []).append((len(path) - 1) * 60.0)
    for group, each in groups.items():
        for statistic, value in naive.spread_of(each).items():
            assert values.pop((*group, statistic)) == pytest.approx(value), (group, statistic)
        assert values.pop((*group, "trips")) == len(each)
        of_class = {key: n for key, n in values.items() if key[:-1] == group}
        assert sum(of_class.values()) == len(each)
        assert of_class.get((*group, "trips 2 to 5"), 0) == sum(2 <= value < 5 for value in each)


def test_lengths_are_kilometres_where_coordinates_are_degrees():
    north = Trajectories.from_columns(
        traj_id=[1, 1], t=[0, 1], x=[8.0, 8.0], y=[53.0, 54.0], crs="EPSG:4326"
    )

    found = ask(north, "trips")

    assert by_key(found, "measure", "statistic")["length", "mean"] == pytest.approx(
        111.19, abs=0.01
    )
    assert set(found["unit"].tolist()) == {"km", "timestamps"}


def test_hotspots_are_the_busiest_zones_of_each_period(data):
    found = ask(data, "hotspots", zones="grid:4", by=20, box=BOX, top=3)

    plain = naive.people_present(paths_of(data), in_cells, lambda t: t // 20 * 20, N_TIMESTAMPS)
    for begin in (0, 20):
        there = {zone: n for (t, zone), n in plain.items() if t == begin}
        best = sorted(there, key=lambda zone: (-there[zone], int(zone)))[:3]
        rows = found["t"] == begin
        assert found["zone"][rows].tolist() == best
        assert found["rank"][rows].tolist() == [1, 2, 3]


def test_what_is_outside_every_zone_is_no_hotspot(data):
    found = ask(data, "hotspots", zones="grid:2", box=(0, 0, 0.5, 0.5), top=10)

    assert sorted(found["zone"].tolist()) == ["0", "1", "2", "3"]


def test_an_answer_of_too_many_rows_is_refused(data):
    with pytest.raises(SettingError, match=r"more than 1,000,000; ask for fewer or larger zones"):
        ask(wanderers(n_timestamps=400), "counts", zones="grid:64", by=1, box=BOX)


def test_no_figure_depends_on_the_size_of_blocks(data, monkeypatch):
    asked = [("counts", 7), ("flows", 7), ("trips", None)]
    whole = [ask(data, what, zones="grid:4", by=by, box=BOX)["value"] for what, by in asked]

    monkeypatch.setattr("retrasyn.answers.base._ROWS", 50)

    for (what, by), before in zip(asked, whole, strict=True):
        again = ask(data, what, zones="grid:4", by=by, box=BOX)["value"]
        assert np.array_equal(again, before)
