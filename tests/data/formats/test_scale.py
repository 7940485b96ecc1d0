"""Sixteen million fixes in ten thousand files, beside what Arrow needs to parse them."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

N_FILES, N_LINES = 10_000, 1_600
CONVERT = """
import json, resource, sys, time
begin = time.perf_counter()
from retrasyn.data.discretise import discretise
from retrasyn.data.formats import read_fixes
from retrasyn.data.writing_files import write
real, summary = discretise(read_fixes(sys.argv[1], "tdrive"), every=sys.argv[3])
write(real, sys.argv[2])
seconds = time.perf_counter() - begin
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps({"seconds": seconds, "gib": peak, **summary.to_dict()}))
"""


def write_taxi(folder, taxi):
    """Write one file as T-Drive does: a fix every three minutes or so, for three days."""
    draw = np.random.default_rng(taxi)
    seconds = np.cumsum(draw.integers(1, 354, N_LINES)).astype("timedelta64[s]")
    stamps = pa.array(np.datetime64("2008-02-02T13:30:00") + seconds).cast(pa.string())
    x = np.round(116.4 + np.cumsum(draw.normal(0, 1e-3, N_LINES)), 5)
    y = np.round(39.9 + np.cumsum(draw.normal(0, 1e-3, N_LINES)), 5)
    table = pa.table({"id": np.full(N_LINES, taxi), "time": stamps, "x": x, "y": y})
    options = pa.csv.WriteOptions(include_header=False, quoting_style="none")
    pa.csv.write_csv(table, folder / f"{taxi}.txt", options)


def parse_alone(path):
    """Parse one file with Arrow and nothing else."""
    options = pa.csv.ReadOptions(column_names=["id", "time", "x", "y"], use_threads=False)
    return pa.csv.read_csv(path, read_options=options).num_rows


@pytest.fixture(scope="module")
def taxis(tmp_path_factory):
    folder = tmp_path_factory.mktemp("taxis")
    for taxi in range(1, N_FILES + 1):
        write_taxi(folder, taxi)
    return folder


@pytest.mark.long
@pytest.mark.parametrize("every", ["10min", "1s"])  # with 1s every fix is kept
def test_sixteen_million_fixes_convert_in_two_gib_and_three_times_what_parsing_takes(
    every, taxis, tmp_path
):
    begin = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        n_rows = sum(pool.map(parse_alone, sorted(taxis.iterdir())))
    alone = time.perf_counter() - begin

    ended = subprocess.run(
        [sys.executable, "-c", CONVERT, str(taxis), str(tmp_path / "out.parquet"), every],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
    )
    found = json.loads(ended.stdout)

    print(f"every {every}: {found}, Arrow alone {alone:.2f} s")  # noqa: T201 - seen with -s
    assert n_rows == found["n_fixes"] == N_FILES * N_LINES
    assert found["gib"] <= 2
    assert found["seconds"] <= 3 * alone
