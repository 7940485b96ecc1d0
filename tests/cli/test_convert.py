"""`retrasyn convert`: raw files in, a file for synthesize out."""

import json

import numpy as np
import pytest

from retrasyn.data import read
from retrasyn.data.formats import FORMATS
from support.command_line import assert_one_line, assert_refused, read_table, run

TDRIVE = "".join(
    f"{taxi},2008-02-02 13:{minute:02}:00,{116.3 + taxi / 100},{39.9 + minute / 1000}\n"
    for taxi in (1, 2)
    for minute in range(0, 60, 4)
)


@pytest.fixture
def taxis(tmp_path):
    folder = tmp_path / "taxis"
    folder.mkdir()
    (folder / "1.txt").write_text(TDRIVE)
    return folder


@pytest.mark.parametrize("flags", [[], ["--format", "tdrive"], ["--format", "auto"]])
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_folder_becomes_a_file_that_can_be_read(flags, suffix, taxis, tmp_path):
    out = tmp_path / f"out.{suffix}"

    outcome = run("convert", taxis, "-o", out, "--every", "10min", *flags)

    assert outcome.code == 0, outcome.err
    for word in ("fixes read", "30", "mean length", "2008-02-02T13:00:00+00:00", "EPSG:4326"):
        assert word in outcome.out
    table = read_table(out)
    assert table["user_id"].tolist() == [1] * 6 + [2] * 6
    assert table["t"].tolist() == [0, 1, 2, 3, 4, 5] * 2
    assert np.allclose(table["y"][:6], 39.9 + np.array([8, 16, 28, 36, 48, 56]) / 1000)
    assert read(out).n_streams == 2


def test_the_summary_can_be_json(taxis, tmp_path):
    outcome = run(
        *("convert", taxis, "-o", tmp_path / "out.parquet", "--every", "10min"),
        *("--box", "116.3,39.9,116.315,39.93", "--json"),
    )

    assert json.loads(outcome.out) == {
        "n_fixes": 30,
        "n_points": 3,
        "n_users": 1,
        "n_streams": 1,
        "mean_length": 3.0,
        "n_timestamps": 3,
        "n_outside": 22,
        "n_duplicates": 5,
        "n_skipped": 0,
        "n_unprojectable": 0,
        "clock": {"epoch": "2008-02-02T13:00:00+00:00", "period": 600.0},
        "crs": "EPSG:4326",
        "understood": [
            {
                "user": "id",
                "stream": None,
                "time": "time",
                "zone": "UTC",
                "x": "longitude",
                "y": "latitude",
                "crs": "EPSG:4326",
                "unused": [],
                "user_guessed": False,
            }
        ],
        "warnings": [],
    }


def test_a_plain_file_with_steps_needs_no_period(tmp_path):
    (tmp_path / "in.csv").write_text("name,step,a,b\nann,4,1,2\nann,6,1,2\nbob,4,3,4\n")

    outcome = run(
        *("convert", tmp_path / "in.csv", "-o", tmp_path / "out.csv", "--dense"),
        *("--user", "name", "--time", "step", "--x", "a", "--y", "b"),
    )

    assert outcome.code == 0, outcome.err
    table = read_table(tmp_path / "out.csv")
    assert table["user_id"].tolist() == ["ann", "ann", "bob"]
    assert table["t"].tolist() == [4, 5, 4]


def test_zone_projection_and_skipping_are_flags(tmp_path):
    (tmp_path / "in.csv").write_text(
        "uid,datetime,lng,lat\n1,2008-02-02 08:00:00,0,0\n1,never,0,0\n"
    )

    outcome = run(
        *("convert", tmp_path / "in.csv", "-o", tmp_path / "out.csv", "--every", "1h"),
        *("--timezone", "Asia/Shanghai", "--to-crs", "EPSG:3857", "--on-error", "skip", "--json"),
    )

    facts = json.loads(outcome.out)
    assert facts["n_skipped"] == 1
    assert facts["crs"] == "EPSG:3857"
    assert facts["clock"]["epoch"] == "2008-02-02T00:00:00+00:00"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], ["--every 10min"]),
        (["--every", "soon"], ["'soon'"]),
        (["--every", "1h", "--box", "1,2"], ["four numbers"]),
        (["--every", "1h", "--timezone", "Mars/Base"], ["Mars/Base"]),
        (["--every", "1h", "--to-crs", "moon"], ["moon"]),
        (["--every", "1h", "--on-error", "shrug"], ["shrug"]),
        (["--every", "1h", "--user", "who"], ["--user", "tdrive", "fixed"]),
    ],
)
def test_a_wrong_flag_is_one_line(flags, words, taxis, tmp_path):
    assert_refused(tmp_path, ["convert", taxis, "-o", tmp_path / "out.csv", *flags], *words)


def test_a_format_nobody_knows_is_one_line(taxis, tmp_path):
    flags = ["-o", tmp_path / "o.csv", "--format", "taxi"]
    assert_refused(tmp_path, ["convert", taxis, *flags], "'taxi'", "tdrive")


@pytest.mark.parametrize("kind", ["tdrive", "auto"])
def test_the_form_that_began_with_a_format_says_what_to_type(kind, taxis, tmp_path):
    option = "" if kind == "auto" else f" --format {kind}"
    assert_refused(
        *(tmp_path, ["convert", kind, taxis, "-o", tmp_path / "o.csv", "--every", "1h"]),
        *("the format is an option now", f"retrasyn convert {taxis} -o OUT{option}"),
    )
    assert_refused(
        tmp_path, ["convert", taxis, tmp_path, "-o", tmp_path / "o.csv"], "one FILE", str(tmp_path)
    )


def test_every_format_is_named_in_the_help(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    assert f"auto, {', '.join(FORMATS)}." in " ".join(run("convert", "--help").out.split())


def test_what_was_understood_is_printed_and_a_guess_of_the_person_is_loud(tmp_path):
    (tmp_path / "in.csv").write_text(
        "trip_id,when,lon,lat,speed\n7,2020-01-01,1,2,3\n8,2020-01-01,1,2,3\n"
    )
    words = ["convert", tmp_path / "in.csv", "-o", tmp_path / "out.csv", "--every", "1h"]

    guessed, confirmed = run(*words), run(*words, "--user", "trip_id")
    quiet, told = run(*words, "--quiet"), json.loads(run(*words, "--json").out)

    line = "user = trip_id, time = when (UTC), x = lon, y = lat (EPSG:4326); not used: speed"
    assert line in guessed.out.splitlines()
    for outcome in (guessed, quiet):
        assert outcome.err.startswith("WARNING: user = trip_id is a guess")
        assert "--user COLUMN" in outcome.err
    assert confirmed.err == ""
    assert told["understood"][0]["user_guessed"] is True
    assert told["warnings"] == [guessed.err.removeprefix("WARNING: ").strip()]


def test_dates_and_times_of_day_may_stand_apart(tmp_path):
    (tmp_path / "in.csv").write_text(
        "id;day;hour;x;y\na;31.12.2020;1:05 PM;1,5;2\na;01.01.2021;12:00 AM;1,75;2\n"
    )

    outcome = run(
        *("convert", tmp_path / "in.csv", "-o", tmp_path / "out.parquet", "--every", "5min"),
        *("--user", "id", "--date", "day", "--clock", "hour", "--decimal", ","),
    )

    assert outcome.code == 0, outcome.err
    real = read(tmp_path / "out.parquet")
    assert real.x.tolist() == [1.5, 1.75]
    assert real.clock.time_of(0).isoformat() == "2020-12-31T13:05:00+00:00"
    assert real.t.tolist() == [0, 131]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--date", "t"], ["--date and --clock stand together"]),
        (["--time-format", "%H:%M"], ["no year", "--date COLUMN and --clock COLUMN"]),
        (["--time-format", "%Q"], ["'%Q'", "%d/%m/%Y"]),
        (["--decimal", "x"], ["'x'", "comma"]),
    ],
)
def test_what_says_how_a_time_or_number_is_written_is_checked(flags, words, tmp_path):
    (tmp_path / "in.csv").write_text("id,t,x,y\n1,0,0,0\n")

    assert_refused(
        tmp_path, ["convert", tmp_path / "in.csv", "-o", tmp_path / "o.csv", *flags], *words
    )


def test_a_box_across_the_antimeridian_is_written_beyond_180(tmp_path):
    (tmp_path / "in.csv").write_text(
        "uid,t,lon,lat\n1,0,179,-18\n1,1,-179,-18\n1,2,-170.5,-18\n1,3,0,0\n"
    )
    words = ["convert", tmp_path / "in.csv", "-o", tmp_path / "out.csv"]

    outcome = run(*words, "--box", "170,-20,190,0")

    assert (outcome.code, outcome.err) == (0, "")
    assert read_table(tmp_path / "out.csv")["x"].tolist() == [179, 181, 189.5]
    assert "1 step crosses 180 degrees" in run(*words).err
    torn = ["convert", tmp_path / "in.csv", "-o", tmp_path / "o.csv", "--box", "170,-20,-170,0"]
    assert_refused(tmp_path, torn, "170,-20,190,0")


def test_what_is_not_there_is_one_line(tmp_path):
    out = ["-o", tmp_path / "out.csv", "--every", "1h"]
    assert_refused(tmp_path, ["convert", tmp_path / "none", *out], "does not exist")
    assert_refused(tmp_path, ["convert", tmp_path, *out, "--format", "tdrive"], "no file")


def test_a_bad_line_is_one_line_with_its_place(taxis, tmp_path):
    (taxis / "1.txt").write_text(TDRIVE + "1,2008-02-02")

    outcome = run("convert", taxis, "-o", tmp_path / "out.csv", "--every", "1h")

    assert_one_line(outcome, f"{taxis / '1.txt'}, line 31:")


def test_the_input_is_not_overwritten(tmp_path):
    (tmp_path / "in.csv").write_text("id,t,x,y\n1,0,0,0\n")

    assert_refused(tmp_path, ["convert", tmp_path / "in.csv", "-o", tmp_path / "in.csv"], "itself")


@pytest.mark.parametrize("suffix", ["parquet", "geoparquet", "csv"])
def test_what_was_converted_keeps_its_clock_and_system_where_the_file_can(suffix, taxis, tmp_path):
    out = tmp_path / f"out.{suffix}"

    outcome = run("convert", taxis, "-o", out, "--every", "10min")

    assert outcome.code == 0, outcome.err
    real = read(out)
    assert real.n_points == 12
    if suffix != "csv":
        assert real.crs == "EPSG:4326"
        assert real.clock is not None
        assert real.clock.time_of(0).isoformat() == "2008-02-02T13:00:00+00:00"
