"""Tables that vary one setting, and the table of allocation strategies (Sec. V)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from retrasyn.experiments.cells import Cell, Results, Timing, Timings
from retrasyn.experiments.tables.costs import straight_line
from retrasyn.experiments.tables.markdown import (
    METRIC,
    Book,
    SeedSummary,
    entry_text,
    heading,
    milliseconds,
    spread_text,
    table,
)
from retrasyn.experiments.tables.utility import MAIN, Line, line, named, read_entries

if TYPE_CHECKING:
    from retrasyn.experiments.sources import DataSet


WINDOW_MEASURES = ("density_error", "transition_error", "pattern_f1", "trip_error")
SPAN_MEASURES = ("query_error", "hotspot_ndcg", "pattern_f1")
GRID_MEASURES = ("query_error", "density_error")
TIMED = ("retrasyn-b", "retrasyn-p", "steered")
SECONDS = "Running time, milliseconds per timestamp (smaller is better)"


def window(results: Results, _timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return utility for windows of 10 to 50 timestamps."""
    return _page(datasets, lambda data: _utility(results, data, WINDOW_MEASURES, "window", "w"))


def span(results: Results, _timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return utility over evaluation spans of 5 to 100 timestamps."""
    return _page(datasets, lambda data: _utility(results, data, SPAN_MEASURES, "span", "φ"))


def grid(results: Results, timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return time and utility for grids of 2 to 18 cells a side."""

    def blocks(data: str) -> Iterable[str]:
        yield from _time(Book(timings), data, "side", lambda side: f"K = {side}")
        yield from _utility(results, data, GRID_MEASURES, "side", "K")

    return _page(datasets, blocks)


def scale(_results: Results, timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return the time for 20 to 100 % of the users, and how linear it is."""

    def blocks(data: str) -> Iterable[str]:
        book = Book(timings)
        yield from _time(book, data, "share", lambda share: f"{100 * share:g} %")
        heads = ["method", "milliseconds per 1,000 active users", "variance explained by a line"]
        yield table(heads, filter(None, (_linear(book, data, method) for method in TIMED)))

    return _page(datasets, blocks)


def time_against_users(
    book: Book[Timing], data: str, method: str
) -> list[tuple[float, SeedSummary, float]]:
    """Return (share, seconds, mean active users) for every timed share."""
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


MEASURES = ("query_error", "transition_error", "kendall_tau")
STRATEGIES = {
    "Adaptive": ("retrasyn-b", "retrasyn-p"),
    "Uniform": ("uniform-b", "uniform-p"),
    "Sample": ("sample-b", "sample-p"),
    "Random": ("", "random-p"),  # slots of their own exist under user division only
}
"""The method of each strategy under budget division and under user division."""


def allocation(results: Results, timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return one table per data set, with strategies in rows."""
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
    """State how much the strategies differ in time, which the paper calls negligible."""
    parts = []
    for k, division in enumerate("bp"):
        read = [
            seconds.read("seconds_total", data=data, method=pair[k])
            for pair in STRATEGIES.values()
            if pair[k]
        ]
        known: list[SeedSummary] = [figure for figure in read if figure is not None]
        if len(known) > 1:
            means = [figure.mean for figure in known]
            parts.append(f"{1000 * (max(means) - min(means)):.2f} ms (-{division})")
    return f" Slowest less fastest: {', '.join(parts)} per timestamp." if parts else ""
