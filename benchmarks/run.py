"""Run every benchmark and print its ratios. ``make bench`` calls this.

With the folder of the recorded data sets in RETRASYN_DATA, the end-to-end figures are taken on
them; without it, on the built-in city. Exits 1 if a ratio misses its bar.
"""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

import bench_answers
import bench_device
import bench_end_to_end
import bench_import
import bench_ingest
import bench_map
import bench_metrics
import bench_oracles
import bench_ray
import bench_replicas
import bench_service
import bench_steered
import bench_synthesis
import bench_trips
import bench_viewer


def main() -> int:
    table = Table("what", "ratio", "bar", "measured")
    missed = 0
    for bench in (
        bench_import,
        bench_device,
        bench_ingest,
        bench_synthesis,
        bench_steered,
        bench_trips,
        bench_end_to_end,
        bench_metrics,
        bench_answers,
        bench_oracles,
        bench_ray,
        bench_replicas,
        bench_service,
        bench_viewer,
        bench_map,
    ):
        for line in bench.lines():
            bar = f"{'>=' if line.at_least else '<='} {line.bar:g}"
            style = None if line.holds else "bold red"
            table.add_row(line.name, f"{line.ratio:.2f}", bar, line.detail, style=style)
            missed += not line.holds
    Console(width=120).print(table)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
