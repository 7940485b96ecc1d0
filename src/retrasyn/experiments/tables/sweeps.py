"""One setting varied, the others at their defaults: window, span, grid, scale (Sec. V)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from retrasyn.experiments.cells import Results, Timing, Timings
from retrasyn.experiments.tables.fits import straight_line
from retrasyn.experiments.tables.lines import MAIN, line
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

WINDOW_MEASURES = ("density_error", "transition_error", "pattern_f1", "trip_error")
SPAN_MEASURES = ("query_error", "hotspot_ndcg", "pattern_f1")
GRID_MEASURES = ("query_error", "density_error")
TIMED = ("retrasyn-b", "retrasyn-p", "steered")
SECONDS = "Running time, milliseconds per timestamp (smaller is better)"


def window(results: Results, _timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return the utility for windows of 10 to 50 timestamps."""
    return _page(datasets, lambda data: _utility(results, data, WINDOW_MEASURES, "window", "w"))


def span(results: Results, _timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return the utility over evaluation spans of 5 to 100 timestamps."""
    return _page(datasets, lambda data: _utility(results, data, SPAN_MEASURES, "span", "φ"))


def grid(results: Results, timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return time and utility for 2 to 18 cells a side."""

    def blocks(data: str) -> Iterable[str]:
        yield from _time(Book(timings), data, "side", lambda side: f"K = {side}")
        yield from _utility(results, data, GRID_MEASURES, "side", "K")

    return _page(datasets, blocks)


def scale(_results: Results, timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return the time for 20 to 100 % of the users, and how straight its line is."""

    def blocks(data: str) -> Iterable[str]:
        book = Book(timings)
        yield from _time(book, data, "share", lambda share: f"{100 * share:g} %")
        heads = ["method", "milliseconds per 1,000 active users", "variance explained by a line"]
        yield table(heads, filter(None, (_linear(book, data, method) for method in TIMED)))

    return _page(datasets, blocks)


def time_against_users(
    book: Book[Timing], data: str, method: str
) -> list[tuple[float, Summary, float]]:
    """Return (share, seconds, mean active users) of every share that was timed."""
    points = []
    for share in book.steps("share", data):
        key: dict[str, Any] = {"data": data, "method": method, "share": share}
        spent, crowd = book.read("seconds_total", **key), book.read("n_active", **key)
        if spent is not None and crowd is not None:
            points.append((share, spent, crowd.mean))
    return points


def _page(datasets: Sequence[DataSet], blocks: Callable[[str], Iterable[str]]) -> str:
    parts = []
    for dataset in datasets:
        parts += [heading(dataset), *blocks(dataset.name)]
    return "\n\n".join(parts) + "\n"


def _utility(
    results: Results, data: str, measures: Sequence[str], field: str, letter: str
) -> Iterable[str]:
    book = Book(results)
    values = book.steps(field, data)
    rows = [line(method) for method in MAIN if method in book.methods(data, field)]
    figures = {key: read_entries(book, rows, key, data, **{field: values}) for key in measures}
    ours = [entry.ours for entries in figures.values() for row in entries for entry in row]
    yield f"ε = 1. {spread_text(ours)}. Bold: the best of a column."
    for key, entries in figures.items():
        yield f"### {named(METRIC[key])}"
        heads = ["method", *(f"{letter} = {value}" for value in values)]
        body = zip(rows, entries, strict=True)
        yield table(heads, ([row.title, *map(entry_text, texts)] for row, texts in body))


def _time(book: Book[Timing], data: str, field: str, name: Callable[[Any], str]) -> Iterable[str]:
    values = book.steps(field, data)
    rows = {
        method: [
            book.read("seconds_total", data=data, method=method, **{field: value})
            for value in values
        ]
        for method in TIMED
        if method in book.methods(data, field)
    }
    yield f"### {SECONDS}"
    yield f"{spread_text(figure for row in rows.values() for figure in row)}."
    yield table(
        ["method", *map(name, values)],
        [[method, *map(milliseconds, row)] for method, row in rows.items()],
    )


def _linear(book: Book[Timing], data: str, method: str) -> list[str]:
    points = time_against_users(book, data, method)
    fit = straight_line([crowd for *_, crowd in points], [spent.mean for _, spent, _ in points])
    return [] if fit is None else [method, f"{1e6 * fit.slope:.3f}", f"{fit.explained:.4f}"]
