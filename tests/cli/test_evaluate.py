"""``retrasyn evaluate``: ten figures, what is mended on the way, and what is refused."""

import errno
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

import retrasyn
from retrasyn.data.trajectories import Trajectories
from retrasyn.data.writing_files import write
from retrasyn.data.writing_roads import roads_beside, write_roads
from retrasyn.metrics import suite
from retrasyn.roads.reading_networks import read_network
from support.command_line import (
    COMMAND,
    PATIENCE,
    TWO_STREAMS,
    assert_refused,
    contents,
    environment,
    run,
    run_command,
    write_table,
)

KEYS = [
    *("density_error", "query_error", "hotspot_ndcg", "transition_error", "pattern_f1"),
    *("kendall_tau", "trip_error", "length_error", "duration_error", "stream_ratio"),
]
BETTER = {
    "Density error": "smaller",
    "Query error": "smaller",
    "Hotspot NDCG": "larger",
    "Transition error": "smaller",
    "Pattern F1": "larger",
    "Kendall tau": "larger",
    "Trip error": "smaller",
    "Length error": "smaller",
    "Duration error": "smaller",
    "Stream ratio": "closer to 1",
}
UNIT_BOX = ("--box", "0,0,1,1")
DRAWN = {"query_error", "hotspot_ndcg", "pattern_f1"}  # the figures that random spans enter
OF_COORDINATES = {"query_error", "length_error"}  # those for which a point is not just its cell


@pytest.fixture(scope="module")
def made(city, tmp_path_factory):
    """Another eighty commuters, with a receipt that names the box."""
    path = tmp_path_factory.mktemp("made") / "made.parquet"
    write(retrasyn.demo_city(n_users=80, n_timestamps=60, seed=2), path)
    path.with_name("made.parquet.receipt.json").write_text('{"box": [0, 0, 10, 10]}')
    return path


@pytest.fixture(scope="module")
def synthesised(city, tmp_path_factory):
    """What synthesize makes of the city, with its receipt."""
    out = tmp_path_factory.mktemp("synthesised") / "out.parquet"
    assert run("synthesize", city, "-o", out, "--box", "0,0,12,12", "--seed", 1).code == 0
    return out


def figures(real, synthetic, *flags):
    """Return the figures and what was said about them."""
    outcome = run("evaluate", real, synthetic, "--json", *flags)
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out), outcome.err


def rows(out):
    """Return the cells of every row of a printed table by its first one."""
    lines = [line.strip("│").split("│") for line in out.splitlines() if line.startswith("│")]
    return {first.strip(): [cell.strip() for cell in cells] for first, *cells in lines}


def walk(n, *, streams=1, x=0.1, y=0.1, first=0):
    """Return streams of n points that stand still."""
    return {
        "traj_id": [number for number in range(streams) for _ in range(n)],
        "t": [t for _ in range(streams) for t in range(first, first + n)],
        "x": [x] * (n * streams),
        "y": [y] * (n * streams),
    }


def joined(*tables):
    """Put streams of several tables together under names of their own."""
    columns = {"traj_id": [], "t": [], "x": [], "y": []}
    for number, table in enumerate(tables):
        columns["traj_id"] += [1000 * number + name for name in table["traj_id"]]
        for name in ("t", "x", "y"):
            columns[name] += table[name]
    return columns


# What is printed


def test_the_table_says_for_every_metric_what_is_better(city, made):
    outcome = run("evaluate", city, made)

    assert outcome.code == 0
    found = rows(outcome.out)
    assert found.pop("metric") == ["figure", "better"]
    assert {title: better for title, (_, better) in found.items()} == BETTER
    assert "grid 6, 60 timestamps, span 20" in outcome.out


def test_the_table_shows_the_figures_of_the_json(city, made):
    found, _ = figures(city, made)

    shown = rows(run("evaluate", city, made).out)

    for metric in suite.METRICS:
        assert shown[metric.title][0] == f"{found[metric.key]:.4f}"


@pytest.mark.system
def test_json_prints_exactly_ten_figures_and_nothing_else(city, made):
    outcome = run_command("evaluate", city, made, "--json")

    assert outcome.code == 0
    found = json.loads(outcome.out)
    assert list(found) == KEYS
    assert all(isinstance(figure, float) for figure in found.values())


def test_a_narrow_terminal_cuts_no_figure_short(city, made, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")

    shown = rows(run("evaluate", city, made).out)

    assert {title: better for title, (_, better) in shown.items() if title in BETTER} == BETTER


def test_data_against_itself_is_perfect(city):
    found, said = figures(city, city)

    assert [found[key] for key in KEYS if key.endswith("error")] == [0] * 6
    assert (found["hotspot_ndcg"], found["pattern_f1"], found["stream_ratio"]) == (1, 1, 1)
    assert said == ""


def test_what_cannot_be_compared_is_a_dash_and_null(small):
    found, _ = figures(small, small, *UNIT_BOX, "--grid", 1)
    shown = rows(run("evaluate", small, small, *UNIT_BOX, "--grid", 1).out)

    assert found["kendall_tau"] is None
    assert shown["Kendall tau"] == ["-", "larger"]


def test_formats_may_differ(small, tmp_path):
    other = write_table(tmp_path / "other.parquet", TWO_STREAMS)

    assert figures(small, other)[0] == figures(small, small)[0]


def test_unsorted_rows_are_noted_by_their_file(small, tmp_path):
    backwards = {name: column[::-1] for name, column in TWO_STREAMS.items()}
    source = write_table(tmp_path / "backwards.csv", backwards)

    found, said = figures(small, source)

    assert said.startswith(f"note: {source}: rows were not sorted")
    assert said.count("\n") == 1
    assert found == figures(small, small)[0]


# Options

OF_CELLS = set(KEYS) - {"query_error", "length_error", "duration_error", "stream_ratio"}
CHANGES = {
    "grid": (("--grid", 4), {"grid": 4}, OF_CELLS),
    "span": (("--span", 5), {"span": 5}, DRAWN),
    "seed": (("--seed", 9), {"seed": 9}, DRAWN),
    "queries": (("--queries", 10), {"n_queries": 10}, DRAWN),
    "top cells": (("--top-cells", 3), {"top_cells": 3}, {"hotspot_ndcg"}),
    "top patterns": (("--top-patterns", 7), {"top_patterns": 7}, {"pattern_f1"}),
    "box": (("--box", "-1,-1,11,11"), {"box": (-1, -1, 11, 11)}, {*OF_CELLS, "query_error"}),
}


@pytest.mark.parametrize("case", CHANGES)
def test_an_option_changes_what_it_is_about_and_nothing_else(case, city, made):
    flags, settings, changed = CHANGES[case]
    usual, _ = figures(city, made)

    found, _ = figures(city, made, *flags)

    assert {key for key in KEYS if found[key] != usual[key]} == changed
    real, synthetic = retrasyn.read(city), retrasyn.read(made)
    settings = {"box": (0, 0, 10, 10), **settings}
    assert found == retrasyn.evaluate(real, synthetic, **settings).to_dict()


def test_the_same_seed_gives_the_same_figures(city, made):
    assert figures(city, made, "--seed", 3) == figures(city, made, "--seed", 3)


def test_a_span_longer_than_the_stream_is_all_of_it(city, made):
    assert figures(city, made, "--span", 60) == figures(city, made, "--span", 61)


# The box


def test_the_box_is_that_of_the_receipt(city, synthesised):
    assert figures(city, synthesised) == figures(city, synthesised, "--box", "0,0,12,12")


def test_without_a_receipt_the_box_is_that_of_the_real_data(tmp_path):
    columns = joined(walk(200, x=0.2, y=0.3), walk(200, x=0.8, y=0.9))
    real = write_table(tmp_path / "real.csv", columns)
    columns["x"][:100] = [0.25] * 100
    synthetic = write_table(tmp_path / "synthetic.csv", columns)

    assert figures(real, synthetic) == figures(real, synthetic, "--box", "0.2,0.3,0.8,0.9")
    assert figures(real, synthetic) != figures(real, synthetic, *UNIT_BOX)


def test_a_receipt_that_names_no_box_leaves_it_to_the_real_data(small, tmp_path):
    synthetic = write_table(tmp_path / "synthetic.csv", TWO_STREAMS)
    alone = figures(small, synthetic)
    (tmp_path / "synthetic.csv.receipt.json").write_text('{"method": "another"}')

    assert figures(small, synthetic) == alone


BROKEN_RECEIPTS = {
    "no JSON": (b"{broken", "cannot be read"),
    "empty": (b"", "cannot be read"),
    "no text": (b"\xff\xfe\x00", "cannot be read"),
    "a list": (b"[1, 2]", "holds no receipt"),
    "a box of words": (b'{"box": ["a", 0, 1, 1]}', "not four numbers"),
    "a box of nothing": (b'{"box": [null, 0, 1, 1]}', "not four numbers"),
    "a box of three numbers": (b'{"box": [0, 0, 1]}', "not four numbers"),
    "a box as text": (b'{"box": "0,0,1,1"}', "not four numbers"),
    "a box without an area": (b'{"box": [1, 1, 0, 0]}', "no area"),
    "a box with NaN": (b'{"box": [NaN, 0, 1, 1]}', "not finite"),
}


@pytest.mark.parametrize("command", ["evaluate", "compare"])
@pytest.mark.parametrize("case", BROKEN_RECEIPTS)
def test_a_broken_receipt_is_refused(case, command, small, tmp_path):
    text, why = BROKEN_RECEIPTS[case]
    synthetic = write_table(tmp_path / "synthetic.csv", TWO_STREAMS)
    (tmp_path / "synthetic.csv.receipt.json").write_bytes(text)

    assert_refused(tmp_path, [command, small, synthetic], why)


def test_a_folder_in_the_place_of_a_receipt_is_refused(small, tmp_path):
    synthetic = write_table(tmp_path / "synthetic.csv", TWO_STREAMS)
    (tmp_path / "synthetic.csv.receipt.json").mkdir()

    assert_refused(tmp_path, ["evaluate", small, synthetic], "receipt", "move it away")


def test_a_box_given_by_hand_makes_up_for_one_that_a_receipt_gets_wrong(small, tmp_path):
    synthetic = write_table(tmp_path / "synthetic.csv", TWO_STREAMS)
    (tmp_path / "synthetic.csv.receipt.json").write_text('{"box": 7}')

    assert figures(small, synthetic, *UNIT_BOX) == figures(small, small, *UNIT_BOX)


# What is mended, with a warning


def test_a_point_outside_the_box_counts_for_the_nearest_cell(tmp_path):
    columns = joined(walk(99, x=0.5, y=0.5), walk(1, x=0.99, y=0.2))
    real = write_table(tmp_path / "real.csv", columns)
    inside = write_table(tmp_path / "inside.csv", joined(walk(99), walk(1, x=1.0, y=0.0)))
    outside = write_table(tmp_path / "outside.csv", joined(walk(99), walk(1, x=1.7, y=-3.0)))

    at_edge, _ = figures(real, inside, *UNIT_BOX)
    found, said = figures(real, outside, *UNIT_BOX)

    assert said == "warning: synthetic: 1 point outside the box in the nearest cell\n"
    assert {key for key in KEYS if found[key] != at_edge[key]} <= OF_COORDINATES


def test_real_points_outside_the_box_are_counted_too(tmp_path):
    columns = joined(walk(150), walk(50), walk(1, x=1.5), walk(1, x=-1.5))
    real = write_table(tmp_path / "real.csv", columns)
    synthetic = write_table(tmp_path / "synthetic.csv", walk(150))

    _, said = figures(real, synthetic, *UNIT_BOX)

    assert said == "warning: real: 2 points outside the box in the nearest cell\n"


@pytest.mark.parametrize("side", ["real", "synthetic"])
def test_more_than_one_point_in_a_hundred_outside_is_refused(side, tmp_path):
    good = write_table(tmp_path / "good.csv", walk(100))
    bad = write_table(tmp_path / "bad.csv", joined(walk(98), walk(1, x=2), walk(1, x=2)))
    files = (bad, good) if side == "real" else (good, bad)

    assert_refused(
        tmp_path,
        ["evaluate", *files, *UNIT_BOX],
        *(f"2 of 100 {side} points", "outside the box 0,0,1,1", "1%"),
    )


def test_a_jump_splits_a_synthetic_stream_as_it_splits_a_real_one(tmp_path):
    there, back = walk(5, x=0.1), walk(4, x=0.9, first=5)
    apart = joined(there, back)
    whole = {**apart, "traj_id": [0] * 9}
    real = write_table(tmp_path / "real.csv", walk(9, streams=2))
    jumping = write_table(tmp_path / "jumping.csv", whole)
    split = write_table(tmp_path / "split.csv", apart)

    found, said = figures(real, jumping, *UNIT_BOX)
    expected, nothing = figures(real, split, *UNIT_BOX)
    turned, turned_said = figures(jumping, real, *UNIT_BOX)
    turned_expected, _ = figures(split, real, *UNIT_BOX)

    assert (found.pop("stream_ratio"), expected.pop("stream_ratio")) == (0.5, 1)
    assert (turned.pop("stream_ratio"), turned_expected.pop("stream_ratio")) == (2, 1)
    assert found == expected
    assert turned == turned_expected
    assert said == "warning: synthetic: streams split at 1 jump beyond a neighbour\n"
    assert turned_said == "warning: real: streams split at 1 jump beyond a neighbour\n"
    assert nothing == ""


def test_timestamps_beyond_the_real_ones_are_ignored(tmp_path):
    late = walk(6, x=0.9, first=9)
    columns = joined(walk(14, first=3), late, walk(4, first=1), walk(3, first=20))
    real = write_table(tmp_path / "real.csv", walk(10, streams=3, first=5))
    longer = write_table(tmp_path / "longer.csv", columns)
    cut = write_table(tmp_path / "cut.csv", joined(walk(10, first=5), late))

    found, said = figures(real, longer, *UNIT_BOX)

    assert said == "warning: synthetic: 11 points beyond the real timestamps ignored\n"
    assert (found, "") == figures(real, cut, *UNIT_BOX)


def test_each_thing_mended_has_one_line(tmp_path):
    real = write_table(tmp_path / "real.csv", walk(200))
    columns = joined(walk(201), walk(1, x=7), {**walk(2), "x": [0.1, 0.9]})
    synthetic = write_table(tmp_path / "synthetic.csv", columns)

    outcome = run("evaluate", real, synthetic, *UNIT_BOX)

    assert outcome.code == 0
    assert outcome.err.splitlines() == [
        "warning: synthetic: 1 point beyond the real timestamps ignored",
        "warning: synthetic: 1 point outside the box in the nearest cell",
        "warning: synthetic: streams split at 1 jump beyond a neighbour",
    ]


# What is refused

NOTHING = {
    "a header alone": ("in.csv", b"traj_id,t,x,y\n"),
    "no bytes": ("in.csv", b""),
    "no bytes called parquet": ("in.parquet", b""),
}


@pytest.mark.parametrize("side", ["real", "synthetic"])
@pytest.mark.parametrize("case", NOTHING)
def test_an_empty_file_is_refused(case, side, small, tmp_path):
    name, data = NOTHING[case]
    empty = tmp_path / name
    empty.write_bytes(data)
    files = (empty, small) if side == "real" else (small, empty)

    assert_refused(tmp_path, ["evaluate", *files], str(empty))


def test_a_parquet_without_rows_is_refused(small, tmp_path):
    nothing = {name: pa.array([], pa.int64()) for name in TWO_STREAMS}
    empty = write_table(tmp_path / "empty.parquet", nothing)

    assert_refused(tmp_path, ["evaluate", small, empty], str(empty), "no rows")


def test_data_without_a_common_timestamp_is_refused(small, tmp_path):
    later = write_table(tmp_path / "later.csv", walk(3, first=3))

    assert_refused(
        tmp_path, ["evaluate", small, later], "t 3..5", "t 0..2", "no timestamp", "number both"
    )


@pytest.mark.parametrize("command", ["evaluate", "compare"])
@pytest.mark.parametrize("side", ["real", "synthetic"])
def test_a_missing_file_is_refused(side, command, small, tmp_path):
    missing = tmp_path / "missing.parquet"
    files = (missing, small) if side == "real" else (small, missing)

    assert_refused(tmp_path, [command, *files], str(missing), "does not exist")


@pytest.mark.parametrize("command", ["evaluate", "compare"])
@pytest.mark.parametrize("place", [".", "/"])
def test_a_folder_is_refused(place, command, small, tmp_path):
    assert_refused(tmp_path, [command, small, place], "is a folder")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("side", ["real", "synthetic"])
def test_coordinates_that_are_not_finite_are_refused(side, value, small, tmp_path):
    columns = {**TWO_STREAMS, "x": [0.1, value, 0.3, 0.8, 0.9]}
    bad = write_table(tmp_path / "bad.parquet", columns)
    files = (bad, small) if side == "real" else (small, bad)

    assert_refused(tmp_path, ["evaluate", *files], str(bad), "column x", "row 2")


def test_real_data_in_a_single_place_has_the_box_that_synthesize_gives_it(tmp_path):
    still = write_table(tmp_path / "still.csv", walk(3))

    assert run("evaluate", still, still).code == 0
    assert run("evaluate", still, still, *UNIT_BOX).code == 0


def in_system(path, crs):
    write(Trajectories.from_columns(**TWO_STREAMS, crs=crs), path)
    return path


def test_different_coordinate_systems_are_refused(tmp_path):
    degrees = in_system(tmp_path / "degrees.parquet", "EPSG:4326")
    metres = in_system(tmp_path / "metres.parquet", "EPSG:3857")

    assert_refused(
        tmp_path, ["evaluate", degrees, metres], "EPSG:4326", "EPSG:3857", "convert --to-crs"
    )


@pytest.mark.parametrize("crs", ["EPSG:4326", "epsg:4326", None])
def test_a_coordinate_system_that_is_the_same_or_unknown_is_accepted(crs, tmp_path):
    degrees = in_system(tmp_path / "degrees.parquet", "EPSG:4326")

    assert run("evaluate", degrees, in_system(tmp_path / "other.parquet", crs)).code == 0


BAD_SETTINGS = {
    "grid zero": (("--grid", 0), ("0", "1..64")),
    "grid too fine": (("--grid", 65), ("65", "1..64")),
    "span zero": (("--span", 0), ("span=0", "from 1 to")),
    "span a fraction": (("--span", "1.5"), ("1.5", "--span")),
    "no queries": (("--queries", 0), ("queries=0", "from 1 to")),
    "no cells": (("--top-cells", 0), ("top_cells=0", "from 1 to")),
    "no patterns": (("--top-patterns", -1), ("top_patterns=-1", "from 1 to")),
    "seed negative": (("--seed", -1), ("seed=-1", "from 0 on")),
    "seed a word": (("--seed", "random"), ("random", "--seed")),
    "box of two numbers": (("--box", "0,0"), ("'0,0'", "x0,y0,x1,y1")),
    "box turned round": (("--box", "1,1,0,0"), ("1,1,0,0", "no area")),
    "box of words": (("--box", "a,b,c,d"), ("'a,b,c,d'", "x0,y0,x1,y1")),
    "box with NaN": (("--box", "nan,0,1,1"), ("nan,0,1,1", "not finite")),
    "flag unknown": (("--grids", 3), ("--grids", "--help")),
}


@pytest.mark.parametrize("command", ["evaluate", "compare"])
@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_a_bad_setting_is_refused_by_name_and_value(case, command, small, tmp_path):
    flags, names = BAD_SETTINGS[case]

    assert_refused(tmp_path, [command, small, small, *flags], *names)


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_bad_settings_are_refused_before_the_data_is_looked_for(command, tmp_path):
    missing = tmp_path / "missing.csv"

    assert_refused(tmp_path, [command, missing, missing, "--span", 0], "span=0")


@pytest.mark.parametrize(
    ("files", "name"), [([], "REAL"), ([Path("a.csv")], "SYN"), ([Path("a.csv")] * 3, "a.csv")]
)
def test_it_takes_two_files(files, name, tmp_path):
    assert_refused(tmp_path, ["evaluate", *files], name, "evaluate --help")


# Ctrl-C


@pytest.mark.system
def test_ctrl_c_exits_130_without_a_traceback_or_a_file(city, made, tmp_path):
    """Run at a terminal and press Ctrl-C while the bar names a figure that takes long."""
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, "evaluate", city, made, "--queries", "3000000"],
        stdout=subprocess.PIPE,
        stderr=end,
        text=True,
        cwd=tmp_path,
        env=environment(TERM="xterm", COLUMNS="100"),
    )
    os.close(end)
    seen, pressed, deadline = b"", False, time.monotonic() + PATIENCE
    try:
        while time.monotonic() < deadline:
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                seen += os.read(terminal, 4096)
            except OSError:  # the other end was closed: the process has ended
                break
            if b"Query error" in seen and not pressed:
                process.send_signal(signal.SIGINT)
                pressed = True
        out, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        os.close(terminal)

    said = seen.decode()
    assert (process.returncode, out, contents(tmp_path)) == (130, "", {})
    assert "Traceback" not in said
    assert "stopped: nothing was written" in said


# The report


def test_a_report_is_a_page_whose_place_is_printed(city, synthesised, tmp_path):
    page = tmp_path / "report.html"

    outcome = run("evaluate", city, synthesised, "--report", page)

    assert outcome.code == 0, outcome.err
    assert outcome.out.endswith(f"report: {page}\n")
    assert list(tmp_path.iterdir()) == [page]
    assert page.read_text().lstrip().lower().startswith("<!doctype html")


def test_a_report_is_summed_up_and_compared_with_runs_of_the_same_budget(
    city, synthesised, tmp_path
):
    page = tmp_path / "report.html"

    outcome = run("evaluate", city, synthesised, "--report", page)

    assert "\nverdict: where crowds are: " in outcome.out
    assert "; single trips: do not use\n" in outcome.out
    assert {f"<b>{letter}</b>" in page.read_text() for letter in "UMLE"} == {True}


@pytest.mark.parametrize("how", ["asked", "no receipt", "a receipt that tells nothing"])
def test_what_takes_runs_is_left_out_when_asked_or_when_no_receipt_tells_the_budget(
    city, synthesised, tmp_path, how
):
    page, copy = tmp_path / "report.html", tmp_path / synthesised.name
    copy.write_bytes(synthesised.read_bytes())
    if how == "a receipt that tells nothing":
        copy.with_name(f"{copy.name}.receipt.json").write_text("{}")
    given = (synthesised, "--no-baselines") if how == "asked" else (copy,)

    outcome = run("evaluate", city, *given, "--report", page, "--box", "0,0,12,12")

    assert ("note: no receipt tells budget" in outcome.err) == (how != "asked")
    letters = [letter for letter in "UMLE" if f"<b>{letter}</b>" in page.read_text()]
    assert letters == ["U"]
    assert "left out here" in page.read_text()


def test_baselines_without_a_report_are_refused(city, synthesised, tmp_path):
    arguments = ["evaluate", city, synthesised, "--no-baselines"]
    assert_refused(tmp_path, arguments, "--no-baselines", "name one with --report")


def test_json_keeps_the_place_of_the_report_to_itself(city, synthesised, tmp_path):
    page = tmp_path / "report.html"

    found, _ = figures(city, synthesised, "--report", page)

    assert list(found) == KEYS
    assert page.exists()


@pytest.fixture
def streets(tmp_path_factory):
    """Two streets of the unit square."""
    folder = tmp_path_factory.mktemp("streets")
    (folder / "city.cnode").write_text("0 0.1 0.1\n1 0.9 0.1\n2 0.9 0.9\n")
    (folder / "city.cedge").write_text("0 0 1 0.8\n1 1 2 0.8\n")
    return folder / "city.cnode"


def test_streets_are_drawn_in_the_report(small, streets, tmp_path):
    page = tmp_path / "report.html"

    outcome = run("evaluate", small, small, "--report", page, "--roads", streets)

    assert outcome.code == 0, outcome.err
    assert "2 streets of the public map" in page.read_text()


def test_streets_beside_the_real_data_are_found(small, streets, tmp_path):
    page, data = tmp_path / "report.html", streets.with_name("city.csv")
    data.write_bytes(small.read_bytes())
    write_roads(read_network(streets), roads_beside(data))

    outcome = run("evaluate", data, data, "--report", page)

    assert outcome.code == 0, outcome.err
    assert "2 streets of the public map" in page.read_text()


def test_streets_without_a_report_are_refused(small, streets, tmp_path):
    arguments = ["evaluate", small, small, "--roads", streets]
    assert_refused(tmp_path, arguments, "--roads are drawn in a report; name one with --report")


BAD_PLACES = {
    "in a missing folder": ("no/report.html", ("no", "create it")),
    "a folder": ("folder.html", ("is a folder",)),
    "where nobody may write": ("/proc/report.html", ("/proc/report.html",)),
    "a data file": ("small.csv", (".csv", ".html")),
    "without a suffix": ("report", ("nothing", ".html")),
}


@pytest.mark.parametrize("case", BAD_PLACES)
def test_a_bad_place_for_the_report_is_refused_before_anything_is_read(
    case, small, tmp_path, monkeypatch
):
    def read(path):
        raise AssertionError(path)

    place, names = BAD_PLACES[case]
    (tmp_path / "folder.html").mkdir()
    monkeypatch.setattr("retrasyn.data.reading_files.read", read)

    assert_refused(tmp_path, ["evaluate", small, small, "--report", tmp_path / place], *names)


def test_a_report_without_its_engine_is_refused_by_what_to_install(small, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)

    assert_refused(
        tmp_path,
        ["evaluate", small, small, "--report", tmp_path / "report.html"],
        'pip install "retrasyn[report]"',
    )


def full(self, target):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupted(self, target):
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(("failure", "code"), [(full, 2), (interrupted, 130)])
def test_a_report_that_fails_leaves_the_earlier_one_as_it_was(
    failure, code, city, synthesised, tmp_path, monkeypatch
):
    page = tmp_path / "report.html"
    page.write_text("the earlier one")
    monkeypatch.setattr(Path, "replace", failure)

    outcome = run("evaluate", city, synthesised, "--report", page)

    assert (outcome.code, outcome.out) == (code, "")
    assert contents(tmp_path) == {"report.html": b"the earlier one"}
