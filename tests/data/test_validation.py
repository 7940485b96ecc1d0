"""Every rule that synthesis relies on, and the rows that break it."""

import json

import geopandas
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st

from retrasyn.data import Trajectories, read, write
from retrasyn.data.validation import N_SHOWN, RULES, validate
from retrasyn.errors import InputError, SettingError
from retrasyn.space import Grid
from support.streams import BOX, recordings

COLUMNS = {
    "traj_id": [3, 3, 3, 8, 8],
    "t": [0, 1, 2, 1, 2],
    "x": [0.1, 0.2, 0.3, 0.8, 0.9],
    "y": [0.1, 0.1, 0.2, 0.7, 0.7],
}
NAMES = ["traj_id", "t", "x", "y", "user_id"]


def found(source, **options):
    """Return the rules broken and the first rows that break each."""
    return {
        fault.rule: [offence.row for offence in fault.first]
        for fault in validate(source, **options).faults
    }


def rows_of(real):
    """Return a recording as lists of cells, in the order of NAMES."""
    users = real.traj_id if real.user_id is None else real.user_id
    columns = (real.traj_id, real.t, real.x, real.y, users)
    return [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def save(path, rows):
    if path.suffix == ".csv":
        lines = [NAMES, *rows]
        cells = (["" if cell is None else str(cell) for cell in line] for line in lines)
        path.write_text("\n".join(map(",".join, cells)) + "\n")
    else:
        columns = zip(*rows, strict=True)
        table = {name: list(column) for name, column in zip(NAMES, columns, strict=True)}
        pa.parquet.write_table(pa.table(table), path)
    return path


def reads(path):
    try:
        real = read(path)
    except InputError:
        return False
    return Grid(BOX, 6).locate(real.x, real.y)[1] == 0


# What is found


@given(real=recordings(), suffix=st.sampled_from([".csv", ".parquet", ".geoparquet"]))
def test_a_file_we_wrote_keeps_every_rule(tmp_path_factory, real, suffix):
    path = tmp_path_factory.mktemp("good") / f"in{suffix}"
    write(real, path)

    good = validate(path, box=BOX, grid=4)

    assert good.usable
    assert good.faults == ()
    assert good.notes == ()
    assert (good.n_points, good.n_streams) == (real.n_points, real.n_streams)
    users = None if real.user_of_stream is None else np.unique(real.user_of_stream).size
    assert good.n_users == users
    assert good.n_timestamps == real.last_t - real.first_t + 1
    assert good.n_jumps == count_jumps(real, Grid(BOX, 4))


def count_jumps(real, grid):
    cells = grid.cells_of(real.x, real.y).tolist()
    return sum(
        cells[row] not in grid.neighbours(cells[row - 1])
        for begin, end in zip(real.starts[:-1], real.starts[1:], strict=True)
        for row in range(begin + 1, end)
    )


def lose_a_cell(rows, at, draw):
    rows[at][draw(st.integers(0, 4))] = None
    return "empty"


def lose_a_number(rows, at, draw):
    rows[at][draw(st.integers(2, 3))] = draw(st.sampled_from([float("nan"), float("inf")]))
    return "finite"


def cut_a_time_in_half(rows, at, draw):
    for row in rows:
        row[1] = float(row[1])
    rows[at][1] += 0.5
    return "whole"


def use_a_clock(rows, at, draw):
    rows[at][1] = draw(st.sampled_from([1_202_000_000_000, -3_000_000_000]))
    return "clock"


def go_outside(rows, at, draw):
    rows[at][draw(st.integers(2, 3))] = draw(st.sampled_from([-0.001, 1.5]))
    return "outside"


def write_twice(rows, at, draw):
    rows.insert(at + 1, list(rows[at]))
    return "twice"


def tear_a_gap(rows, at, draw):
    del rows[at]
    return "gap"


def change_the_user(rows, at, draw):
    rows[at][4] = 999
    return "user"


def be_in_two_places(rows, at, draw):
    rows.insert(at + 1, [999, *rows[at][1:]])
    return "two places"


def write_a_word(rows, at, draw):
    rows[at][draw(st.integers(1, 3))] = draw(st.sampled_from(["abc", "1,5".replace(",", ";"), "-"]))
    return "kind"


def drop_a_cell(rows, at, draw):
    rows[at].pop()
    return "cells"


FAULTS = [
    *(lose_a_cell, lose_a_number, cut_a_time_in_half, use_a_clock, go_outside, write_twice),
    *(tear_a_gap, change_the_user, be_in_two_places, write_a_word, drop_a_cell),
]
MOVES_ON = (write_twice, be_in_two_places)
ONLY_TEXT = (write_a_word, drop_a_cell)
ONLY_INSIDE = (tear_a_gap, change_the_user)


def inside(rows, at):
    """Say whether a row has one of its stream before and after it."""
    return 0 < at < len(rows) - 1 and rows[at - 1][0] == rows[at][0] == rows[at + 1][0]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@given(real=recordings(max_users=6), data=st.data())
def test_a_seeded_fault_is_found_and_its_row_named(tmp_path_factory, fault, real, data):
    rows = rows_of(real) + [[500, t, 0.5, 0.5, 500] for t in range(3)]
    places = [at for at in range(len(rows)) if fault not in ONLY_INSIDE or inside(rows, at)]
    at = data.draw(st.sampled_from(places))
    suffix = ".csv" if fault in ONLY_TEXT else data.draw(st.sampled_from([".csv", ".parquet"]))
    rule = fault(rows, at, data.draw)
    path = save(tmp_path_factory.mktemp("bad") / f"in{suffix}", rows)

    bad = validate(path, box=BOX)

    broken = {offence.rule: offence for offence in bad.faults}
    assert rule in broken, bad
    first = broken[rule].first[0]
    assert first.row == at + 1 + (fault in MOVES_ON)
    assert not bad.usable
    if fault in MOVES_ON:
        assert f"row {at + 1} already" in first.why
    if rule != "cells":
        cells = dict(zip(NAMES, rows[first.row - 1], strict=True))
        for name, cell in first.cells.items():
            assert cell == cells[name] or str(cell) == str(cells[name]), (name, cell)


@given(real=recordings(max_users=5), data=st.data())
def test_a_file_is_usable_exactly_if_it_can_be_read(tmp_path_factory, real, data):
    rows = rows_of(real)
    suffix = data.draw(st.sampled_from([".csv", ".parquet"]))
    allowed = [fault for fault in FAULTS if suffix == ".csv" or fault not in ONLY_TEXT]
    allowed.remove(drop_a_cell) if drop_a_cell in allowed else None
    for fault in data.draw(st.lists(st.sampled_from(allowed), max_size=3)):
        at = data.draw(st.integers(0, len(rows) - 1))
        if fault is tear_a_gap and not inside(rows, at):
            continue
        try:
            fault(rows, at, data.draw)
        except (TypeError, ValueError):  # an earlier fault left no number to change
            continue
    if data.draw(st.booleans()):
        rows = data.draw(st.permutations(rows))
    path = save_if_possible(tmp_path_factory.mktemp("any") / f"in{suffix}", rows)

    assert validate(path, box=BOX).usable == reads(path)


def save_if_possible(path, rows):
    try:
        return save(path, rows)
    except (pa.ArrowException, TypeError):
        assume(False)


def test_all_faults_are_found_at_once(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(
        "traj_id,t,x,y,user_id\n"
        "1,0,0.1,0.1,5\n1,1,abc,0.1,5\n1,2,0.1\n1,3,nan,0.1,5\n1,3,0.2,0.1,5\n1,5,,9,5\n"
        "2,0,0.2,0.2,5\n2,1.5,0.2,0.2,6\n3,3000000000,0.2,0.2,8\n4,0,1,1,1\n4,1,1,1,2\n"
    )

    assert found(path, box=BOX) == {
        "cells": [3],
        "kind": [2],
        "empty": [6],
        "finite": [4],
        "whole": [8],
        "clock": [9],
        "twice": [5],
        "gap": [4, 6],
        "user": [11],
        "two places": [7],
        "outside": [6],
    }


def test_faults_come_in_the_order_of_the_rules_and_are_counted_beyond_the_first():
    faults = validate(
        {**COLUMNS, "x": [float("nan")] * 5, "t": [0] * 5, "y": [None, 1, 2, 3, 4]}
    ).faults

    assert [fault.rule for fault in faults] == ["empty", "finite", "twice"]
    assert [fault.count for fault in faults] == [1, 5, 3]
    many = validate({name: column * 3 for name, column in COLUMNS.items()}).faults[0]
    assert (many.count, len(many.first)) == (10, N_SHOWN)
    assert [offence.row for offence in many.first] == [6, 7, 8, 9, 10]


def test_unsorted_rows_are_a_note_and_no_fault():
    shuffled = validate({name: column[::-1] for name, column in COLUMNS.items()})

    assert shuffled.usable
    assert shuffled.notes == ("rows are not sorted by (traj_id, t); synthesize sorts them",)


def test_missing_and_doubled_columns_are_named_and_the_rest_is_checked(tmp_path):
    (tmp_path / "in.csv").write_text("traj_id,x,x,y\n1,0,0,nan\n")

    bad = validate(tmp_path / "in.csv")

    whys = [offence.why for offence in bad.faults[0].first]
    assert whys == ["t is missing; there are 'traj_id', 'x', 'x', 'y'", "x is there 2 times"]
    assert [fault.rule for fault in bad.faults] == ["columns", "finite"]
    assert (bad.n_streams, bad.n_timestamps, bad.n_jumps) == (1, None, None)


def test_a_file_with_none_of_our_columns_lacks_all_of_them(tmp_path):
    (tmp_path / "in.csv").write_text("a;b\n1;2\n")

    assert validate(tmp_path / "in.csv").faults[0].count == 4


@pytest.mark.parametrize(
    ("name", "column", "rule"),
    [
        ("t", pd.to_datetime(["2008-02-02"] * 5), "clock"),
        ("traj_id", pd.to_datetime(["2008-02-02"] * 5), "kind"),
        ("x", ["0.1"] * 5, "kind"),
        ("x", [[1.0]] * 5, "kind"),
        ("traj_id", [b"a"] * 5, "kind"),
        ("traj_id", np.array([2**63] * 5, np.uint64), "whole"),
        ("user_id", ["a", "", "a", "b", "b"], "empty"),
        ("t", [0, 1, 2, 1, 20_000_000], "clock"),
    ],
)
def test_columns_of_the_wrong_kind_are_found(name, column, rule):
    columns = {**COLUMNS, name: column}

    assert rule in found(columns)
    with pytest.raises((InputError, SettingError)):
        Trajectories.from_frame(
            pa.table({name: pa.array(cells) for name, cells in columns.items()})
        )


def test_a_word_far_down_in_a_csv_file_is_found(tmp_path):
    lines = [f"{row},0,{row % 7},0.5" for row in range(200_000)]
    lines[180_000] = "180000,0,lost,0.5"
    (tmp_path / "in.csv").write_text("traj_id,t,x,y\n" + "\n".join(lines) + "\n")

    bad = validate(tmp_path / "in.csv")

    assert [(fault.rule, fault.count, fault.first[0].row) for fault in bad.faults] == [
        ("kind", 1, 180_001)
    ]


def test_fractions_far_down_in_a_csv_file_are_numbers_to_all(tmp_path):
    lines = [f"{row},0,{row % 7},0.5" for row in range(200_000)]
    lines[180_000] = "bus,0.0,0.25,0.5"
    (tmp_path / "in.csv").write_text("traj_id,t,x,y\n" + "\n".join(lines) + "\n")

    assert validate(tmp_path / "in.csv").usable
    assert read(tmp_path / "in.csv").n_points == 200_000


def test_points_of_geoparquet_are_checked(tmp_path):
    points = [shapely.Point(0, 0), None, shapely.Point(5, 5), shapely.Point(1, 1), shapely.Point()]
    columns = {name: COLUMNS[name] for name in ("traj_id", "t")}
    frame = geopandas.GeoDataFrame(columns, geometry=points)
    frame.to_parquet(tmp_path / "in.geoparquet")

    assert found(tmp_path / "in.geoparquet", box=BOX) == {
        "empty": [2],
        "finite": [5],
        "outside": [3],
    }


@pytest.mark.parametrize("make", [dict, pa.table, pd.DataFrame, pl.DataFrame])
def test_frames_and_columns_are_checked_like_files(make):
    assert validate(make(COLUMNS)).n_streams == 2
    assert found(make({**COLUMNS, "t": [0, 1, 3, 1, 2]})) == {"gap": [3]}


def test_trajectories_always_keep_every_rule():
    assert validate(Trajectories.from_columns(**COLUMNS)).usable


def test_without_a_box_jumps_are_counted_over_the_data_itself():
    free = validate({**COLUMNS, "x": [0, 9, 0, 5, 5], "y": [0, 9, 0, 5, 5]})

    assert free.box == (0, 0, 9, 9)
    assert free.n_jumps == 2


def test_findings_are_written_as_json():
    bad = json.loads(validate({**COLUMNS, "x": [float("nan"), 1, 2, 3, 4]}, box=BOX).to_json())

    assert bad["usable"] is False
    assert bad["counts"] == {
        "points": 5,
        "streams": 2,
        "users": None,
        "timestamps": 3,
        "jumps": 0,
    }
    finite, outside = bad["faults"]
    assert finite == {
        "rule": "finite",
        "meaning": RULES["finite"],
        "count": 1,
        "first": [
            {
                "row": 1,
                "why": "x=nan",
                "cells": {"traj_id": 3, "t": 0, "x": "nan", "y": 0.1},
            }
        ],
    }
    assert outside["count"] == 3


# What is refused


@pytest.mark.parametrize("name", ["no.csv", "in.txt", "."])
def test_what_is_no_file_is_refused_as_reading_refuses_it(name, tmp_path):
    (tmp_path / "in.txt").write_text("traj_id\n1\n")

    with pytest.raises(InputError):
        validate(tmp_path / name)


def test_a_box_without_area_is_refused():
    with pytest.raises(SettingError, match="has no area"):
        validate(COLUMNS, box=(0, 0, 0, 1))


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(InputError, match="no table"):
        validate({**COLUMNS, "x": [1]})
