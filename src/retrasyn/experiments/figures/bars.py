"""Bar charts: ablations, components and allocation strategies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from retrasyn.experiments.cells import Results, Timings
from retrasyn.experiments.figures.style import (
    LOOKS,
    MEANS,
    axis_title,
    drawn,
    label,
    legend,
    note,
    panels,
)
from retrasyn.experiments.published import published, published_seconds
from retrasyn.experiments.tables.costs import COMPONENTS
from retrasyn.experiments.tables.markdown import Book, SeedSummary
from retrasyn.experiments.tables.sweeps import MEASURES, STRATEGIES
from retrasyn.experiments.tables.utility import ABLATIONS
from retrasyn.metrics.suite import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from retrasyn.experiments.sources import DataSet

SHORT = ("user", "model", "update", "synthesis", "total")


@drawn
def table4(results: Results, _timings: Timings, datasets: Sequence[DataSet]) -> Figure:
    """Draw eight metrics of the ablations, with the published values as crosses."""
    book, measures = Book(results), [metric.key for metric in METRICS[:8]]
    methods = [row.methods[0] for row in ABLATIONS]
    figure, rows = panels(2 * len(datasets), 4)
    places = iter([axes for row in rows for axes in row])
    seen: list[SeedSummary | None] = []
    for dataset in datasets:
        for measure in measures:
            axes = next(places)
            figures = [book.read(measure, data=dataset.name, method=name) for name in methods]
            for k, (name, value) in enumerate(zip(methods, figures, strict=True)):
                bars(axes, name, [float(k)], [value])
            theirs = [published(measure, data=dataset.name, method=name) for name in methods]
            crosses(axes, [float(k) for k in range(len(methods))], theirs)
            axes.set_xticks([])
            label(axes, title=dataset.title, across="", up=axis_title(measure))
            seen += figures
    legend(figure, rows)
    note(figure, seen)
    return figure


@drawn
def table5(_results: Results, timings: Timings, datasets: Sequence[DataSet]) -> Figure:
    """Draw seconds per component on a logarithmic axis, ours beside the published ones."""
    book = Book(timings)
    figure, rows = panels(1 if datasets else 0, max(len(datasets), 1), width=4.2, height=3.2)
    seen: list[SeedSummary | None] = []
    for dataset, axes in zip(datasets, rows[0] if rows else [], strict=True):
        series: dict[str, list[SeedSummary | None]] = {
            name: [book.read(part, data=dataset.name, method=name) for part in COMPONENTS]
            for name in ("retrasyn-p", "steered")
        }
        for k, (name, figures) in enumerate(series.items()):
            _dots(axes, name, 0.2 * (k - 0.5), figures)
        theirs = [published_seconds(part, data=dataset.name) for part in COMPONENTS]
        crosses(axes, [float(k) for k in range(len(theirs))], theirs, "retrasyn-p, published")
        if axes.has_data():
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.margins(x=0.05)
        axes.set_xticks(range(len(SHORT)), SHORT)
        label(
            axes,
            title=dataset.title,
            across="component",
            up="Seconds per timestamp\n(smaller is better)",
        )
        seen += [value for row in series.values() for value in row]
    legend(figure, rows)
    note(figure, seen, known=MEANS)
    return figure


@drawn
def allocation(results: Results, _timings: Timings, datasets: Sequence[DataSet]) -> Figure:
    """Draw three metrics of every strategy, under budget division and user division."""
    book = Book(results)
    figure, rows = panels(len(datasets), len(MEASURES), width=3.3)
    seen: list[SeedSummary | None] = []
    for dataset, row in zip(datasets, rows, strict=True):
        for measure, axes in zip(MEASURES, row, strict=True):
            series = {
                name: [
                    book.read(measure, data=dataset.name, method=method) if method else None
                    for method in pair
                ]
                for name, pair in STRATEGIES.items()
            }
            groups(axes, series)
            axes.set_xticks([0, 1], ["dividing the\nbudget (-b)", "dividing the\nusers (-p)"])
            label(axes, title=dataset.title, across="", up=axis_title(measure))
            seen += [
                value
                for name, pair in STRATEGIES.items()
                for method, value in zip(pair, series[name], strict=True)
                if method
            ]
    legend(figure, rows)
    note(figure, seen)
    return figure


def groups(
    axes: Axes,
    series: Mapping[str, Sequence[SeedSummary | None]],
    *,
    what: str = "",
    alpha: float = 1.0,
) -> None:
    """Draw groups of bars centred at 0, 1, 2, ..., with one bar per series in each group."""
    width = 0.8 / max(len(series), 1)
    for k, (name, figures) in enumerate(series.items()):
        shift = (k - (len(series) - 1) / 2) * width
        places = [place + shift for place in range(len(figures))]
        bars(axes, name, places, figures, width=width, what=what, alpha=alpha)


def bars(
    axes: Axes,
    name: str,
    x: Sequence[float],
    figures: Sequence[SeedSummary | None],
    *,
    width: float = 0.8,
    what: str = "",
    alpha: float = 1.0,
) -> None:
    """Draw means as bars with error bars over seeds; missing values are left out."""
    known = [(a, figure) for a, figure in zip(x, figures, strict=True) if figure is not None]
    if not known:
        return
    look = LOOKS[name]
    axes.bar(
        [a for a, _ in known],
        [figure.mean for _, figure in known],
        width,
        yerr=[figure.spread or 0 for _, figure in known],
        label=name + what,
        color=look.colour,
        alpha=alpha,
        hatch=look.hatch,
        edgecolor="white",
        error_kw={"elinewidth": 0.8},
    )


def _dots(axes: Axes, name: str, shift: float, figures: Sequence[SeedSummary | None]) -> None:
    """Draw means as dots, which unlike bars need no zero baseline."""
    known = [(k + shift, figure.mean) for k, figure in enumerate(figures) if figure is not None]
    if known:
        look, (x, y) = LOOKS[name], zip(*known, strict=True)
        axes.plot(x, y, look.marker, color=look.colour, markersize=7, label=name)


def crosses(
    axes: Axes, x: Sequence[float], figures: Sequence[float | None], name: str = "published"
) -> None:
    """Draw published values as crosses."""
    known = [(a, figure) for a, figure in zip(x, figures, strict=True) if figure is not None]
    if known and axes.has_data():
        look = LOOKS["published"]
        axes.plot(
            [a for a, _ in known],
            [figure for _, figure in known],
            color=look.colour,
            marker=look.marker,
            markeredgewidth=1.8,
            markersize=6,
            linestyle="none",
            label=name,
        )
