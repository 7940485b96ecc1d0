"""Trajectories to files, whole or not at all."""

import dataclasses
import datetime as dt
import os
import stat

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given

from retrasyn.data import Trajectories, read, write, writing_files
from retrasyn.data.metadata import Clock
from retrasyn.data.writing_files import check_writable
from retrasyn.errors import OutputError
from retrasyn.files import replacing
from support.streams import recordings

SUFFIXES = [".csv", ".parquet"]
EVERY_SUFFIX = [*SUFFIXES, ".geoparquet", ".geojson", ".mfjson"]
CLOCK = Clock("2008-02-02T08:00:00+08:00", 600.0)


@pytest.fixture
def two_streams():
    return Trajectories.from_columns(
        traj_id=[3, 3, 8], t=[4, 5, 4], x=[0.1, 1 / 3, -1e-300], y=[116.4, 2**-52, 1e300]
    )


def read_table(path):
    return pa.csv.read_csv(path) if path.suffix == ".csv" else pa.parquet.read_table(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_back_bit_by_bit(suffix, two_streams, tmp_path):
    path = tmp_path / f"out{suffix}"

    write(two_streams, path)

    again = read(path)
    assert again.notes == ()
    for name in ("stream_ids", "begins", "starts", "x", "y"):
        assert getattr(again, name).tobytes() == getattr(two_streams, name).tobytes(), name


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_rows_are_sorted_by_stream_and_time(suffix, tmp_path):
    mixed = Trajectories.from_columns(
        traj_id=[9, 2, 9, 2], t=[1, 7, 0, 6], x=[1, 2, 3, 4], y=[5, 6, 7, 8]
    )

    write(mixed, str(tmp_path / f"out{suffix}"))

    assert read_table(tmp_path / f"out{suffix}").to_pydict() == {
        "traj_id": [2, 2, 9, 9],
        "t": [6, 7, 0, 1],
        "x": [4, 2, 3, 1],
        "y": [8, 6, 7, 5],
    }


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_users_and_names_are_written_as_they_were_read(suffix, tmp_path):
    named = Trajectories.from_columns(
        traj_id=["tram", "bus", "bus"],
        t=[0, 3, 4],
        x=[1, 2, 3],
        y=[4, 5, 6],
        user_id=["Zoë", "Ann, B.", "Ann, B."],
    )

    write(named, tmp_path / f"out{suffix}")

    table = read_table(tmp_path / f"out{suffix}").to_pydict()
    assert table["traj_id"] == ["bus", "bus", "tram"]
    assert table["user_id"] == ["Ann, B.", "Ann, B.", "Zoë"]
    assert read(tmp_path / f"out{suffix}").user_id.tolist() == named.user_id.tolist()


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(real=recordings())
def test_a_file_written_in_many_pieces_holds_the_same(tmp_path_factory, suffix, real):
    path = tmp_path_factory.mktemp("pieces") / f"out{suffix}"

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writing_files, "_ROWS_AT_ONCE", 7)
        write(real, path)

    table = read_table(path)
    for name, column in (("traj_id", real.traj_id), ("t", real.t), ("x", real.x), ("y", real.y)):
        assert np.array_equal(table.column(name).to_numpy(), column), name


@pytest.mark.parametrize("suffix", EVERY_SUFFIX)
def test_the_same_streams_give_the_same_bytes(suffix, two_streams, tmp_path):
    dated = dataclasses.replace(two_streams, clock=CLOCK, crs="EPSG:4326")

    for name in ("one", "two"):
        write(dated, tmp_path / f"{name}{suffix}", datetime=True)

    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", EVERY_SUFFIX)
def test_a_disk_that_fails_leaves_nothing_behind(suffix, two_streams, tmp_path, monkeypatch):
    def fail(self, n_rows):
        yield from self.__class__.blocks_before(self, n_rows)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Trajectories, "blocks_before", Trajectories.blocks, raising=False)
    monkeypatch.setattr(Trajectories, "blocks", fail)

    with pytest.raises(OutputError, match="No space left on device"):
        write(dataclasses.replace(two_streams, clock=CLOCK), tmp_path / f"out{suffix}")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_times_are_added_where_they_are_known_and_passed_over_when_read(
    suffix, two_streams, tmp_path
):
    path = tmp_path / f"out{suffix}"

    write(dataclasses.replace(two_streams, clock=CLOCK), path, datetime=False)
    assert "time" not in read_table(path).column_names
    write(dataclasses.replace(two_streams, clock=CLOCK), path)

    table = read_table(path)
    assert table.column_names == ["traj_id", "t", "time", "x", "y"]
    times = [time.replace(tzinfo=dt.UTC) for time in table.column("time").to_pylist()]
    assert times == [CLOCK.time_of(int(t)) for t in two_streams.t]
    assert read(path).x.tolist() == two_streams.x.tolist()


@pytest.mark.parametrize("period", [600.0, 600])
def test_times_in_csv_are_iso_instants(period, two_streams, tmp_path):
    clock = Clock(CLOCK.epoch, period)

    write(dataclasses.replace(two_streams, clock=clock), tmp_path / "out.csv")

    assert (tmp_path / "out.csv").read_text().splitlines()[:2] == [
        '"traj_id","t","time","x","y"',
        '3,4,"2008-02-02T00:40:00Z",0.1,116.4',
    ]


@pytest.mark.parametrize("suffix", EVERY_SUFFIX)
def test_times_nobody_knows_are_refused(suffix, two_streams, tmp_path):
    with pytest.raises(OutputError, match="needs real times"):
        write(two_streams, tmp_path / f"out{suffix}", datetime=True)

    assert list(tmp_path.iterdir()) == []


def test_an_earlier_file_is_replaced(two_streams, tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")

    write(two_streams, path)

    assert read(path).n_points == 3
    assert list(tmp_path.iterdir()) == [path]


def test_a_written_file_has_the_permissions_of_any_new_file(two_streams, tmp_path):
    before = os.umask(0o027)
    try:
        write(two_streams, tmp_path / "out.csv")
        after = os.umask(0o027)
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "out.csv").stat().st_mode) == 0o640
    assert after == 0o027


# Replacing


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "out.txt"

    with replacing(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()

    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("fault", [KeyboardInterrupt, ValueError])
def test_a_file_that_fails_leaves_nothing_and_keeps_what_was_there(fault, tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def fail():
        with replacing(path) as temporary:
            temporary.write_text("new")
            raise fault

    with pytest.raises(fault):
        fail()

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_fault_of_the_disk_is_named_with_the_file(tmp_path):
    def fail():
        with replacing(tmp_path / "out.txt"):
            raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match=r"out\.txt cannot be written: No space left on device"):
        fail()

    assert list(tmp_path.iterdir()) == []


def test_a_file_in_a_missing_folder_is_refused(tmp_path):
    with (
        pytest.raises(OutputError, match=r"no/out\.txt cannot be written"),
        replacing(tmp_path / "no" / "out.txt"),
    ):
        pytest.fail("there is nowhere to write to")


def test_a_link_is_replaced_and_the_file_it_leads_to_stays(tmp_path):
    goal, link = tmp_path / "goal.txt", tmp_path / "link.txt"
    goal.write_text("old")
    link.symlink_to(goal)

    with replacing(link) as temporary:
        temporary.write_text("new")

    assert link.read_text() == "new"
    assert goal.read_text() == "old"


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to a pipe"])
def test_what_is_no_file_is_never_replaced(tmp_path, kind):
    path, pipe = tmp_path / "out", tmp_path / "pipe"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(pipe)
        path.symlink_to(pipe)
    before = path.lstat()

    with pytest.raises(OutputError, match=r"out cannot be written"), replacing(path) as temporary:
        temporary.write_text("new")

    assert path.lstat().st_ino == before.st_ino
    assert sorted(tmp_path.iterdir()) == sorted(p for p in (path, pipe) if os.path.lexists(p))


# What is refused


def refuse(path, *words):
    with pytest.raises(OutputError) as caught:
        check_writable(path)
    missing = [word for word in (str(path), *words) if word not in str(caught.value)]
    assert not missing, f"{caught.value} does not name {missing}"


@pytest.mark.parametrize(
    "name", ["out.csv", "out.parquet", "out.CSV", "out.geoparquet", "out.geojson", "out.mfjson"]
)
def test_a_place_to_write_is_accepted_and_left_alone(name, tmp_path):
    assert check_writable(str(tmp_path / name)) == tmp_path / name
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "ends"), [("out.txt", ".txt"), ("out", "nothing")])
def test_an_unknown_suffix_is_refused(name, ends, tmp_path):
    refuse(tmp_path / name, f"ends in {ends}", ".parquet or .csv")


def test_a_folder_is_refused(tmp_path):
    (tmp_path / "out.csv").mkdir()

    refuse(tmp_path / "out.csv", "is a folder")


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(OutputError, match="no does not exist; create it"):
        check_writable(tmp_path / "no" / "out.csv")


def test_a_file_in_place_of_a_folder_is_refused_as_one(tmp_path):
    (tmp_path / "file").write_text("mine")

    with pytest.raises(OutputError, match="file is not a folder"):
        check_writable(tmp_path / "file" / "out.csv")


@pytest.mark.parametrize("folder", ["/proc", "/proc/self"])
def test_a_folder_where_nobody_may_write_is_refused_at_once(folder):
    with pytest.raises(OutputError, match=folder):
        check_writable(f"{folder}/out.csv")


def test_a_name_too_long_for_the_disk_is_refused(tmp_path):
    refuse(tmp_path / ("o" * 300 + ".csv"))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_writing_checks_the_place_first(suffix, two_streams, tmp_path):
    with pytest.raises(OutputError, match="does not exist"):
        write(two_streams, tmp_path / "no" / f"out{suffix}")
