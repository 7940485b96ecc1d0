"""Run every benchmark and print its ratios: `make bench`, or `benchmarks/run.py synthesis trips`.

With the folder of the recorded data sets in RETRASYN_DATA, the end-to-end figures are taken on
them; without it, on the built-in city. A whole run is added to `history.csv`, from which
`docs/figures/draw_speed.py` draws. Exits 1 if a ratio misses its bar.
"""

from __future__ import annotations

import csv
import datetime as dt
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

from workloads import Line

HISTORY = Path(__file__).with_name("history.csv")
NAMES = (
    *("import", "device", "ingest", "synthesis", "steered", "trips", "end_to_end", "metrics"),
    *("answers", "oracles", "replicas", "ray", "service", "viewer", "map"),
)


def main(names: list[str]) -> int:
    if unknown := set(names) - set(NAMES):
        print(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
        return 2
    table, lines = Table("what", "ratio", "bar", "met", "measured"), list[Line]()
    for name in names or NAMES:
        for line in import_module(f"bench_{name}").lines():
            bar = f"{'>=' if line.at_least else '<='} {line.bar:g}"
            style, met = (None, "yes") if line.holds else ("bold red", "no")
            table.add_row(line.name, f"{line.ratio:.2f}", bar, met, line.detail, style=style)
            lines.append(line)
    Console(width=130).print(table)
    if not names:
        remember(lines)
    return 0 if all(line.holds for line in lines) else 1


def remember(lines: list[Line]) -> None:
    """Add a run to the history."""
    git = ["git", "-C", str(HISTORY.parent), "describe", "--always", "--dirty"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    begins = not HISTORY.exists()
    with HISTORY.open("a", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        if begins:
            rows.writerow(["date", "commit", "name", "ratio", "bar", "at_least"])
        for line in lines:
            told = f"{line.ratio:.4g}", f"{line.bar:g}", int(line.at_least)
            rows.writerow([dt.datetime.now(dt.UTC).date(), commit, line.name, *told])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
