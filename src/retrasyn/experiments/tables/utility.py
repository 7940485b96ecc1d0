"""Tables III and IV: utility of every method, and ablations of its parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retrasyn.experiments.cells import Cell, Results, Timings
from retrasyn.experiments.published import Source, published
from retrasyn.experiments.tables.markdown import (
    METRIC,
    Book,
    SeedSummary,
    TableEntry,
    entry_text,
    heading,
    merit,
    spread_text,
    table,
)
from retrasyn.metrics.suite import METRICS, Metric

if TYPE_CHECKING:
    from retrasyn.experiments.sources import DataSet


LDP_IDS = ("lbd", "lba", "lpd", "lpa")
MAIN = (*LDP_IDS, "retrasyn-b", "retrasyn-p", "steered")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row; if it stands for several methods, the best mean counts in each cell."""

    title: str
    methods: tuple[str, ...]
    paper: str = ""  # the paper's method to compare with
    faithful: bool = False
    beside: tuple[Source, ...] = ()  # whose results are shown below it in the headline table
    in_contest: bool = True  # may be marked best: keeps its guarantee, not selected afterwards

    def read(self, book: Book[Cell], metric: str, **key: Any) -> SeedSummary | None:
        """Return our result for one cell."""
        figures = [
            book.read(metric, method=method, faithful=self.faithful, **key)
            for method in self.methods
        ]
        known = [figure for figure in figures if figure is not None]
        return max(known, key=lambda figure: merit(METRIC[metric], figure.mean), default=None)


def line(method: str, note: str = "", *, paper: str = "", beside: tuple[Source, ...] = ()) -> Line:
    """Return the row of one method."""
    return Line(title=f"{method} {note}".strip(), methods=(method,), paper=paper, beside=beside)


def _faithful(method: str) -> Line:
    return Line(
        title=f"{method} (authors' reading)",
        methods=(method,),
        paper=method,
        beside=("paper", "authors"),
        faithful=True,
        in_contest=False,
    )


def _best(division: str) -> Line:
    methods = tuple(f"{name}-{division}" for name in ("retrasyn", "uniform", "sample"))
    return Line(
        title=f"best of three allocations, -{division}",
        methods=methods,
        paper=f"retrasyn-{division}",
        beside=("paper",),
        in_contest=False,
    )


GROUPS: dict[str, tuple[Line, ...]] = {
    "LDP-IDS, as the paper compares": tuple(
        line(name, paper=name, beside=("paper", "authors")) for name in LDP_IDS
    ),
    "LDP-IDS with entering and quitting": tuple(line(f"{name}-eq") for name in LDP_IDS),
    "LDP-IDS with our synthesiser": tuple(line(f"{name}-steered") for name in LDP_IDS),
    "The paper's method": (
        line("retrasyn-b", "(Adaptive)", paper="retrasyn-b"),
        line("retrasyn-p", "(Adaptive)", paper="retrasyn-p"),
        *(line(f"{name}-{division}") for name in ("uniform", "sample") for division in "bp"),
        *(_best(division) for division in "bp"),
    ),
    "Read as the authors' program does, with a weaker guarantee": tuple(
        _faithful(name) for name in ("retrasyn-b", "retrasyn-p")
    ),
    "Ours": (
        line("steered"),
        line("steered-flags", "(starts and stops public)"),
        line("steered-length", "(no age reports)"),
        line("steered-hidden", "(presence hidden)"),
    ),
}
"""The rows of Table III."""

ABLATIONS = (
    *(
        line(f"{name}-{division}", paper=f"{name}-{division}")
        for name in ("allupdate", "noeq", "retrasyn")
        for division in "bp"
    ),
    line("steered"),
)
"""The rows of Table IV."""


DIRECTION = {"smaller": "smaller is better", "larger": "larger is better", "one": "1 is best"}
HEADLINE = (*(metric.key for metric in METRICS[:8]), "stream_ratio")
SOURCES: dict[Source, str] = {"paper": "published", "authors": "the authors' program"}
CAPTION = (
    "{spread}; in brackets the published figure, which the "
    "paper took for RetraSyn as the best of three allocations in each cell. Bold: the best mean "
    "of a column among methods that keep the guarantee."
)


def table3(results: Results, timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return the headline table, then one section per data set with one table per metric."""
    book = Book(results)
    parts = [headline(results, timings, datasets)]
    for dataset in datasets:
        epsilons = book.steps("epsilon", dataset.name)
        lines = known_lines(book, dataset.name, epsilons)
        figures = {
            metric.key: read_entries(book, lines, metric.key, dataset.name, epsilon=epsilons)
            for metric in METRICS
        }
        parts += [heading(dataset), CAPTION.format(spread=spread_text(_ours(figures.values())))]
        heads = ["method", *(f"ε = {epsilon:g}" for epsilon in epsilons)]
        for metric in METRICS:
            parts += [f"### {named(metric)}", _grouped(heads, lines, figures[metric.key])]
    return "\n\n".join(parts) + "\n"


def headline(results: Results, _timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return one table per data set at epsilon 1, with methods in rows and metrics in columns."""
    book = Book(results)
    parts = []
    for dataset in datasets:
        lines = known_lines(book, dataset.name, [1.0])
        columns = [
            [row[0] for row in read_entries(book, lines, metric, dataset.name, epsilon=[1.0])]
            for metric in HEADLINE
        ]
        entries = [list(row) for row in zip(*columns, strict=True)]
        heads = ["method", *(METRIC[key].title + _arrow(METRIC[key]) for key in HEADLINE)]
        spread = spread_text(_ours([entries]))
        caption = (
            f"ε = 1, w = 20, K = 6, φ = 20. {spread}. "
            "↓ smaller is better, ↑ larger is better, 1 is the best stream ratio. Bold: the best "
            "of a column among methods that keep the guarantee."
        )
        rows = _headline_rows(lines, entries, dataset.name)
        parts += [heading(dataset, ", ε = 1"), caption, table(heads, rows)]
    return "\n\n".join(parts) + "\n"


def known_lines(book: Book[Cell], data: str, epsilons: Iterable[float]) -> dict[Line, str]:
    """Return the rows that have any result, each with its group."""
    return {
        line: group
        for group, lines in GROUPS.items()
        for line in lines
        if any(
            line.read(book, METRICS[0].key, data=data, epsilon=epsilon) is not None
            for epsilon in epsilons
        )
    }


def read_entries(
    book: Book[Cell], lines: Iterable[Line], metric: str, data: str, **sweep: Sequence[Any]
) -> list[list[TableEntry]]:
    """Return the entries of some rows over the values of one field, marking the best."""
    ((field, values),) = sweep.items()
    rows = list(lines)
    columns = []
    for value in values:
        key = {"data": data, field: value}
        ours = [line.read(book, metric, **key) for line in rows]
        epsilon = value if field == "epsilon" else 1.0
        theirs = [_published(line, metric, data, epsilon) for line in rows]
        best = best_mean(METRIC[metric], zip(rows, ours, strict=True))
        columns.append(
            [
                TableEntry(mine, paper, mine is not None and line.in_contest and mine.mean == best)
                for line, mine, paper in zip(rows, ours, theirs, strict=True)
            ]
        )
    return [list(row) for row in zip(*columns, strict=True)]


def best_mean(metric: Metric, rows: Iterable[tuple[Line, SeedSummary | None]]) -> float | None:
    """Return the best mean among the rows that may be marked best."""
    means = [figure.mean for line, figure in rows if figure is not None and line.in_contest]
    return max(means, key=lambda mean: merit(metric, mean), default=None)


def named(metric: Metric) -> str:
    """Return a metric's title and which direction is better.

    >>> named(METRIC["density_error"])
    'Density error (smaller is better)'
    """
    return f"{metric.title} ({DIRECTION[metric.better]})"


def _grouped(heads: list[str], lines: dict[Line, str], entries: list[list[TableEntry]]) -> str:
    """Return a table in which each group of rows has a heading row."""
    rows, last = [], ""
    for (line, group), row in zip(lines.items(), entries, strict=True):
        if group != last:
            rows.append([f"*{group}*", *[""] * len(row)])
            last = group
        rows.append([line.title, *map(entry_text, row)])
    return table(heads, rows)


def _headline_rows(
    lines: dict[Line, str], entries: list[list[TableEntry]], data: str
) -> Iterable[list[str]]:
    """Yield every row, followed by the results of the paper and of the authors' program."""
    last = ""
    for (line, group), row in zip(lines.items(), entries, strict=True):
        if group != last:
            yield [f"*{group}*", *[""] * len(row)]
            last = group
        yield [
            line.title,
            *(entry_text(TableEntry(entry.ours, None, entry.best), 3) for entry in row),
        ]
        for source in line.beside:
            yield from _theirs(line, data, source)


def _theirs(line: Line, data: str, source: Source) -> Iterable[list[str]]:
    figures = [published(key, data=data, method=line.paper, source=source) for key in HEADLINE]
    if any(figure is not None for figure in figures):
        texts = ["" if figure is None else f"*{figure:.3f}*" for figure in figures]
        yield [f"— *{line.paper}, {SOURCES[source]}*", *texts]


def _published(line: Line, metric: str, data: str, epsilon: float) -> float | None:
    return published(metric, data=data, method=line.paper, epsilon=epsilon) if line.paper else None


def _arrow(metric: Metric) -> str:
    return {"smaller": " ↓", "larger": " ↑", "one": ""}[metric.better]


def _ours(tables: Iterable[list[list[TableEntry]]]) -> Iterable[SeedSummary | None]:
    return (entry.ours for entries in tables for row in entries for entry in row)


def table4(results: Results, _timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return one table per data set at epsilon 1, with metrics in rows and methods in columns."""
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
