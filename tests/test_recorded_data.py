"""Proofs on recorded data. Name its folder in RETRASYN_DATA and run ``make test-long``."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from retrasyn import METHODS, Box, Grid, StateSpace, read, synthesize

DATA = os.environ.get("RETRASYN_DATA")
BOX = Box(116.15, 39.75, 116.60, 40.10)
COMMAND = Path(sys.executable).with_name("retrasyn")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(DATA is None, reason="RETRASYN_DATA names no folder with tdrive.parquet"),
]


@pytest.fixture(scope="module")
def tdrive():
    return read(Path(DATA) / "tdrive.parquet")


def arguments(out, *more):
    source = Path(DATA) / "tdrive.parquet"
    extent = ",".join(map(str, BOX))
    return [
        COMMAND, "synthesize", source, "-o", out, "--method", "retrasyn-p",
        "--box", extent, "--seed", "1", "--json", *more,
    ]  # fmt: skip


def run(out, *more, threads=2):
    environment = os.environ | {"NUMBA_NUM_THREADS": str(threads)}
    return subprocess.run(
        [str(part) for part in arguments(out, *more)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )


def figures(real, synthetic, *more):
    done = subprocess.run(
        [COMMAND, "evaluate", real, synthetic, "--grid", "6", "--span", "20", "--json", *more],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def column_bytes(path):
    table = pq.read_table(path)
    return {name: table[name].to_numpy().tobytes() for name in table.column_names}


def test_the_command_keeps_sizes_neighbours_and_consecutive_times(tmp_path, tdrive):
    receipt = json.loads(run(tmp_path / "out.parquet").stdout)
    synthetic = read(tmp_path / "out.parquet")  # refuses gaps and duplicates
    assert not synthetic.notes  # written in order
    assert np.bincount(synthetic.t).tolist() == np.bincount(tdrive.t).tolist()
    grid = Grid(BOX, 6)
    cells, n_outside = grid.locate(synthetic.x, synthetic.y)
    inner = np.ones(synthetic.n_points, np.bool_)
    inner[synthetic.starts[:-1]] = False
    rows = np.flatnonzero(inner)
    assert n_outside == 0
    assert (StateSpace(grid).moves(cells[rows - 1], cells[rows]) >= 0).all()
    assert receipt["worst_window"]["person_position"]["epsilon"] <= 1.0


def test_threads_and_interruptions_do_not_change_a_byte(tmp_path):
    run(tmp_path / "one.parquet", threads=1)
    run(tmp_path / "two.parquet", threads=2)
    kept = tmp_path / "kept"
    interrupted = subprocess.Popen(
        [str(part) for part in arguments(tmp_path / "three.parquet", "--checkpoint", kept)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(2.5)
    interrupted.send_signal(signal.SIGINT)
    interrupted.communicate(timeout=60)
    assert interrupted.returncode == 130
    assert not (tmp_path / "three.parquet").exists()
    run(tmp_path / "three.parquet", "--checkpoint", kept, "--resume")
    first = column_bytes(tmp_path / "one.parquet")
    assert first == column_bytes(tmp_path / "two.parquet")
    assert first == column_bytes(tmp_path / "three.parquet")


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("window", [1, 20, 900])
def test_no_taxi_exceeds_epsilon_in_any_window(name, window, tdrive):
    _, receipt = synthesize(tdrive, name, box=BOX, window=window, seed=0)
    if not receipt.private:
        assert receipt.worst_window.declared.epsilon is None
        return
    assert receipt.within_guarantee
    assert receipt.worst_window.declared.epsilon <= 1.0
    assert receipt.worst_window.person_position.epsilon <= 1.0


@pytest.mark.parametrize("name", ["retrasyn-p", "retrasyn-b"])
def test_a_faithful_receipt_shows_what_a_taxi_really_spent(name, tdrive):
    _, receipt = synthesize(tdrive, name, box=BOX, faithful=True, seed=0)
    assert receipt.worst_window.declared.epsilon <= 1.0
    assert receipt.worst_window.person_position.epsilon > 1.0


def test_the_figures_of_the_authors_own_release_are_found_again(tmp_path):
    """An external check, on what their program made of these taxis."""
    metres, theirs = tmp_path / "metres.parquet", Path(DATA) / "authors_retrasyn_p.parquet"
    convert = [COMMAND, "convert", Path(DATA) / "tdrive.parquet", "-o", metres]
    subprocess.run([*convert, "--from-crs", "EPSG:4326", "--to-crs", "EPSG:3857"], check=True)

    found = [figures(metres, theirs, "--seed", str(seed)) for seed in range(10)]

    exact = {
        "density_error": 0.1154,
        "transition_error": 0.3765,
        "kendall_tau": 0.7270,
        "trip_error": 0.2615,
        "length_error": 0.2084,
    }
    assert {name: found[0][name] for name in exact} == pytest.approx(exact, abs=0.0005)
    drawn = {"query_error": 0.52, "hotspot_ndcg": 0.53, "pattern_f1": 0.43}
    means = {name: np.mean([one[name] for one in found]) for name in drawn}
    assert means == pytest.approx(drawn, abs=0.04)
