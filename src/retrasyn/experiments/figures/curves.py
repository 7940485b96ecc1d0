"""Line plots of utility against a setting: Table III, and the figures for w and phi."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from retrasyn.experiments.cells import Cell, Results, Timings
from retrasyn.experiments.figures.style import (
    LOOKS,
    axis_title,
    drawn,
    label,
    legend,
    line,
    note,
    panels,
)
from retrasyn.experiments.published import published
from retrasyn.experiments.studies import EPSILONS
from retrasyn.experiments.tables.markdown import METRIC, Book, SeedSummary
from retrasyn.experiments.tables.sweeps import SPAN_MEASURES, WINDOW_MEASURES
from retrasyn.experiments.tables.utility import MAIN
from retrasyn.metrics.suite import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from retrasyn.experiments.sources import DataSet

PER_ROW = 4


@drawn
def table3(results: Results, _timings: Timings, datasets: Sequence[DataSet]) -> Figure:
    """Draw eight metrics against epsilon, in two rows of panels per data set."""
    measures = [metric.key for metric in METRICS[:8]]
    figure, rows, seen = _curves(results, datasets, measures, "epsilon", "privacy budget ε")
    places = [axes for row in rows for axes in row]
    for k, dataset in enumerate(datasets):
        for measure, axes in zip(measures, places[len(measures) * k :], strict=False):
            _add_published(axes, measure, dataset.name)
    legend(figure, rows)
    note(figure, seen)
    return figure


@drawn
def window(results: Results, _timings: Timings, datasets: Sequence[DataSet]) -> Figure:
    """Draw metrics against the window w, in one row of panels per data set."""
    figure, rows, seen = _curves(results, datasets, WINDOW_MEASURES, "window", "window w")
    legend(figure, rows)
    note(figure, seen)
    return figure


@drawn
def span(results: Results, _timings: Timings, datasets: Sequence[DataSet]) -> Figure:
    """Draw metrics against the evaluation span phi, in one row of panels per data set."""
    figure, rows, seen = _curves(results, datasets, SPAN_MEASURES, "span", "time range φ")
    for axes in (axes for row in rows for axes in row if axes.has_data()):
        axes.set_xscale("log")
        axes.minorticks_off()
    _show_steps(Book(results), "span", datasets, rows)
    legend(figure, rows)
    note(figure, seen)
    return figure


def _curves(
    results: Results, datasets: Sequence[DataSet], measures: Sequence[str], field: str, across: str
) -> tuple[Figure, list[list[Axes]], list[SeedSummary | None]]:
    """Draw every measure of every data set against one field; also return the plotted summaries."""
    book = Book(results)
    n_columns = min(len(measures), PER_ROW)
    figure, rows = panels(len(datasets) * len(measures) // n_columns, n_columns)
    places = iter([axes for row in rows for axes in row])
    seen: list[SeedSummary | None] = []
    for dataset in datasets:
        values = book.steps(field, dataset.name)
        methods = [name for name in MAIN if name in book.methods(dataset.name, field)]
        for measure in measures:
            axes = next(places)
            for method in methods:
                figures = _read(book, measure, dataset.name, method, field, values)
                line(axes, method, values, figures)
                seen += figures
            label(axes, title=dataset.title, across=across, up=axis_title(measure))
            _scale(axes, measure)
    _show_steps(book, field, datasets, rows)
    return figure, rows, seen


def _read(
    book: Book[Cell], measure: str, data: str, method: str, field: str, values: list[float]
) -> list[SeedSummary | None]:
    return [book.read(measure, data=data, method=method, **{field: value}) for value in values]


def _scale(axes: Axes, measure: str) -> None:
    """Start the axis of errors at zero; leave the axis of scores alone."""
    if axes.has_data() and METRIC[measure].better == "smaller":
        axes.set_ylim(bottom=0)


def _show_steps(
    book: Book[Cell], field: str, datasets: Sequence[DataSet], rows: list[list[Axes]]
) -> None:
    """Put ticks only at the values that were run."""
    per_dataset = len(rows) // max(len(datasets), 1)
    for k, row in enumerate(rows):
        values = book.steps(field, datasets[k // per_dataset].name)
        for axes in row:
            axes.set_xticks(values, [f"{value:g}" for value in values])


def _add_published(axes: Axes, measure: str, data: str) -> None:
    """Add the published curve of retrasyn-p."""
    figures = [
        published(measure, data=data, method="retrasyn-p", epsilon=epsilon) for epsilon in EPSILONS
    ]
    known = [(x, y) for x, y in zip(EPSILONS, figures, strict=True) if y is not None]
    if known and axes.has_data():
        look = LOOKS["published"]
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axes.plot(
            [x for x, _ in known],
            [y for _, y in known],
            color=look.colour,
            marker=look.marker,
            linestyle=look.dash,
            label="retrasyn-p, published",
        )
