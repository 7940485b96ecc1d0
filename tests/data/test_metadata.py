"""Epoch, period and coordinate system travel with the data."""

import datetime as dt
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrasyn import synthesize
from retrasyn.data import Trajectories, read, write
from retrasyn.data.metadata import Clock, Metadata, instants, iso_texts
from retrasyn.errors import InputError, OutputError
from support.command_line import assert_refused, run

CLOCK = Clock("2008-02-02T08:00:00+08:00", 600.0)


@pytest.fixture
def known():
    return Trajectories.from_columns(
        traj_id=[3, 3, 8],
        t=[0, 1, 1],
        x=[0.1, 0.2, 0.9],
        y=[0.1, 0.1, 0.8],
        clock=CLOCK,
        crs="EPSG:4326",
    )


offsets = st.integers(-14 * 60, 14 * 60).map(
    lambda minutes: dt.timezone(dt.timedelta(minutes=minutes))
)
clocks = st.builds(
    lambda epoch, period: Clock(epoch.isoformat(), period),
    st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1), timezones=offsets),  # noqa: DTZ001
    st.sampled_from([0.25, 1.0, 15.0, 600.0, 86400.0]) | st.floats(0.001, 1e5),
)


@given(clock=st.none() | clocks, crs=st.sampled_from([None, "EPSG:4326", 'Zoë"\\', '{"name": 1}']))
def test_what_is_written_down_is_read_back(clock, crs):
    known = Metadata(clock, crs)

    assert Metadata.of_schema(known.to_schema()) == known
    assert Metadata.parse(json.dumps(known.to_dict())) == known


def test_where_nothing_is_known_nothing_is_written():
    assert Metadata().to_schema() == {}
    assert Metadata.of_schema(None) == Metadata()


def test_what_a_later_version_adds_is_passed_over():
    assert Metadata.parse('{"version": 9, "crs": "EPSG:4326", "mood": "good"}').crs == "EPSG:4326"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "3",
        "{",
        b"\xff",
        '{"epoch": "2008-02-02T00:00:00+00:00"}',
        '{"period": 3}',
        '{"epoch": 5, "period": 3}',
        '{"epoch": "2008-02-02", "period": 3}',
        '{"epoch": "2008-02-02T00:00:00+00:00", "period": "x"}',
        '{"epoch": "2008-02-02T00:00:00+00:00", "period": -1}',
        '{"crs": 4326}',
    ],
)
def test_damaged_metadata_is_refused(text):
    with pytest.raises(InputError, match="'retrasyn' is damaged"):
        Metadata.parse(text)


@given(clock=clocks, t=st.lists(st.integers(-10_000, 10_000), min_size=1))
def test_instants_are_those_of_the_clock(clock, t):
    moments = instants(clock, np.array(t))

    for number, moment in zip(t, moments.tolist(), strict=True):
        exact = clock.time_of(number).astimezone(dt.UTC).replace(tzinfo=None)
        assert abs(moment - exact) <= dt.timedelta(microseconds=1)


@given(clock=clocks, t=st.lists(st.integers(-1000, 1000), min_size=1))
def test_written_instants_are_read_back(clock, t):
    moments = instants(clock, np.array(t))

    texts = iso_texts(moments, whole_seconds=clock.period.is_integer())

    for text, moment in zip(texts.tolist(), moments.tolist(), strict=True):
        assert dt.datetime.fromisoformat(text) == moment.replace(tzinfo=dt.UTC)


def test_times_beyond_the_calendar_are_refused():
    with pytest.raises(OutputError, match=r"outside the years 1\.\.9999; check epoch and period"):
        instants(Clock("2008-02-02T00:00:00+00:00", 86400.0), np.array([0, 2_000_000_000]))


# Through files


@pytest.mark.parametrize("suffix", [".parquet", ".geoparquet"])
def test_a_file_keeps_clock_and_coordinate_system(suffix, known, tmp_path):
    path = tmp_path / f"out{suffix}"

    write(known, path)

    assert (read(path).clock, read(path).crs) == (CLOCK, "EPSG:4326")


def test_a_parquet_file_names_them_in_its_schema(known, tmp_path):
    write(known, tmp_path / "out.parquet")

    entries = pa.parquet.read_schema(tmp_path / "out.parquet").metadata
    assert json.loads(entries[b"retrasyn"]) == {
        "version": 1,
        "epoch": "2008-02-02T08:00:00+08:00",
        "period": 600.0,
        "crs": "EPSG:4326",
    }


def test_a_damaged_entry_is_refused_with_the_file(tmp_path):
    table = pa.table({"traj_id": [1], "t": [0], "x": [0.0], "y": [0.0]})
    path = tmp_path / "in.parquet"
    pa.parquet.write_table(table.replace_schema_metadata({b"retrasyn": b"{"}), path)

    with pytest.raises(InputError, match=r"in\.parquet: its metadata 'retrasyn' is damaged"):
        read(path)


# Through synthesis


def test_synthetic_data_has_the_clock_and_coordinate_system_of_the_real(known):
    synthetic, _ = synthesize(known, window=2, grid=2, box=(0, 0, 1, 1), seed=0)

    assert (synthetic.clock, synthetic.crs) == (CLOCK, "EPSG:4326")


@pytest.mark.parametrize("suffix", [".parquet", ".geoparquet"])
def test_the_command_line_carries_them_through(suffix, known, tmp_path):
    write(known, tmp_path / "in.parquet")

    outcome = run(
        *("synthesize", tmp_path / "in.parquet", "-o", tmp_path / f"out{suffix}"),
        *("--box", "0,0,1,1", "--grid", 2, "--window", 2, "--datetime"),
    )

    assert outcome.code == 0, outcome.err
    assert (read(tmp_path / f"out{suffix}").clock, read(tmp_path / f"out{suffix}").crs) == (
        CLOCK,
        "EPSG:4326",
    )
    table = pa.parquet.read_table(tmp_path / f"out{suffix}")
    times = set(table.column("time").to_pylist())
    assert times <= {CLOCK.time_of(0), CLOCK.time_of(1)}
    assert times


@pytest.mark.parametrize("suffix", [".csv", ".geojson", ".mfjson"])
def test_the_command_line_writes_every_format(suffix, known, tmp_path):
    write(known, tmp_path / "in.parquet")

    outcome = run(
        *("synthesize", tmp_path / "in.parquet", "-o", tmp_path / f"out{suffix}"),
        *("--box", "0,0,1,1", "--grid", 2, "--window", 2, "--datetime"),
    )

    assert outcome.code == 0, outcome.err
    assert "2008-02-02T00:00:00Z" in (tmp_path / f"out{suffix}").read_text()


@pytest.mark.parametrize(("suffix", "flags"), [(".csv", ["--datetime"]), (".mfjson", [])])
def test_times_nobody_knows_are_refused_before_anything_is_spent(suffix, flags, tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("traj_id,t,x,y\n1,0,0.5,0.5\n")

    assert_refused(
        tmp_path,
        ["synthesize", source, "-o", tmp_path / f"out{suffix}", "--box", "0,0,1,1", *flags],
        *(f"out{suffix}", "needs real times", "epoch and period"),
    )
