"""CSV and Parquet files in."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from retrasyn.data import Trajectories, read, write
from retrasyn.data.metadata import Clock
from retrasyn.data.reading_files import read_columns
from retrasyn.errors import InputError

COLUMNS = {
    "traj_id": [3, 3, 3, 8, 8],
    "t": [0, 1, 2, 1, 2],
    "x": [0.1, 0.2, 0.3, 0.8, 0.9],
    "y": [0.1, 0.1, 0.2, 0.7, 0.7],
}
SUFFIXES = [".csv", ".parquet"]


def write_table(path, columns):
    table = pa.table(columns)
    if path.suffix.lower() == ".csv":
        pa.csv.write_csv(table, path)
    else:
        pa.parquet.write_table(table, path)
    return path


def write_text(path, text):
    path.write_text(text)
    return path


def assert_same(one, other):
    for name in ("stream_ids", "begins", "starts", "x", "y", "user_of_stream"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def refuse(path, *words):
    """Check that a file is refused with one line that names it and has all the words."""
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert "\n" not in message
    missing = [word for word in (str(path), *words) if word not in message]
    assert not missing, f"{message} does not name {missing}"


# What is accepted


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".CSV", ".Parquet"])
def test_a_file_gives_what_its_columns_give(suffix, tmp_path):
    path = write_table(tmp_path / f"in{suffix}", COLUMNS)

    assert_same(read(path), Trajectories.from_columns(**COLUMNS))


def test_a_path_may_be_text(tmp_path):
    path = write_table(tmp_path / "in.csv", COLUMNS)

    assert_same(read(str(path)), read(path))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_users_are_read_where_there_are_any(suffix, tmp_path):
    columns = {**COLUMNS, "user_id": [5, 5, 5, 4, 4]}

    real = read(write_table(tmp_path / f"in{suffix}", columns))

    assert real.user_of_stream.tolist() == [5, 4]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_other_columns_are_ignored_whatever_they_hold(suffix, tmp_path):
    columns = {"speed": [None, 1.5, float("nan"), 2.0, 3.0], **COLUMNS, "note": ["a,b"] * 5}

    real = read(write_table(tmp_path / f"in{suffix}", columns))

    assert_same(real, Trajectories.from_columns(**COLUMNS))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_order_of_columns_does_not_matter(suffix, tmp_path):
    columns = {name: COLUMNS[name] for name in ("y", "x", "t", "traj_id")}

    real = read(write_table(tmp_path / f"in{suffix}", columns))

    assert_same(real, Trajectories.from_columns(**COLUMNS))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_unsorted_rows_are_noted_once(suffix, tmp_path):
    columns = {name: column[::-1] for name, column in COLUMNS.items()}

    real = read(write_table(tmp_path / f"in{suffix}", columns))

    assert len(real.notes) == 1
    assert_same(real, Trajectories.from_columns(**COLUMNS))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_text_identifiers_keep_their_names(suffix, tmp_path):
    columns = {**COLUMNS, "traj_id": ["tram 3"] * 3 + ["Zoë, bus"] * 2}

    real = read(write_table(tmp_path / f"in{suffix}", columns))

    assert [real.name("traj_id", number) for number in real.stream_ids] == ["Zoë, bus", "tram 3"]


def test_text_identifiers_may_be_dictionaries(tmp_path):
    names = pa.array(["a", "a", "a", "b", "b"])

    plain = read(write_table(tmp_path / "one.parquet", {**COLUMNS, "traj_id": names}))
    coded = read(
        write_table(tmp_path / "two.parquet", {**COLUMNS, "traj_id": names.dictionary_encode()})
    )

    assert_same(plain, coded)
    assert plain.labels["traj_id"].tolist() == coded.labels["traj_id"].tolist()


def test_numbers_of_any_width_are_read(tmp_path):
    columns = {
        "traj_id": pa.array(COLUMNS["traj_id"], pa.uint16()),
        "t": pa.array(COLUMNS["t"], pa.int8()),
        "x": pa.array(COLUMNS["x"], pa.float32()),
        "y": pa.array([0, 0, 1, 1, 1], pa.int32()),
    }

    real = read(write_table(tmp_path / "in.parquet", columns))

    assert real.traj_id.tolist() == COLUMNS["traj_id"]
    assert real.t.tolist() == COLUMNS["t"]
    assert real.x.tolist() == np.array(COLUMNS["x"], np.float32).astype(float).tolist()
    assert real.y.tolist() == [0, 0, 1, 1, 1]


def test_whole_numbers_written_as_floats_are_read(tmp_path):
    text = "traj_id,t,x,y\n7.0,0.0,0.1,0.1\n7.0,1.0,0.2,0.1\n"

    real = read(write_text(tmp_path / "in.csv", text))

    assert (real.traj_id.tolist(), real.t.tolist()) == ([7, 7], [0, 1])


def test_a_parquet_file_in_many_pieces_is_read_in_order(tmp_path):
    path = tmp_path / "in.parquet"
    pa.parquet.write_table(pa.table(COLUMNS), path, row_group_size=2)

    assert_same(read(path), Trajectories.from_columns(**COLUMNS))


def test_a_csv_file_larger_than_one_block_is_read_whole(tmp_path):
    n_points = 120_000  # more than one megabyte, pyarrow's block
    columns = {
        "traj_id": np.zeros(n_points, int),
        "t": np.arange(n_points),
        "x": np.linspace(0, 1, n_points),
        "y": np.linspace(1, 0, n_points),
    }

    path = write_table(tmp_path / "in.csv", columns)

    assert path.stat().st_size > 2**20
    assert_same(read(path), Trajectories.from_columns(**columns))


def test_a_csv_file_from_another_system_is_read(tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes("\ufefftraj_id,t,x,y\r\n1,0,0.1,0.1\r\n1,1,0.2,0.1\r\n".encode())

    assert read(path).n_points == 2


# What is refused


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_file_is_refused(suffix, tmp_path):
    refuse(tmp_path / f"missing{suffix}", "does not exist", "check the path")


@pytest.mark.parametrize("name", ["in.txt", "in"])
def test_an_unknown_suffix_is_refused(name, tmp_path):
    refuse(write_text(tmp_path / name, "traj_id,t,x,y\n1,0,0,0\n"), ".parquet or .csv")


@pytest.mark.parametrize("name", ["folder", "folder.csv", "folder.parquet"])
def test_a_folder_is_refused_as_one(name, tmp_path):
    (tmp_path / name).mkdir()

    refuse(tmp_path / name, "is a folder")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_empty_file_is_refused(suffix, tmp_path):
    refuse(write_text(tmp_path / f"in{suffix}", ""), "is empty", "traj_id, t, x, y")


@pytest.mark.parametrize("text", ["traj_id,t,x,y\n", "traj_id,t,x,y"])
def test_a_header_alone_is_refused(text, tmp_path):
    refuse(write_text(tmp_path / "in.csv", text), "no rows")


def test_a_parquet_file_without_rows_is_refused(tmp_path):
    nothing = {name: pa.array([], pa.float64()) for name in COLUMNS}

    refuse(write_table(tmp_path / "in.parquet", nothing), "no rows")


@pytest.mark.parametrize(
    "data", [b"garbage" * 30, b"PAR1", b"PAR1" + bytes(40) + b"PAR1", bytes(100)]
)
def test_garbage_called_parquet_is_refused(data, tmp_path):
    path = tmp_path / "in.parquet"
    path.write_bytes(data)

    refuse(path, "cannot be read as parquet")


def test_half_a_parquet_file_is_refused(tmp_path):
    path = write_table(tmp_path / "in.parquet", COLUMNS)
    path.write_bytes(path.read_bytes()[:-100])

    refuse(path, "cannot be read as parquet")


@pytest.mark.parametrize("data", [bytes(range(256)), b"\xff\xfe" + "traj_id,t".encode("utf-16-le")])
def test_garbage_called_csv_is_refused(data, tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes(data)

    refuse(path)


def test_a_csv_file_of_parquet_bytes_is_refused(tmp_path):
    path = write_table(tmp_path / "in.parquet", COLUMNS).rename(tmp_path / "in.csv")

    refuse(path)


def test_a_csv_row_with_too_many_cells_is_refused(tmp_path):
    text = "traj_id,t,x,y\n1,0,0.1,0.1\n1,1,0.1,0.1,0.9\n"

    refuse(write_text(tmp_path / "in.csv", text), "4 columns, got 5")


def test_missing_columns_are_refused_with_those_there_are(tmp_path):
    path = write_text(tmp_path / "in.csv", "id,time,x,y\n1,0,0,0\n")

    refuse(path, "no column traj_id, t ", "id, time, x, y", "rename")


def test_a_column_with_a_space_in_its_name_is_refused_so_that_the_space_is_seen(tmp_path):
    path = write_text(tmp_path / "in.csv", "traj_id, t,x,y\n1,0,0,0\n")

    refuse(path, "no column t ", "' t'")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ["traj_id", "t", "x", "y", "user_id"])
def test_an_empty_cell_is_refused_by_column_and_row(name, suffix, tmp_path):
    columns = {**COLUMNS, "user_id": [5, 5, 5, 4, 4]}
    columns[name] = [*columns[name][:3], None, None]

    refuse(
        write_table(tmp_path / f"in{suffix}", columns),
        *(f"column {name} is empty", "row 4", "2 such rows", "fill them in"),
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ["traj_id", "user_id"])
def test_an_empty_cell_among_text_is_refused_too(name, suffix, tmp_path):
    columns = {**COLUMNS, "user_id": ["Ann", "Ann", "Ann", "Ben", "Ben"]}
    columns["traj_id"] = ["bus", "bus", "bus", "tram", "tram"]
    columns[name] = [*columns[name][:4], None]

    refuse(write_table(tmp_path / f"in{suffix}", columns), f"column {name} is empty", "row 5")


def test_the_row_of_an_empty_cell_counts_through_all_pieces_of_a_file(tmp_path):
    path = tmp_path / "in.parquet"
    columns = {**COLUMNS, "x": [0.1, 0.2, 0.3, 0.8, None]}
    pa.parquet.write_table(pa.table(columns), path, row_group_size=2)

    refuse(path, "column x", "row 5")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("name", ["x", "y"])
def test_a_number_that_is_not_finite_is_refused_by_value_and_row(name, value, suffix, tmp_path):
    columns = {**COLUMNS, name: [0.1, 0.2, float(value), 0.8, 0.9]}

    refuse(
        write_table(tmp_path / f"in{suffix}", columns),
        *(f"column {name}", value, "row 3", "remove these rows"),
    )


def test_the_row_of_a_bad_number_is_that_of_the_file_even_if_unsorted(tmp_path):
    columns = {name: column[::-1] for name, column in COLUMNS.items()}
    columns["y"] = [0.1, float("inf"), 0.1, 0.1, 0.1]

    refuse(write_table(tmp_path / "in.parquet", columns), "column y", "row 2")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ["t", "x", "y"])
def test_a_word_for_a_number_is_refused_by_value_and_row(name, suffix, tmp_path):
    columns = {**COLUMNS, name: ["0", "north", "2", "1", "2"]}

    refuse(write_table(tmp_path / f"in{suffix}", columns), f"column {name}", "north", "row 2")


@pytest.mark.parametrize("name", ["traj_id", "t", "x"])
def test_a_column_of_lists_is_refused(name, tmp_path):
    columns = {**COLUMNS, name: [[1], [1], [1], [2], [2]]}

    refuse(write_table(tmp_path / "in.parquet", columns), f"column {name}")


def test_a_column_of_clock_times_is_refused_with_a_way_out(tmp_path):
    day = dt.datetime(2008, 2, 2, 13, 30, tzinfo=dt.UTC)
    times = [day + dt.timedelta(minutes=10 * t) for t in COLUMNS["t"]]

    refuse(write_table(tmp_path / "in.parquet", {**COLUMNS, "t": times}), "number the time steps")


def test_text_that_is_not_utf_8_is_refused(tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes(b"traj_id,t,x,y\nZo\xeb,0,0.1,0.1\n")

    refuse(path, "traj_id", "UTF-8")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_fault_among_the_rows_names_the_file(suffix, tmp_path):
    columns = {**COLUMNS, "t": [0, 1, 1, 1, 2]}

    refuse(write_table(tmp_path / f"in{suffix}", columns), "traj_id 3 has two points at t=1")


def test_a_column_given_twice_is_refused(tmp_path):
    csv = write_text(tmp_path / "in.csv", "traj_id,traj_id,t,x,y\n1,2,0,0.1,0.1\n")
    table = pa.table([[1], [2], [0], [0.1], [0.1]], names=["traj_id", "traj_id", "t", "x", "y"])
    pa.parquet.write_table(table, tmp_path / "in.parquet")

    refuse(csv, "traj_id")
    refuse(tmp_path / "in.parquet", "traj_id")


def test_raw_formats_are_read_and_put_on_steps(tmp_path):
    text = (
        "uid,datetime,lat,lng\n7,2020-01-01 00:00:05,39.9,116.3\n7,2020-01-01 00:10:00,39.8,116.4\n"
    )
    path = write_text(tmp_path / "raw.csv", text)

    real = read(path, "csv", every="10min")

    assert (real.t.tolist(), real.x.tolist()) == ([0, 1], [116.3, 116.4])
    assert real.crs == "EPSG:4326"
    assert real.clock.period == 600


def test_options_without_a_raw_format_are_refused(tmp_path):
    with pytest.raises(InputError, match="only raw formats take options"):
        read(write_table(tmp_path / "in.csv", COLUMNS), every=60)


def test_our_own_geojson_with_real_times_comes_back_by_them(tmp_path):
    clock = Clock("2020-01-01T00:00:00+00:00", 600.0)
    real = Trajectories.from_columns(**COLUMNS, clock=clock, crs="EPSG:4326")
    write(real, tmp_path / "out.geojson", datetime=True)

    back = read(tmp_path / "out.geojson", "geojson", every="10min", user="traj_id")

    assert back.t.tolist() == real.t.tolist()
    assert back.x.tolist() == real.x.tolist()


def test_single_columns_of_a_checked_file_are_read_as_they_are(tmp_path):
    path = tmp_path / "few.parquet"
    write(Trajectories.from_columns(traj_id=[1, 2], t=[3, 3], x=[0.5, 1.5], y=[2, 4]), path)
    ids, y = read_columns(path, ("traj_id", "y"))
    assert (ids.tolist(), y.tolist()) == ([1, 2], [2.0, 4.0])
    with pytest.raises(InputError):
        read_columns(path, ("none",))
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(InputError):
        read_columns(path, ("x",))
    with pytest.raises(InputError):
        read_columns(tmp_path / "none.parquet", ("x",))
