"""Table IV: what selecting significant states, and entering and quitting, are worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from retrasyn.experiments.cells import Results, Timings
from retrasyn.experiments.tables.lines import ABLATIONS
from retrasyn.experiments.tables.markdown import entry_text, heading, spread_text, table
from retrasyn.experiments.tables.summary import METRIC, Book
from retrasyn.experiments.tables.utility import CAPTION, HEADLINE, named, read_entries

if TYPE_CHECKING:
    from retrasyn.experiments.sources import DataSet


def table4(results: Results, _timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return one table per data set at epsilon 1: metrics in rows, methods in columns."""
    book = Book(results)
    parts = []
    for dataset in datasets:
        figures = {
            key: [row[0] for row in read_entries(book, ABLATIONS, key, dataset.name, epsilon=[1.0])]
            for key in HEADLINE
        }
        rows = [
            [named(METRIC[key]), *(entry_text(entry, 3) for entry in row)]
            for key, row in figures.items()
        ]
        spread = spread_text(entry.ours for row in figures.values() for entry in row)
        parts += [
            heading(dataset),
            "ε = 1. " + CAPTION.format(spread=spread).replace("a column", "a row"),
            table(["metric", *(line.title for line in ABLATIONS)], rows),
        ]
    return "\n\n".join(parts) + "\n"
