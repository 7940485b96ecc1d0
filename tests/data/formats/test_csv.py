"""CSV of many libraries."""

import gzip

import pytest

from support.raw_files import crs_of, refuse, rows_of, skipped

EXPECTED = [
    ("a", "2020-01-01T00:00:00", 1.5, 4.0),
    ("a", "2020-01-01T00:01:00", 2.5, 5.0),
    ("b", "2020-01-01T00:00:30", -3.0, 6.0),
]
PLAIN = "user_id,t,x,y\na,2020-01-01 00:00:00,1.5,4\na,2020-01-01 00:01:00,2.5,5\n"
PLAIN += "b,2020-01-01 00:00:30,-3,6\n"


def put(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("header", "order"),
    [
        ("uid,datetime,lat,lng", "utyx"),  # scikit-mobility
        ("user_id,tracked_at,lon,lat", "utxy"),  # trackintel
        ("user_id,tracked_at,geom", "utg"),
        ("id,timestamp,lon,lat", "utxy"),  # MovingPandas
        ("trajectory_id,t,x,y", "utxy"),
        ("Longitude,LATITUDE,Time,UID", "xytu"),
        ("x,y,t,traj_id", "xytu"),
    ],
)
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_columns_of_common_libraries_are_recognised(header, order, delimiter, tmp_path):
    lines = [header.replace(",", delimiter)]
    for user, time, x, y in EXPECTED:
        cells = {"u": user, "t": time, "x": x, "y": y, "g": f"POINT ({x} {y})"}
        lines.append(delimiter.join(str(cells[letter]) for letter in order))
    path = put(tmp_path / "in.csv", "\n".join(lines) + "\n")

    assert rows_of(path, "csv") == EXPECTED
    assert crs_of(path, "csv") == ("EPSG:4326" if "lat" in header.lower() else None)


def test_columns_of_any_name_can_be_named(tmp_path):
    path = put(tmp_path / "in.csv", "who,when,a,b,tour\nz,2020-01-01T00:00:00Z,1,2,9\n")

    rows = rows_of(path, "csv", user="who", time="when", x="A", y="b", traj="tour")

    assert rows == [("z", "2020-01-01T00:00:00", 1.0, 2.0)]


@pytest.mark.parametrize(
    ("written", "instant"),
    [
        ("2020-01-01 02:00:00+02:00", "2020-01-01T00:00:00"),
        ("2020-01-01T02:00:00+0200", "2020-01-01T00:00:00"),
        ("2019-12-31T19:30:00.25-04:30", "2020-01-01T00:00:00.250000"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00"),
        ("2020-01-01 00:00:00 UTC", "2020-01-01T00:00:00"),
        ("2020/01/01 00:00:00", "2020-01-01T00:00:00"),
        ("2020-01-01 00:00", "2020-01-01T00:00:00"),
        ("2020-01-01", "2020-01-01T00:00:00"),
        ("2020-01-01 00:00:00.123456789", "2020-01-01T00:00:00.123456"),
        ("1577836800", "2020-01-01T00:00:00"),
        ("1577836800.5", "2020-01-01T00:00:00.500000"),
        ("1577836800000", "2020-01-01T00:00:00"),
        ("1577836800000000", "2020-01-01T00:00:00"),
        ("1577836800000000000", "2020-01-01T00:00:00"),
    ],
)
def test_a_time_in_any_usual_form_is_understood(written, instant, tmp_path):
    path = put(tmp_path / "in.csv", f"id,t,x,y\na,{written},1,2\n")

    assert rows_of(path, "csv") == [("a", instant, 1.0, 2.0)]


def test_offsets_that_differ_become_one_time(tmp_path):
    times = ["2020-01-01T01:00:00+01:00", "2020-01-01T00:00:00Z", "2019-12-31T19:00:00-05:00"]
    path = put(tmp_path / "in.csv", "id,t,x,y\n" + "".join(f"a,{t},1,2\n" for t in times))

    assert {row[1] for row in rows_of(path, "csv")} == {"2020-01-01T00:00:00"}


@pytest.mark.parametrize("order", [1, -1])
def test_times_with_and_without_offset_are_not_mixed(order, tmp_path):
    times = ["2020-01-01T01:00:00+01:00", "2020-01-01T00:00:00"][::order]
    path = put(tmp_path / "in.csv", "id,t,x,y\n" + "".join(f"a,{t},1,2\n" for t in times))

    for mode in ("fail", "skip"):
        refuse(path, "csv", str(path), "line 3", "offset", on_error=mode)


def test_local_times_follow_the_time_zone(tmp_path):
    path = put(tmp_path / "in.csv", "id,t,x,y\na,2008-02-02 13:30:00,1,2\n")

    rows = rows_of(path, "csv", timezone="Asia/Shanghai")

    assert rows == [("a", "2008-02-02T05:30:00", 1.0, 2.0)]


def test_whole_numbers_may_be_steps(tmp_path):
    path = put(tmp_path / "in.csv", "traj_id,t,x,y\n7,0,1,2\n7,1,1,2\n")

    assert rows_of(path, "csv", numbers="steps") == [("7", 0, 1, 2), ("7", 1, 1, 2)]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_marks_line_ends_blank_lines_and_quotes_do_not_matter(mark, ending, tmp_path):
    text = PLAIN.replace("b,", '"b",').replace("a,2020-01-01 00:01", "\na,2020-01-01 00:01")
    path = put(tmp_path / "in.csv", mark + text.replace("\n", ending).encode())

    assert rows_of(path, "csv") == EXPECTED


def test_a_compressed_file_is_read_as_it_is(tmp_path):
    path = put(tmp_path / "in.csv.gz", gzip.compress(PLAIN.encode()))

    assert rows_of(path) == EXPECTED


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path):
    for i in range(40):
        put(tmp_path / f"{i:02}.csv", f"id,t,x,y\nu{i},2020-01-01,1,2\n")
    put(tmp_path / "notes.md", "nothing")

    assert [row[0] for row in rows_of(tmp_path)] == [f"u{i}" for i in range(40)]


def test_blocks_end_anywhere_and_lines_are_still_whole(tmp_path, monkeypatch):
    path = put(tmp_path / "in.csv", PLAIN)
    for size in range(1, 40):
        monkeypatch.setattr("retrasyn.data.formats.blocks.BLOCK", size)
        assert rows_of(path, "csv") == EXPECTED


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a,2020-01-01 00:02:00,1.5", ["3 fields", "4 expected"]),
        ("a;2020-01-01 00:02:00;1.5;2", ["1 fields", "','"]),
        ("a,2020-01-01 00:02:00,abc,4", ["x", "'abc'", "not a finite number"]),
        ("a,2020-01-01 00:02:00,nan,4", ["x", "not a finite number"]),
        ("a,2020-01-01 00:02:00,1,inf", ["y", "not a finite number"]),
        ("a,2020-01-01 00:02:00,,4", ["x is empty"]),
        ("a,2020-02-30 00:02:00,1,4", ["t '2020-02-30 00:02:00' is not a time"]),
        ("a,yesterday,1,4", ["t 'yesterday' is not a time"]),
        ("a,,1,4", ["t is empty"]),
        (",2020-01-01 00:02:00,1,4", ["user_id is empty"]),
        (b"\xff\xfe,2020-01-01 00:02:00,1,4", ["UTF-8"]),
    ],
)
def test_a_bad_line_is_named_or_skipped_and_counted(line, words, tmp_path):
    line = line if isinstance(line, bytes) else line.encode()
    head, tail = PLAIN.encode().split(b"b,")
    path = put(tmp_path / "in.csv", head + b"\n" + line + b"\nb," + tail)

    refuse(path, "csv", str(path), "line 5", *words)
    assert rows_of(path, "csv", on_error="skip") == EXPECTED
    assert skipped(path, "csv") == 1


def test_a_bad_line_far_into_a_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("retrasyn.data.formats.blocks.BLOCK", 1 << 12)
    lines = ["id,t,x,y", *(f"{i},2020-01-01 00:00:00,1,2" for i in range(5000))]
    lines[4321] = "7,2020-01-01 00:00:00,1"

    refuse(put(tmp_path / "in.csv", "\n".join(lines)), "csv", "line 4322")


def test_swapped_coordinates_are_refused_with_both_names(tmp_path):
    path = put(tmp_path / "in.csv", "uid,datetime,lat,lng\n1,2008-02-02,116.4,39.9\n")

    for mode in ("fail", "skip"):
        refuse(path, "csv", str(path), "line 2", "116.4", "lat", "lng", "swapped", on_error=mode)
    assert rows_of(path, "csv", x="lat", y="lng")[0][2:] == (116.4, 39.9)


def test_projected_coordinates_in_columns_named_lat_and_lon_are_accepted_when_said(tmp_path):
    path = put(tmp_path / "in.csv", "uid,datetime,lat,lng\n1,2008-02-02,4851421.1,12957000.5\n")

    assert rows_of(path, "csv", from_crs="EPSG:3857")[0][2:] == (12957000.5, 4851421.1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("\n\n", ["line 1"]),
        ("a b c d\n1 2 3 4\n", ["'a', 'b', 'c', 'd'", "--user COLUMN", "--user file"]),
        ("id,t,x\na,2020-01-01,1\n", ["x, y", "'x'"]),
        ("id,t,x,y,x\na,2020-01-01,1,2,3\n", ["x", "twice"]),
        ("a\n1\n", ["'a'", "delimiter"]),
    ],
)
def test_a_header_without_what_is_needed_is_refused(text, words, tmp_path):
    path = put(tmp_path / "in.csv", text)

    refuse(path, "csv", str(path), *words)


def test_a_column_that_is_not_there_is_refused(tmp_path):
    refuse(put(tmp_path / "in.csv", PLAIN), "csv", "'who'", "--user", "'user_id'", user="who")


def test_a_file_that_expands_without_end_is_refused_early(tmp_path, monkeypatch):
    monkeypatch.setattr("retrasyn.data.formats.blocks._FREE", 1 << 20)
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"id,t,x,y\n")
        for _ in range(64):
            file.write(b"a,2020-01-01,1,2\n" * (1 << 14))

    refuse(path, "csv", str(path), "expands")


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("retrasyn.data.formats.blocks.LONGEST_LINE", 1 << 10)
    monkeypatch.setattr("retrasyn.data.formats.blocks.BLOCK", 1 << 9)
    path = put(tmp_path / "in.csv", PLAIN + "0" * 5000)

    refuse(path, "csv", str(path), "line 5", "longer")


@pytest.mark.parametrize("end", [10, -4])
def test_a_compressed_file_cut_off_is_refused(end, tmp_path):
    data = gzip.compress(PLAIN.encode() * 100)
    path = put(tmp_path / "in.csv.gz", data[:end])

    refuse(path, "csv", str(path))


def test_a_damaged_compressed_file_is_refused(tmp_path):
    refuse(put(tmp_path / "in.csv.gz", b"no gzip at all"), "csv", "cannot be read")


def test_an_archive_is_refused(tmp_path):
    refuse(put(tmp_path / "in.csv.xz", b"xz"), "csv", "unpack it first")
    refuse(put(tmp_path / "in.csv.zip", b"PK"), "csv", "cannot be unpacked", "do it yourself")


def test_a_folder_without_a_matching_file_is_refused(tmp_path):
    refuse(tmp_path, "csv", str(tmp_path), ".csv")
    refuse(tmp_path, "auto", str(tmp_path))


def test_a_file_nobody_may_read_is_refused(tmp_path, monkeypatch):
    path = put(tmp_path / "in.csv", PLAIN)

    def forbid(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", forbid)
    refuse(path, "csv", str(path), "Permission denied")


def test_the_first_bad_line_is_named_whatever_is_wrong_with_later_ones(tmp_path):
    bad = "a,never,1,2\n", "a,2020-01-01\n"
    for first, second in (bad, bad[::-1]):
        path = put(tmp_path / "in.csv", PLAIN + first + PLAIN.partition("\n")[2] + second)
        refuse(path, "csv", f"{path}, line 5:")
