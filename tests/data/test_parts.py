"""A folder of parts is the one file it stands for."""

import dataclasses
import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn import read, synthesize, write
from retrasyn.data.metadata import Clock
from retrasyn.data.parts import count_points, drop_after, parts_in
from retrasyn.engines.base import LocalEngine
from retrasyn.errors import InputError
from retrasyn.receipts.files import describe, receipt_place
from retrasyn.simulation.city import CITY_BOX, demo_city
from retrasyn.sinks import parts as sinks
from support.command_line import assert_refused, run, write_table

pytestmark = pytest.mark.system

BOX = "0,0,10,10"


@pytest.fixture(scope="module")
def city():
    return demo_city(n_users=200, n_timestamps=45, seed=3)


def same(one, other):
    columns = ("stream_ids", "begins", "starts", "x", "y")
    return all(np.array_equal(getattr(one, n), getattr(other, n)) for n in columns) and (
        (one.clock, one.crs, one.notes) == (other.clock, other.crs, other.notes)
    )


@given(st.integers(1, 7), st.sampled_from([50, 1 << 22]), st.sampled_from(["steered", "noeq-p"]))
def test_a_folder_of_parts_reads_like_one_file(tmp_path_factory, city, n_shards, rows, method):
    folder = tmp_path_factory.mktemp("parts")
    object.__setattr__(city, "clock", Clock("2024-05-01T00:00:00+00:00", 60.0))
    whole, receipt = synthesize(city, method, box=CITY_BOX, window=5, seed=0)
    (folder / "parts").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sinks, "ROWS", rows)
        none, other = synthesize(
            city,
            method,
            box=CITY_BOX,
            window=5,
            parts=folder / "parts",
            engine=LocalEngine(n_shards),
            seed=0,
        )
    (folder / "parts").rename(folder / "parts.parquet")
    write(whole, folder / "one.parquet")
    assert same(read(folder / "one.parquet"), read(folder / "parts.parquet"))
    assert none.n_points == 0
    assert receipt == other


def test_the_command_writes_parts_and_a_receipt_that_verifies(tmp_path, city):
    write(city, tmp_path / "city.parquet")
    out = tmp_path / "synthetic.parquet"
    source = ["synthesize", tmp_path / "city.parquet", "--box", BOX, "--seed", 3]
    assert run(*source, "-o", out, "--shards", 3, "--parts").code == 0
    assert run(*source, "-o", tmp_path / "one.parquet").code == 0
    assert same(read(out), read(tmp_path / "one.parquet"))
    assert len(parts_in(out)) == 9  # 45 timestamps are three parts of each shard
    assert count_points(out) == read(out).n_points
    checked = run("receipt", "verify", receipt_place(out), "--input", tmp_path / "city.parquet")
    assert checked.code == 0, checked.out
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    parts_in(out)[0].write_bytes(parts_in(out)[1].read_bytes())
    assert run("receipt", "verify", receipt_place(out)).code != 0


def test_the_digest_of_parts_is_that_of_the_lines_of_sha256sum(tmp_path, city):
    place = tmp_path / "p.parquet"
    place.mkdir()
    synthesize(city, box=CITY_BOX, parts=place, engine=LocalEngine(2), seed=0)
    lines = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n" for p in parts_in(place)]
    assert describe(place).sha256 == hashlib.sha256("".join(lines).encode()).hexdigest()
    assert describe(place).n_bytes == sum(p.stat().st_size for p in parts_in(place))


def test_a_run_that_was_stopped_goes_on_with_its_parts(tmp_path, city):
    def stop(done, _):
        if done == 30:
            raise KeyboardInterrupt

    place = tmp_path / "parts"
    place.mkdir()
    keywords = {"box": CITY_BOX, "parts": place, "checkpoint": tmp_path / "kept", "seed": 0}
    with pytest.raises(KeyboardInterrupt):
        synthesize(city, engine=LocalEngine(3), progress=stop, **keywords)
    (place / "part-00002-0000000040.parquet").write_bytes(b"of a time that comes again")
    synthesize(city, engine=LocalEngine(2), resume=True, **keywords)
    expected, _ = synthesize(city, box=CITY_BOX, seed=0)
    assert same(read(place.rename(tmp_path / "p.parquet")), expected)


def test_parts_have_times_where_the_clock_is_known(tmp_path, city):
    place = tmp_path / "p.parquet"
    place.mkdir()
    clock = Clock("2026-05-04T06:00:00+02:00", 60.0)
    timed = dataclasses.replace(city, clock=clock)

    synthesize(timed, box=CITY_BOX, parts=place, engine=LocalEngine(2), seed=0)

    for part in parts_in(place):
        table = pa.parquet.read_table(part)
        times = [clock.time_of(t) for t in table["t"].to_pylist()]
        assert table["time"].to_pylist() == times
    expected, _ = synthesize(timed, box=CITY_BOX, seed=0)
    assert same(read(place), expected)


def test_parts_that_begin_later_are_dropped(tmp_path):
    for t in (0, 7, 20):
        (tmp_path / f"part-00001-{t:010d}.parquet").touch()
    (tmp_path / "notes.txt").touch()
    drop_after(tmp_path, 7)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "notes.txt",
        "part-00001-0000000000.parquet",
        "part-00001-0000000007.parquet",
    ]


def test_a_folder_without_parts_is_refused(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["-o", "out.csv", "--parts"], "folder that ends in .parquet"),
        (["-o", "there.parquet", "--parts"], "is there already"),
        (["-o", "nowhere/out.parquet", "--parts"], "does not exist"),
        (["-o", "out.parquet", "--parts", "--datetime"], "--datetime cannot go with --parts"),
        (["-o", "out.parquet", "--parts", "--no-datetime"], "--no-datetime cannot go with --parts"),
        (["-o", "out.parquet", "--address", "auto"], "--address auto needs --engine ray"),
        (["-o", "out.parquet", "--shards", "0"], "--shards"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(tmp_path, monkeypatch, options, named):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.parquet").mkdir()
    source = write_table(
        tmp_path / "trips.csv", {"traj_id": [1, 1], "t": [0, 1], "x": [0.1, 0.2], "y": [0.1, 0.2]}
    )
    assert_refused(tmp_path, ["synthesize", source, "--box", "0,0,1,1", *options], named)
