"""Table V: seconds per timestamp of every component, beside the published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from retrasyn.experiments.cells import Results, Timing, Timings
from retrasyn.experiments.published import published_seconds
from retrasyn.experiments.tables.markdown import (
    heading,
    milliseconds,
    spread_text,
    table,
    times,
    whole,
)
from retrasyn.experiments.tables.summary import Book

if TYPE_CHECKING:
    from retrasyn.experiments.sources import DataSet

COMPONENTS = {
    "seconds_user": "User-side computation",
    "seconds_model": "Mobility model construction",
    "seconds_update": "Dynamic mobility update",
    "seconds_synthesis": "Real-time synthesis",
    "seconds_total": "Total",
}
METHODS = ("retrasyn-p", "retrasyn-b", "steered")


def table5(_results: Results, timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return one table per data set: ours, and how many times faster than published."""
    book = Book(timings)
    parts = []
    for dataset in datasets:
        methods = [m for m in METHODS if m in book.methods(dataset.name)]
        heads = ["milliseconds per timestamp", "retrasyn-p, published"]
        heads += [head for method in methods for head in (method, "times faster")]
        rows = [_row(book, measure, dataset.name, methods) for measure in COMPONENTS]
        figures = [
            book.read(measure, data=dataset.name, method=m)
            for measure in COMPONENTS
            for m in methods
        ]
        crowd = _crowd(book, dataset.name, methods)
        parts += [
            heading(dataset),
            f"{spread_text(figures)}{crowd}.",
            table(heads, rows),
        ]
    return "\n\n".join(parts) + "\n"


def speed_up(book: Book[Timing], measure: str, data: str, method: str) -> float | None:
    """Return how many times faster than published a component is."""
    ours, theirs = (
        book.read(measure, data=data, method=method),
        published_seconds(measure, data=data),
    )
    return theirs / ours.mean if ours and ours.mean > 0 and theirs is not None else None


def _row(book: Book[Timing], measure: str, data: str, methods: list[str]) -> list[str]:
    theirs = published_seconds(measure, data=data)
    row = [COMPONENTS[measure], "" if theirs is None else f"{1000 * theirs:,.1f}"]
    for method in methods:
        row.append(milliseconds(book.read(measure, data=data, method=method)))
        row.append(times(speed_up(book, measure, data, method)))
    return row


def _crowd(book: Book[Timing], data: str, methods: list[str]) -> str:
    """Say how many people there were, because time depends on it."""
    crowds = [book.read("n_active", data=data, method=method) for method in methods]
    known = next((crowd for crowd in crowds if crowd is not None), None)
    return f"; {whole(known.mean)} active users on average" if known else ""
