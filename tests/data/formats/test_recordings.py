"""T-Drive, GeoLife, Porto and Brinkhoff, each as its makers publish it."""

import pytest

from retrasyn.data.formats import Options, read_fixes
from support.raw_files import crs_of, refuse, rows_of, skipped

TDRIVE = "1,2008-02-02 15:36:08,116.51172,39.92123\n1,2008-02-02 15:46:08,116.51135,39.93883\n"
PLT = """Geolife trajectory
WGS 84
Altitude is in Feet
Reserved 3
0,2,255,My Track,0,0,2,8421376
0
39.984702,116.318417,0,492,39744.1201851852,2008-10-23,02:53:04
39.984683,116.31845,0,492,39744.1202546296,2008-10-23,02:53:10
"""
PORTO = (
    '"TRIP_ID","CALL_TYPE","ORIGIN_CALL","ORIGIN_STAND","TAXI_ID","TIMESTAMP","DAY_TYPE",'
    '"MISSING_DATA","POLYLINE"\n'
    '"T1","C","","","20000589","1372636858","A","False",'
    '"[[-8.618643,41.141412],[-8.618499,41.141376]]"\n'
    '"T2","B","","7","20000596","1372637303","A","False","[]"\n'
    '"T3","B","","7","20000596","1372637303","A","False","[[-8.639847,41.159826]]"\n'
)
BRINKHOFF = (
    "newpoint\t0\t1\t3\t0\t292.5\t15000\t11.2\t300\t15010\n"
    "newpoint\t1\t1\t0\t0\t100\t200\t5\t110\t210\n"
    "point\t0\t2\t3\t1\t300\t15010\t11.2\t310\t15020\n"
    "disappearpoint\t1\t2\t0\t1\t110\t210\n"
)


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_tdrive_is_a_folder_of_text_files(tmp_path):
    put(tmp_path / "1.txt", TDRIVE)
    put(tmp_path / "2.txt", "2,2008-02-02 13:33:52,116.36422,39.88781")  # no end of line
    put(tmp_path / "3.txt", "")  # as some of the real ones
    put(tmp_path / "4.txt", "4,2008-02-02 13:30:00,116.3,39.8\n")

    expected = [
        ("1", "2008-02-02T15:36:08", 116.51172, 39.92123),
        ("1", "2008-02-02T15:46:08", 116.51135, 39.93883),
        ("2", "2008-02-02T13:33:52", 116.36422, 39.88781),
        ("4", "2008-02-02T13:30:00", 116.3, 39.8),
    ]
    assert rows_of(tmp_path, "tdrive") == expected
    assert rows_of(tmp_path) == expected
    assert crs_of(tmp_path) == "EPSG:4326"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("2,2008-02-02 15:46:08,116.5", ["3 fields"]),
        ("2 2008-02-02 15:46:08 116.5 39.9", ["1 fields", "delimiter"]),
        ("2,2008-02-02 15:46:08,39.9,116.5", ["116.5", "latitude", "longitude", "swapped"]),
        ("2,2008-02-02 15:46:08,116.5,3x", ["latitude", "'3x'"]),
    ],
)
def test_a_bad_line_among_many_files_is_named(line, words, tmp_path):
    for name in "abdefg":
        put(tmp_path / f"{name}.txt", TDRIVE)
    bad = put(tmp_path / "c.txt", TDRIVE + line + "\n" + TDRIVE * 3)

    refuse(tmp_path, "tdrive", f"{bad}, line 3:", *words)
    assert skipped(tmp_path, "tdrive") == 1
    assert len(rows_of(tmp_path, "tdrive", on_error="skip")) == 20


def test_a_taxi_with_swapped_columns_is_refused_even_when_skipping(tmp_path):
    put(tmp_path / "1.txt", TDRIVE * 100)
    bad = put(tmp_path / "2.txt", "2,2008-02-02 15:46:08,39.9,116.5\n")

    refuse(tmp_path, "tdrive", f"{bad}, line 1:", "swapped", on_error="skip")


def test_geolife_takes_users_from_folders(tmp_path):
    put(tmp_path / "Data/000/Trajectory/20081023025304.plt", PLT)
    put(tmp_path / "Data/001/Trajectory/20081023025304.plt", PLT.replace("39.98", "40.98"))
    put(tmp_path / "Data/001/labels.txt", "Start Time\tEnd Time\n")

    expected = [
        ("000", "2008-10-23T02:53:04", 116.318417, 39.984702),
        ("000", "2008-10-23T02:53:10", 116.31845, 39.984683),
        ("001", "2008-10-23T02:53:04", 116.318417, 40.984702),
        ("001", "2008-10-23T02:53:10", 116.31845, 40.984683),
    ]
    assert rows_of(tmp_path, "geolife") == expected
    assert rows_of(tmp_path, timezone="Asia/Shanghai") == expected


def test_geolife_counts_its_header_among_the_lines(tmp_path):
    path = put(tmp_path / "a.plt", PLT + "39.98,116.3,0,492\n")

    refuse(path, "geolife", f"{path}, line 9:", "4 fields")
    assert skipped(path, "geolife") == 1


def test_geolife_refuses_a_file_that_ends_in_its_header(tmp_path):
    path = put(tmp_path / "a.plt", "Geolife trajectory\nWGS 84\n")

    refuse(path, "geolife", str(path), "header")


def test_porto_spreads_a_polyline_over_time(tmp_path):
    path = put(tmp_path / "train.csv", PORTO)

    assert rows_of(path) == [
        ("20000589", "2013-07-01T00:00:58", -8.618643, 41.141412),
        ("20000589", "2013-07-01T00:01:13", -8.618499, 41.141376),
        ("20000596", "2013-07-01T00:08:23", -8.639847, 41.159826),
    ]
    (chunk,) = read_fixes(path, "porto", Options())
    assert chunk.trip.to_pylist() == ["T1", "T1", "T3"]


@pytest.mark.parametrize(
    "polyline",
    ["[[-8.6,41.1],[-8.6", "[[-8.6,41.1],[-8.6]]", "__import__('os')", "", "[[1,2,3],[4,5,6]]"],
)
def test_porto_names_the_line_of_a_broken_polyline(polyline, tmp_path):
    line = f'"T4","B","","7","20000596","1372637303","A","False","{polyline}"\n'
    path = put(tmp_path / "train.csv", PORTO + line)

    refuse(path, "porto", f"{path}, line 5:", "POLYLINE")
    assert skipped(path, "porto") == 1
    assert len(rows_of(path, "porto", on_error="skip")) == 3


def test_porto_names_the_line_of_a_broken_time(tmp_path):
    path = put(tmp_path / "train.csv", PORTO.replace('"1372636858"', '"noon"'))

    refuse(path, "porto", f"{path}, line 2:", "TIMESTAMP")


def test_porto_needs_its_columns(tmp_path):
    path = put(tmp_path / "train.csv", "TRIP_ID,POLYLINE\n1,[]\n")

    refuse(path, "porto", str(path), "TAXI_ID")


def test_brinkhoff_counts_in_steps(tmp_path):
    path = put(tmp_path / "out.txt", BRINKHOFF)

    expected = [
        ("0", 0, 292.5, 15000.0),
        ("1", 0, 100.0, 200.0),
        ("0", 1, 300.0, 15010.0),
        ("1", 1, 110.0, 210.0),
    ]
    assert rows_of(path) == expected
    assert rows_of(path, "brinkhoff") == expected
    assert crs_of(path) is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("point\t0\t3\t3\t2\t310", ["6 fields"]),
        ("point,0,3,3,2,310,2", ["1 fields"]),
        ("dance\t0\t3\t3\t2\t310\t2", ["newpoint"]),
        ("point\t0\t3\t3\t2.5\t310\t2", ["t", "2.5", "whole number"]),
        ("point\t0\t3\t3\t2\tthere\t2", ["x", "'there'"]),
    ],
)
def test_brinkhoff_names_a_bad_line(line, words, tmp_path):
    path = put(tmp_path / "out.txt", BRINKHOFF + line + "\n")

    refuse(path, "brinkhoff", f"{path}, line 5:", *words)
    assert skipped(path, "brinkhoff") == 1
