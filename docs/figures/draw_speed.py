"""Draws every benchmark's ratio beside its bar, run by run: python docs/figures/draw_speed.py."""

import csv
import html
import math
from collections import defaultdict
from pathlib import Path

from draw import svg

HERE = Path(__file__).parent
HISTORY = HERE.parents[1] / "benchmarks" / "history.csv"
LEFT, WIDTH, ROW, TOP = 560, 900, 19, 64
DECADES = 2  # shown to either side of the bar


def main() -> None:
    """Draw the history."""
    shares = defaultdict[str, list[float]](list)  # ratio by bar of every run; less is better
    runs = dict[tuple[str, str], None]()
    with HISTORY.open(newline="") as file:
        for row in csv.DictReader(file):
            share = float(row["ratio"]) / float(row["bar"])
            shares[row["name"]].append(1.0 / share if row["at_least"] == "1" else share)
            runs[row["date"], row["commit"]] = None
    date, commit = list(runs)[-1]
    bottom = TOP + ROW * len(shares)
    parts = [
        '<text class="title" x="20" y="28">Every benchmark, as a multiple of its bar</text>',
        f'<text class="small dim" x="20" y="47">Left of the line it is met. Filled: the run of '  # noqa: ISC004 - one text
        f"{date}, {commit}; rings: earlier ones.</text>",
        f'<path class="axis" d="M{place(1)} {TOP - 6}V{bottom}"/>',
    ]
    for number, (name, known) in enumerate(shares.items()):
        parts += row_of(html.escape(name), known, TOP + ROW * number + 10)
    for power in range(-DECADES, DECADES + 1):
        at = f'class="small dim" x="{place(10.0**power)}" y="{bottom + 20}" text-anchor="middle"'
        parts.append(f"<text {at}>{10.0**power:g}</text>")
    about = "A dot for every benchmark, on a logarithmic axis around the bar it has to meet."
    (HERE / "speed.svg").write_text(svg(WIDTH, bottom + 34, "Benchmarks", about, parts))


def row_of(name: str, known: list[float], y: int) -> list[str]:
    """Return a benchmark's name and its dots."""
    ring, look = 'class="axis" fill="none" r="3.5"', "warn" if known[-1] > 1 else "dots"
    return [
        f'<text class="small" x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{name}</text>',
        *(f'<circle {ring} cx="{place(share)}" cy="{y}"/>' for share in known[:-1]),
        f'<circle class="{look}" cx="{place(known[-1])}" cy="{y}" r="4"/>',
    ]


def place(share: float) -> str:
    """Return where on the axis a ratio stands."""
    power = min(max(math.log10(share), -DECADES), DECADES)
    half = (WIDTH - 60 - LEFT) / 2
    return f"{LEFT + 20 + half * (1 + power / DECADES):.1f}"


if __name__ == "__main__":
    main()
