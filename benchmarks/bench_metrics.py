"""All metrics of one large data set against another, to pyarrow reading both files alone."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

import retrasyn
from workloads import Line, best, moving_objects

TIME_BAR = 20
MEMORY_BAR = 4.0  # GiB


def against_reading(one: Path, other: Path) -> Iterator[Line]:
    """Read both files and compute every figure, in turn with reading by pyarrow."""

    def ours() -> None:
        retrasyn.evaluate(retrasyn.read(one), retrasyn.read(other))

    def arrow() -> None:
        pq.read_table(one)
        pq.read_table(other)

    seconds = best({"ours": ours, "arrow": arrow}, repeats=3)
    n_points = pq.read_metadata(one).num_rows
    yield Line(
        f"evaluate, two files of {n_points / 1e6:.1f} million points / pyarrow reading both",
        seconds["ours"] / seconds["arrow"],
        TIME_BAR,
        f"{seconds['ours']:.2f} s against {seconds['arrow']:.2f} s",
    )


def command(one: Path, other: Path) -> Iterator[Line]:
    """Peak memory of the command itself, in a process of its own."""
    program = (
        "import json, resource, sys\n"
        "from retrasyn.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20))\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program, "evaluate", str(one), str(other)],
        capture_output=True,
        text=True,
        check=True,
    )
    peak = json.loads(found.stdout.splitlines()[-1])
    yield Line("peak memory of evaluate on them, GiB", peak, MEMORY_BAR, f"{peak:.2f} GiB")


def lines() -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as folder:
        one, other = (moving_objects(Path(folder), seed=seed) for seed in (0, 1))
        yield from against_reading(one, other)
        yield from command(one, other)
