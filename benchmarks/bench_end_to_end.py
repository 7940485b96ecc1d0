"""`synthesize` on files against pyarrow reading the input and writing the output alone."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

import retrasyn
from workloads import Line, best, recordings

MEMORY_BAR = 3.0  # GiB


def file_to_file(name: str, path: Path, box: retrasyn.Box, folder: Path) -> Iterator[Line]:
    """Read, synthesise and write, in turn with reading and writing by pyarrow."""
    out, copy = folder / "out.parquet", folder / "copy.parquet"

    def ours() -> None:
        synthetic, _ = retrasyn.synthesize(retrasyn.read(path), box=box, seed=1)
        retrasyn.write(synthetic, out)

    ours()
    written = pq.read_table(out)

    def arrow() -> None:
        pq.read_table(path)
        pq.write_table(written, copy)

    seconds = best({"ours": ours, "arrow": arrow}, repeats=4)
    yield Line(
        f"synthesize {name} / pyarrow reading and writing",
        seconds["ours"] / seconds["arrow"],
        4,
        f"{seconds['ours']:.2f} s against {seconds['arrow']:.2f} s",
    )


def command(name: str, path: Path, box: retrasyn.Box, folder: Path) -> Iterator[Line]:
    """Peak memory of the command itself, in a process of its own."""
    program = (
        "import json, resource, sys\n"
        "from retrasyn.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit:\n    pass\n"
        "print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20))\n"
    )
    arguments = ["synthesize", str(path), "-o", str(folder / "out.parquet"), "--seed", "1"]
    extent = ",".join(map(str, box))
    found = subprocess.run(
        [sys.executable, "-c", program, *arguments, "--box", extent],
        capture_output=True,
        text=True,
        check=True,
    )
    peak = json.loads(found.stdout.splitlines()[-1])
    yield Line(f"peak memory on {name}, GiB", peak, MEMORY_BAR, f"{peak:.2f} GiB")


def lines() -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for data, (path, box) in recordings(folder).items():
            yield from file_to_file(data, path, box, folder)
            yield from command(data, path, box, folder)
