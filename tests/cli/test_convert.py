"""`retrasyn convert`: raw files in, a file for synthesize out."""

import json

import numpy as np
import pytest

from retrasyn.data import read
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


@pytest.mark.parametrize("kind", ["tdrive", "auto"])
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_folder_becomes_a_file_that_can_be_read(kind, suffix, taxis, tmp_path):
    out = tmp_path / f"out.{suffix}"

    outcome = run("convert", kind, taxis, "-o", out, "--every", "10min")

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
        *("convert", "tdrive", taxis, "-o", tmp_path / "out.parquet", "--every", "10min"),
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
        *("convert", "csv", tmp_path / "in.csv", "-o", tmp_path / "out.csv", "--dense"),
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
        *("convert", "csv", tmp_path / "in.csv", "-o", tmp_path / "out.csv", "--every", "1h"),
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
    assert_refused(
        tmp_path, ["convert", "tdrive", taxis, "-o", tmp_path / "out.csv", *flags], *words
    )


def test_a_format_nobody_knows_is_one_line(taxis, tmp_path):
    assert_refused(tmp_path, ["convert", "taxi", taxis, "-o", tmp_path / "o.csv"], "taxi", "tdrive")


def test_what_is_not_there_is_one_line(tmp_path):
    out = ["-o", tmp_path / "out.csv", "--every", "1h"]
    assert_refused(tmp_path, ["convert", "auto", tmp_path / "none", *out], "does not exist")
    assert_refused(tmp_path, ["convert", "tdrive", tmp_path, *out], "no file")


def test_a_bad_line_is_one_line_with_its_place(taxis, tmp_path):
    (taxis / "1.txt").write_text(TDRIVE + "1,2008-02-02")

    outcome = run("convert", "tdrive", taxis, "-o", tmp_path / "out.csv", "--every", "1h")

    assert_one_line(outcome, f"{taxis / '1.txt'}, line 31:")


def test_the_input_is_not_overwritten(tmp_path):
    (tmp_path / "in.csv").write_text("id,t,x,y\n1,0,0,0\n")

    assert_refused(
        tmp_path, ["convert", "csv", tmp_path / "in.csv", "-o", tmp_path / "in.csv"], "itself"
    )


@pytest.mark.parametrize("suffix", ["parquet", "geoparquet", "csv"])
def test_what_was_converted_keeps_its_clock_and_system_where_the_file_can(suffix, taxis, tmp_path):
    out = tmp_path / f"out.{suffix}"

    outcome = run("convert", "tdrive", taxis, "-o", out, "--every", "10min")

    assert outcome.code == 0, outcome.err
    real = read(out)
    assert real.n_points == 12
    if suffix != "csv":
        assert real.crs == "EPSG:4326"
        assert real.clock is not None
        assert real.clock.time_of(0).isoformat() == "2008-02-02T13:00:00+00:00"
