"""What is missing is run, once, and being stopped loses nothing that was finished."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from retrasyn.data.writing_files import write
from retrasyn.experiments import runner
from retrasyn.experiments.cells import UTILITY, Cell, ResultFile, Timing
from retrasyn.experiments.measuring import OF_SPAN, clock, measure
from retrasyn.experiments.sources import DataSource
from retrasyn.experiments.studies import ALL_DATA, STUDIES, Scope, cells_of, timings_of
from retrasyn.metrics.suite import evaluate
from retrasyn.simulation.city import demo_city
from retrasyn.simulation.run import synthesize
from retrasyn.space import Box, Grid

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def city():
    return demo_city(n_users=800, n_timestamps=40, seed=1)


@pytest.fixture
def source(tmp_path, city):
    file = tmp_path / "city.parquet"
    write(city, file)
    return DataSource(name="tdrive", file=file)


def silent(_label, _done, _total):
    pass


def cell(**changes):
    return dataclasses.replace(Cell(data="tdrive", method="retrasyn-p", side=4), **changes)


@pytest.mark.parametrize("method", ["retrasyn-p", "lba", "steered"])
def test_a_measured_run_is_what_the_library_makes(city, method):
    grid = Grid(Box.around(city.x, city.y), 4)
    synthetic, receipt = synthesize(city, method, grid=grid, epsilon=2.0, window=10, seed=3)
    (row,) = measure(city, [cell(method=method, epsilon=2.0, window=10, seed=3)])
    scores = evaluate(city, synthetic, grid, seed=3).to_dict()
    assert {name: row[name] for name in scores} == scores
    assert row["n_reports"] == receipt.n_reports
    assert row["worst_window"] == receipt.worst_window.person_position.epsilon
    assert row["n_timestamps"] == receipt.timestamps
    assert 0 <= row["never_asked"] < 1


def test_bits_are_reports_times_states_where_everybody_reports_everything(city):
    (row,) = measure(city, [cell()])
    assert row["bits"] * row["n_timestamps"] == pytest.approx(row["n_reports"] * row["n_states"])


def test_everybody_is_asked_when_budget_is_divided(city):
    (row,) = measure(city, [cell(method="retrasyn-b")])
    assert row["never_asked"] == 0


def test_spans_share_a_run_and_bring_only_what_depends_on_them(city):
    rows = measure(city, [cell(), cell(span=5)])
    assert set(rows[1]) == set(OF_SPAN)
    assert rows[1] != {name: rows[0][name] for name in OF_SPAN}


def test_a_share_of_the_users_is_a_smaller_run(city):
    whole, part = (measure(city, [cell(share=share)])[0] for share in (1.0, 0.4))
    assert 0.3 < part["n_active"] / whole["n_active"] < 0.5


def test_only_what_is_missing_becomes_a_task(source):
    cells = [cell(), cell(span=5), cell(seed=1), cell(seed=1), cell(data="oldenburg")]
    tasks = runner.tasks_for(cells, [cell()], [source])
    assert [task.cells for task in tasks] == [(cell(span=5),), (cell(seed=1),)]
    assert "epsilon 1, w 20, K 4, seed 1" in tasks[1].label


def test_processes_bring_the_same_rows_as_none(tmp_path, source):
    cells = [cell(seed=seed) for seed in range(3)]
    found = []
    for jobs in (1, 2):
        store = ResultFile(tmp_path / f"{jobs}.csv", Cell, UTILITY)
        runner.run_cells(runner.tasks_for(cells, [], [source]), store, jobs=jobs, told=silent)
        rows = store.load()
        found.append({key: {**row, "seconds": 0} for key, row in rows.items()})
    assert found[0] == found[1]
    assert list(found[0]) == cells


def test_progress_counts_up_to_the_end(tmp_path, source):
    told = []
    store = ResultFile(tmp_path / "cells.csv", Cell, UTILITY)
    tasks = runner.tasks_for([cell(), cell(seed=1)], [], [source])
    runner.run_cells(tasks, store, jobs=1, told=lambda *words: told.append(words[1:]))
    assert told == [(1, 2), (2, 2)]


def test_timings_cover_every_component(tmp_path, city, source):
    row = clock(city, Timing(data="tdrive", method="steered", side=4))
    parts = ["user", "model", "update", "synthesis"]
    assert all(row[f"seconds_{part}"] > 0 for part in parts)
    assert sum(row[f"seconds_{part}"] for part in parts) <= row["seconds_total"]
    assert row["n_timestamps"] == 40


def test_every_study_names_its_runs():
    for study in STUDIES.values():
        cells = cells_of(study, ALL_DATA, Scope(seeds=2, epsilons=(1.0,)))
        timings = timings_of(study, ALL_DATA, Scope())
        assert study.name == "table1" or cells or timings
        assert {one.seed for one in cells} in (set(), {0, 1})


def test_table3_has_every_private_method_of_its_groups():
    scope = Scope(seeds=1)
    cells = cells_of(STUDIES["table3"], ["tdrive"], scope)
    by_method = {one.method for one in cells}
    assert {"lbd", "lpa-eq", "lba-steered", "sample-b", "steered-hidden"} <= by_method
    assert sorted({one.epsilon for one in cells}) == [0.5, 1.0, 1.5, 2.0]
    assert {one.method for one in cells if one.faithful} == {"retrasyn-b", "retrasyn-p"}


def test_workers_end_when_their_parent_is_killed(tmp_path, city):
    write(city, tmp_path / "city.parquet")
    script = tmp_path / "parent.py"
    script.write_text(
        "import os, sys, time\n"
        "from retrasyn.experiments import runner\n"
        "def wait_long():\n"
        "    print(os.getpid(), flush=True)\n"
        "    time.sleep(600)\n"
        "if __name__ == '__main__':\n"
        "    with runner._pool(1) as pool:\n"
        "        pool.submit(wait_long).result()\n"
    )
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    try:
        worker = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and _lives(worker):
        time.sleep(0.05)
    assert not _lives(worker)


def _lives(process):
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_unknown_figures_are_left_out_not_written_as_nan(city):
    rows = measure(city, [cell(method="noeq-p")])
    assert not any(np.isnan(value) for value in rows[0].values())
