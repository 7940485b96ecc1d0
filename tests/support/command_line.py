"""Running the command line, in this process or as a real command, and reading what it left."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from retrasyn.cli import main
from retrasyn.simulation.composition import ReleasedBeforeWarning
from retrasyn.simulation.run import BoxInferredWarning

COMMAND = str(Path(sys.executable).with_name("retrasyn"))
PATIENCE = 120  # seconds: a first run compiles

Table = dict[str, npt.NDArray[Any]]

TWO_STREAMS = {
    "traj_id": [1, 1, 1, 2, 2],
    "t": [0, 1, 2, 1, 2],
    "x": [0.1, 0.2, 0.3, 0.8, 0.9],
    "y": [0.1, 0.1, 0.2, 0.7, 0.7],
}
"""Two streams in the unit square."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str


def run(*arguments: object, stdin: str = "") -> Outcome:
    """Run the command line in this process; what it does not catch, the test sees."""
    out, err = io.StringIO(), io.StringIO()
    with (
        warnings.catch_warnings(),  # gives back the way of showing them that main sets
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()))),
    ):
        for told in (BoxInferredWarning, ReleasedBeforeWarning):
            warnings.simplefilter("always", told)
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            return Outcome(int(end.code or 0), out.getvalue(), err.getvalue())
    raise AssertionError("main returned instead of exiting")


def environment(**changes: str) -> dict[str, str]:
    """Return this environment without what would flush for the program under test."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return {**kept, **changes}


def run_command(*arguments: object, stdin: str = "", **variables: str) -> Outcome:
    """Run the installed command as a process of its own."""
    ended = subprocess.run(
        [COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env=environment(**variables),
    )
    return Outcome(ended.returncode, ended.stdout, ended.stderr)


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return every file and folder below a folder, hidden ones too, with the files' bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def assert_one_line(outcome: Outcome, *names: str) -> None:
    """Check that a refusal is one line which names what it must, with exit code 2."""
    assert outcome.code == 2, outcome
    assert outcome.err.startswith("error: "), outcome.err
    assert outcome.err.endswith("\n")
    assert outcome.err.count("\n") == 1, outcome.err
    missing = [name for name in names if name not in outcome.err]
    assert not missing, f"{outcome.err!r} does not name {missing}"


def assert_refused(folder: Path, arguments: Sequence[object], *names: str) -> None:
    """Check that a command is refused in one line and leaves a folder exactly as it was."""
    before = contents(folder)
    outcome = run(*arguments)
    assert_one_line(outcome, *names)
    assert outcome.out == ""
    assert contents(folder) == before


def write_table(path: Path, columns: Mapping[str, Any]) -> Path:
    """Write columns to a CSV or Parquet file, by suffix."""
    table = pa.table(dict(columns))
    if path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    else:
        pa.parquet.write_table(table, path)
    return path


def read_table(path: Path) -> Table:
    """Read all columns of a CSV or Parquet file, by suffix."""
    table = pa.csv.read_csv(path) if path.suffix == ".csv" else pa.parquet.read_table(path)
    return {name: table.column(name).to_numpy() for name in table.column_names}


def points_per_timestamp(t: npt.ArrayLike) -> dict[int, int]:
    """Count the points of every timestamp that has any."""
    times, counts = np.unique(np.asarray(t), return_counts=True)
    return dict(zip(times.tolist(), counts.tolist(), strict=True))


def assert_is_stream(table: Table, *, box: tuple[float, float, float, float], side: int) -> None:
    """Check what every output promises: sorted, consecutive, in the box, to neighbours only."""
    assert list(table) == ["traj_id", "t", "x", "y"]
    traj_id, t, x, y = table.values()
    assert np.array_equal(np.lexsort((t, traj_id)), np.arange(t.size))
    x0, y0, x1, y1 = box
    assert np.all((x >= x0) & (x <= x1) & (y >= y0) & (y <= y1))  # NaN fails too
    same = traj_id[1:] == traj_id[:-1]
    assert np.all(np.diff(t)[same] == 1)
    column = np.minimum(np.floor((x - x0) / (x1 - x0) * side), side - 1)
    row = np.minimum(np.floor((y - y0) / (y1 - y0) * side), side - 1)
    assert np.all(np.abs(np.diff(column))[same] <= 1)
    assert np.all(np.abs(np.diff(row))[same] <= 1)
