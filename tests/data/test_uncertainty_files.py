"""Standard errors as a table, and how they travel."""

import datetime as dt
import json

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from retrasyn import demo_city, synthesize
from retrasyn.data.metadata import Clock
from retrasyn.data.uncertainty_files import UncertaintyTable, check_errors_file
from retrasyn.errors import OutputError
from retrasyn.simulation.city import CITY_BOX
from retrasyn.space import Grid

GRID = Grid(CITY_BOX, 4)


@pytest.fixture(scope="module")
def run():
    table, releases = UncertaintyTable(GRID), []

    def keep(release):
        table.add(release)
        releases.append(release)

    city = demo_city(n_users=300, n_timestamps=30, seed=1)
    synthetic, receipt = synthesize(city, grid=GRID, window=5, seed=1, on_release=keep)
    return table, releases, synthetic, receipt


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_every_cell_and_flow_of_every_timestamp_has_a_row(run, suffix, tmp_path):
    table, releases, _, _ = run
    path = tmp_path / f"errors{suffix}"
    table.write(path)
    rows = (pa_csv.read_csv(path) if suffix == ".csv" else pq.read_table(path)).to_pylist()
    known = [release for release in releases if release.uncertainty is not None]
    assert len(rows) == len(known) * (16 + 100)
    for release in known[::7]:
        of_t = [row for row in rows if row["t"] == release.t]
        cells = [row for row in of_t if row["to"] is None]
        assert [row["cell"] for row in cells] == list(range(16))
        shares = np.bincount(release.cells, minlength=16) / release.cells.size
        assert [row["share"] for row in cells] == pytest.approx(shares.tolist())
        flows = [row for row in of_t if row["to"] is not None]
        assert all(row["to"] in GRID.neighbours(row["cell"]) for row in flows)
        assert sum(row["share"] for row in flows) == pytest.approx(1.0)
        assert all(row["standard_error"] > 0 for row in flows)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_times_stand_beside_timestamps_where_they_are_known(run, suffix, tmp_path):
    path, clock = tmp_path / f"errors{suffix}", Clock("2026-05-04T06:00:00+02:00", 600.0)
    run[0].write(path, clock)
    table = pa_csv.read_csv(path) if suffix == ".csv" else pq.read_table(path)
    assert table.column_names[:3] == ["t", "time", "cell"]
    times = [time.replace(tzinfo=dt.UTC) for time in table["time"].to_pylist()]
    assert times == [clock.time_of(t) for t in table["t"].to_pylist()]


def test_the_receipt_states_the_mean_errors(run):
    _, releases, _, receipt = run
    known = [release.uncertainty for release in releases if release.uncertainty is not None]
    assert receipt.standard_error.cell == pytest.approx(np.mean([k.cell_errors for k in known]))
    assert receipt.standard_error.flow == pytest.approx(np.mean([k.flow_errors for k in known]))
    assert json.loads(receipt.to_json())["standard_error"]["cell"] == receipt.standard_error.cell


def test_a_method_that_knows_no_errors_says_so(tmp_path):
    table = UncertaintyTable(GRID)
    city = demo_city(n_users=50, n_timestamps=10, seed=1)
    _, receipt = synthesize(city, "retrasyn-p", grid=GRID, on_release=table.add, seed=0)
    table.write(tmp_path / "errors.parquet")
    assert receipt.standard_error is None
    assert pq.read_table(tmp_path / "errors.parquet").num_rows == 0


def test_other_formats_and_missing_folders_are_refused(tmp_path):
    with pytest.raises(OutputError, match=r"\.parquet or \.csv"):
        check_errors_file(tmp_path / "errors.json")
    with pytest.raises(OutputError):
        check_errors_file(tmp_path / "nowhere" / "errors.csv")
