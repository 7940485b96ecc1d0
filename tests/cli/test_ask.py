"""``retrasyn ask``: tables on the terminal and in files, and what may be chance."""

import json

import numpy as np
import pytest

from retrasyn import read, synthesize, write
from retrasyn.data.replica_files import replica_folder
from support.asked import CLOCK, wanderers, write_zones
from support.command_line import assert_refused, read_table, run

BOX = "0,0,10,10"


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    """A terminal on which nothing is broken into lines."""
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """A release with a receipt and three replicas."""
    path = tmp_path_factory.mktemp("release") / "synthetic.parquet"
    replica_folder(path).mkdir()
    real = wanderers(clock=CLOCK)
    for seed in range(4):
        synthetic, receipt = synthesize(real, window=5, grid=4, box=(0, 0, 10, 10), seed=seed)
        if not seed:
            write(synthetic, path)
            path.with_name(f"{path.name}.receipt.json").write_text(receipt.to_json())
        else:
            write(synthetic, replica_folder(path) / f"{seed:04}.parquet")
    return path


@pytest.fixture
def real(tmp_path):
    """People in a file without a clock or a receipt."""
    path = tmp_path / "real.csv"
    write(wanderers(), path)
    return path


@pytest.fixture
def zones(tmp_path):
    return write_zones(tmp_path / "zones.geojson")


def rows_of(out):
    """Return the cells of every row of a table, by the names of its columns."""
    lines = [line.strip("│┃").replace("┃", "│").split("│") for line in out.splitlines()]
    header, *rows = [[cell.strip() for cell in line] for line in lines if len(line) > 2]
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_the_highest_rows_are_printed_with_their_intervals(release, zones):
    outcome = run("ask", release, "counts", "--zones", zones)

    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("people present at a time")
    rows = rows_of(outcome.out)
    values = [float(row["value"].partition(" ± ")[0]) for row in rows]
    assert values == sorted(values, reverse=True)
    assert {row["zone"] for row in rows} == {"park", "centre", "harbour", "outside"}
    for row, value in zip(rows, values, strict=True):
        low, high = map(float, row["90 %"].split(" to "))
        assert low <= value <= high
    assert "90 % intervals from 3 replicas; of 4 rows, " in outcome.out.splitlines()[-1]


def test_without_replicas_it_says_how_to_get_them(release, tmp_path):
    alone = tmp_path / release.name
    alone.write_bytes(release.read_bytes())
    receipt = f"{release.name}.receipt.json"
    (tmp_path / receipt).write_bytes(release.with_name(receipt).read_bytes())

    outcome = run("ask", alone, "od")

    assert (outcome.code, outcome.err) == (0, "")
    assert "±" not in outcome.out
    assert outcome.out.endswith(
        "no replicas: nobody knows which of this is chance; "
        "retrasyn synthesize --replicates 20 makes them\n"
    )


def test_what_has_no_receipt_may_be_real(real):
    outcome = run("ask", real, "flows", "--zones", "grid:2", "--by", 10)

    assert outcome.code == 0
    assert outcome.err == (
        f"WARNING: {real} has no receipt beside it: if it is real data, the answer is NOT private\n"
    )


def test_all_rows_go_to_a_file(release, tmp_path):
    out = tmp_path / "od.csv"

    outcome = run("ask", release, "od", "--by", "day", "-o", out)

    table = read_table(out)
    assert outcome.out.splitlines()[0] == f"{out}: {table['value'].size:,} rows"
    assert list(table) == [
        *("origin", "destination", "t", "time", "value"),
        *("standard_error", "low", "high", "unclear"),
    ]
    assert table["value"].sum() == read(release).n_streams
    assert np.all((table["low"] <= table["value"]) & (table["value"] <= table["high"]))


def test_a_map_of_zones_is_written(release, zones, tmp_path):
    out = tmp_path / "counts.geojson"

    outcome = run("ask", release, "counts", "--zones", zones, "--by", "6h", "--out", out)

    assert outcome.code == 0
    features = json.loads(out.read_text())["features"]
    assert {row["geometry"]["type"] for row in features if row["geometry"]} == {"Polygon"}
    assert {row["properties"]["zone"] for row in features} >= {"park", "centre", "harbour"}


def test_times_are_shown_on_the_clock_of_the_data(release):
    outcome = run("ask", release, "counts", "--zones", "grid:1", "--by", "day")

    times = [row["time"] for row in rows_of(outcome.out)]
    assert sorted(times) == ["2026-05-04 22:00", "2026-05-05 00:00", "2026-05-06 00:00"]


def test_a_profile_is_in_the_order_of_the_day(release):
    rows = rows_of(run("ask", release, "profile").out)

    assert [row["time_of_day"] for row in rows] == [f"{hour:02}:00" for hour in range(20)]


def test_hotspots_show_how_sure_their_rank_is(release):
    outcome = run("ask", release, "hotspots", "--top", 2, "--from", "2026-05-05T08:00")

    rows = rows_of(outcome.out)
    assert [row["rank"].split(" (")[0] for row in rows] == ["1", "2"]
    assert all(row["in top"].endswith("%") for row in rows)


def test_trips_have_units(release):
    rows = rows_of(run("ask", release, "trips", "--to", 20).out)

    assert rows[0]["statistic"] == "mean"
    assert {row["unit"] for row in rows} <= {"units", "min"}


def test_numbers_are_shown_without_exponents_or_false_digits():
    from retrasyn.cli.ask import _figure

    figures = [0.0, 0.01234, 12.3456, 123_456.7, 7_000_000]
    assert [_figure(value) for value in figures] == ["0", "0.0123", "12.3", "123,000", "7,000,000"]


def test_an_answer_of_nothing_says_so(real):
    outcome = run("ask", real, "flows", "--zones", "grid:1")

    assert outcome.out.startswith("no rows: nothing of what is asked for is there\n")


def test_what_was_mended_in_zones_is_said(release, tmp_path):
    bow = {"bow": [[(0, 0), (9, 9), (9, 0), (0, 9), (0, 0)]]}
    zones = write_zones(tmp_path / "bow.geojson", bow)

    outcome = run("ask", release, "counts", "--zones", zones)

    assert outcome.err == f"note: {zones}: 1 polygons crossed themselves and were mended\n"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["speed"], ["'speed' cannot be asked; choose from counts, od, flows"]),
        (["od", "--zones", "wards"], ["zones 'wards' are not known", "see retrasyn help ask"]),
        (["od", "--zones", "none.gpkg"], ["zones none.gpkg do not exist"]),
        (["od", "--zones", "grid:99"], ["grid side 99 is outside 1..64"]),
        (["od", "--named-by", "name"], ["--named-by is a property of polygons"]),
        (["od", "--by", "1h"], ["--by 1h needs a clock", "give a number of timestamps: --by 6"]),
        (["profile"], ["a profile over the day needs a clock"]),
        (["od", "--by", "0"], ["--by 0 is not a number of timestamps"]),
        (["od", "--from", "99"], ["no timestamps from 99: those there are go from 0 to 39"]),
        (["od", "--from", "2026-05-04"], ["it is not known when timestamp 0 was"]),
        (["od", "--box", "1,2"], ["box '1,2' is not four numbers"]),
        (["hotspots", "--top", "0"], ["--top 0 is not a number of hotspots"]),
        (["od", "-o", "od.xlsx"], ["output od.xlsx ends in .xlsx"]),
        (["od", "-o", "none/od.csv"], ["output folder none does not exist"]),
        (["trips", "-o", "trips.geojson"], ["there are no zones to put on a map"]),
    ],
)
def test_wrong_words_are_one_line_and_leave_nothing(real, monkeypatch, words, names):
    monkeypatch.chdir(real.parent)
    before = run("ask", real, *words)
    assert before.code == 2
    lines = before.err.splitlines()
    assert lines[-1].startswith("error: ")
    assert len(lines) <= 2
    assert [path.name for path in real.parent.iterdir()] == ["real.csv"]
    for name in names:
        assert name in lines[-1], lines[-1]


def test_the_input_is_never_written_over(release, tmp_path):
    assert_refused(tmp_path, ["ask", release, "od", "-o", release], "is the input itself")


def test_files_that_are_none_are_refused(tmp_path):
    empty = tmp_path / "empty.csv"
    empty.touch()
    broken = tmp_path / "nan.csv"
    broken.write_text("traj_id,t,x,y\n1,0,nan,2\n")
    for path, name in [
        (empty, "is empty"),
        (broken, "column x holds nan in row 1"),
        (tmp_path / "none.parquet", "does not exist"),
    ]:
        assert_refused(tmp_path, ["ask", path, "od"], name)
