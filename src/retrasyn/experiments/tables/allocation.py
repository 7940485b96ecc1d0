"""The allocation strategies: utility, who is never asked, and time (Sec. V, figure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from retrasyn.experiments.cells import Cell, Results, Timing, Timings
from retrasyn.experiments.tables.lines import Line, line
from retrasyn.experiments.tables.markdown import (
    entry_text,
    heading,
    milliseconds,
    spread_text,
    table,
)
from retrasyn.experiments.tables.summary import METRIC, Book, Summary
from retrasyn.experiments.tables.utility import named, read_entries

if TYPE_CHECKING:
    from retrasyn.experiments.sources import DataSet

MEASURES = ("query_error", "transition_error", "kendall_tau")
STRATEGIES = {
    "Adaptive": ("retrasyn-b", "retrasyn-p"),
    "Uniform": ("uniform-b", "uniform-p"),
    "Sample": ("sample-b", "sample-p"),
    "Random": ("", "random-p"),  # a slot of one's own divides users only
}
"""Each strategy dividing the budget, and dividing the users."""


def allocation(results: Results, timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return one table per data set, strategies in rows."""
    utility, seconds = Book(results), Book(timings)
    parts = []
    for dataset in datasets:
        rows = [line(pair[0], f"({name})") for name, pair in STRATEGIES.items() if pair[0]]
        rows += [line(pair[1], f"({name})") for name, pair in STRATEGIES.items()]
        rows.append(Line(title="steered", methods=("steered",), in_contest=False))
        columns = [
            [row[0] for row in read_entries(utility, rows, key, dataset.name, epsilon=[1.0])]
            for key in MEASURES
        ]
        heads = ["method", *(named(METRIC[key]) for key in MEASURES)]
        heads += ["never asked", "milliseconds per timestamp"]
        body = [
            [
                row.title,
                *map(entry_text, entries),
                *_cost(utility, seconds, dataset.name, row.methods[0]),
            ]
            for row, *entries in zip(rows, *columns, strict=True)
        ]
        spread = spread_text(entry.ours for column in columns for entry in column)
        caption = (
            f"ε = 1. {spread}. Bold: the best strategy of a column. "
            "Never asked: the share of all persons who never report anything."
        )
        caption += _apart(seconds, dataset.name)
        parts += [heading(dataset), caption, table(heads, body)]
    return "\n\n".join(parts) + "\n"


def _cost(utility: Book[Cell], seconds: Book[Timing], data: str, method: str) -> tuple[str, str]:
    never = utility.read("never_asked", data=data, method=method)
    spent = seconds.read("seconds_total", data=data, method=method)
    return ("" if never is None else f"{100 * never.mean:.1f} %"), milliseconds(spent)


def _apart(seconds: Book[Timing], data: str) -> str:
    """Say how far apart the strategies are in time, which the paper calls negligible."""
    parts = []
    for k, division in enumerate("bp"):
        read = [
            seconds.read("seconds_total", data=data, method=pair[k])
            for pair in STRATEGIES.values()
            if pair[k]
        ]
        known: list[Summary] = [figure for figure in read if figure is not None]
        if len(known) > 1:
            means = [figure.mean for figure in known]
            parts.append(f"{1000 * (max(means) - min(means)):.2f} ms (-{division})")
    return f" Slowest less fastest: {', '.join(parts)} per timestamp." if parts else ""
