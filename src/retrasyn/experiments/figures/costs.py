"""Plots of cost: time and error against K, time against users, bits sent (Sec. IV-B, V)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn.experiments.cells import Cell, Results, Timing, Timings
from retrasyn.experiments.figures.bars import groups
from retrasyn.experiments.figures.style import (
    LOOKS,
    MEANS,
    axis_title,
    drawn,
    label,
    legend,
    line,
    note,
    panels,
)
from retrasyn.experiments.tables.costs import GROWTH_METHODS, exponent, growth, straight_line
from retrasyn.experiments.tables.markdown import Book, SeedSummary
from retrasyn.experiments.tables.sweeps import TIMED, time_against_users
from retrasyn.experiments.tables.utility import MAIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from retrasyn.experiments.sources import DataSet

TIME = "Milliseconds per timestamp\n(smaller is better)"


@drawn
def grid(results: Results, timings: Timings, datasets: Sequence[DataSet]) -> Figure:
    """Draw time as bars with query error as lines on top, and density error beside them."""
    utility, seconds = Book(results), Book(timings)
    figure, rows = panels(len(datasets), 2, width=5.4, height=2.9)
    seen: list[SeedSummary | None] = []
    overlays = []
    for dataset, (left, right) in zip(datasets, rows, strict=True):
        sides = sorted({*utility.steps("side", dataset.name), *seconds.steps("side", dataset.name)})
        spent = {name: _milliseconds(seconds, dataset.name, name, sides) for name in TIMED}
        groups(left, spent, what=", time", alpha=0.4)
        over = left.twinx()
        overlays.append([over])
        for axes, measure in ((over, "query_error"), (right, "density_error")):
            for method in TIMED:
                key = {"data": dataset.name, "method": method}
                figures = [utility.read(measure, **key, side=side) for side in sides]
                line(axes, method, [float(k) for k in range(len(sides))], figures, what=", error")
                seen += figures
            axes.set_xticks(range(len(sides)), [str(side) for side in sides])
            axes.set_ylim(bottom=0)
        over.grid(visible=False)
        over.spines["right"].set_visible(True)
        over.set_ylabel(axis_title("query_error"))
        label(left, title=dataset.title, across="cells a side K", up=TIME)
        label(right, title=dataset.title, across="cells a side K", up=axis_title("density_error"))
    legend(figure, [*rows, *overlays])
    note(figure, seen, text="Bars: time; lines: error. ")
    return figure


@drawn
def scale(_results: Results, timings: Timings, datasets: Sequence[DataSet]) -> Figure:
    """Draw time against the share of users, with fitted straight lines."""
    book = Book(timings)
    figure, rows = panels(1 if datasets else 0, max(len(datasets), 1), width=3.8, height=3.0)
    seen: list[SeedSummary | None] = []
    for dataset, axes in zip(datasets, rows[0] if rows else [], strict=True):
        for method in TIMED:
            points = time_against_users(book, dataset.name, method)
            shares, means = [100 * share for share, *_ in points], [p.mean for _, p, _ in points]
            _points(axes, method, shares, [1000 * mean for mean in means])
            fit = straight_line(shares, [1000 * mean for mean in means])
            if fit is not None:
                ends = np.array([0.0, 100.0])
                axes.plot(ends, fit.slope * ends + fit.intercept, **_stroke(method))
            seen += [spent for _, spent, _ in points]
        label(axes, title=dataset.title, across="% of the users", up=TIME)
        axes.set_ylim(bottom=0)
    legend(figure, rows)
    note(figure, seen, text="Lines: least squares. ", known=MEANS)
    return figure


@drawn
def complexity(results: Results, timings: Timings, datasets: Sequence[DataSet]) -> Figure:
    """Draw bits sent beside their bounds, and time against K and users on logarithmic axes."""
    utility, seconds = Book(results), Book(timings)
    figure, rows = panels(len(datasets), 3, width=3.8, height=3.0)
    seen: list[SeedSummary | None] = []
    for dataset, (bits, across_side, across_users) in zip(datasets, rows, strict=True):
        seen += _draw_bits(bits, utility, dataset)
        for axes, field, letter, name in (
            (across_side, "side", "K", "cells a side K"),
            (across_users, "share", "n", "active users n"),
        ):
            _draw_growth(axes, seconds, dataset, field, letter)
            label(axes, title=dataset.title, across=name, up=TIME)
    legend(figure, [row[:1] for row in rows])
    note(figure, seen, text="Lines: least squares on logarithms. ", known=MEANS)
    return figure


def _draw_bits(axes: Axes, book: Book[Cell], dataset: DataSet) -> list[SeedSummary | None]:
    """Draw bits sent as bars, with n|S| and p n|S| marked."""
    names = [name for name in MAIN if name in book.methods(dataset.name)]
    seen: list[SeedSummary | None] = []
    for k, name in enumerate(names):
        key = {"data": dataset.name, "method": name}
        sent, crowd = book.read("bits", **key), book.read("n_active", **key)
        states, reports = book.read("n_states", **key), book.read("n_reports", **key)
        steps = book.read("n_timestamps", **key)
        seen.append(sent)
        if not (sent and crowd and states and reports and steps):
            continue
        look = LOOKS[name]
        asked = reports.mean / steps.mean * states.mean
        _mark(
            axes,
            "bits sent (each method has its mark)",
            sent.mean,
            k,
            color=look.colour,
            marker=look.marker,
        )
        _mark(axes, "p n|S|", asked, k, color="black", marker="o", size=13)
        _mark(axes, "n|S|", crowd.mean * states.mean, k, color="black", marker="|", size=14)
    axes.set_yticks(range(len(names)), names)
    if axes.has_data():
        axes.set_xscale("log")
        axes.margins(x=0.1)
        axes.set_ylim(len(names) - 0.5, -0.5)  # first method at the top
        axes.grid(axis="x")
    label(axes, title=dataset.title, across="bits per timestamp (smaller is better)", up="")
    return seen


def _mark(
    axes: Axes, name: str, x: float, y: float, *, color: str, marker: str, size: float = 7
) -> None:
    """Draw one marker; that of p n|S|, which surrounds others, is hollow."""
    face = "none" if name == "p n|S|" else color
    axes.plot(x, y, marker, color=color, markerfacecolor=face, markersize=size, label=name)


def _draw_growth(axes: Axes, book: Book[Timing], dataset: DataSet, field: str, letter: str) -> None:
    """Draw times and the fitted power laws."""
    from matplotlib.ticker import LogLocator, NullLocator  # noqa: PLC0415 - only plots need it

    for method in GROWTH_METHODS:
        points = growth(book, "seconds_total", dataset.name, method, field)
        fit = exponent(points)
        power = "" if fit is None else f": {letter}$^{{{fit.slope:.2f}}}$"
        x = [x for x, _ in points]
        _points(axes, f"{method}", x, [1000 * y for _, y in points], note=power)
        if fit is not None:
            ends = np.array([min(x), max(x)])
            axes.plot(ends, 1000 * np.exp(fit.intercept) * ends**fit.slope, **_stroke(method))
    if axes.has_data():
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:,g}")
            axis.set_minor_locator(NullLocator())
        axes.legend(loc="upper left", fontsize=9, handlelength=1.5)


def _points(axes: Axes, method: str, x: list[float], y: list[float], *, note: str = "") -> None:
    if x:
        look = LOOKS[method]
        axes.plot(x, y, look.marker, color=look.colour, label=method + note)


def _stroke(method: str) -> dict[str, Any]:
    return {"color": LOOKS[method].colour, "linestyle": LOOKS[method].dash, "linewidth": 1.2}


def _milliseconds(
    book: Book[Timing], data: str, method: str, sides: list[int]
) -> list[SeedSummary | None]:
    figures = [book.read("seconds_total", data=data, method=method, side=side) for side in sides]
    return [
        None
        if figure is None
        else SeedSummary(
            1000 * figure.mean,
            None if figure.spread is None else 1000 * figure.spread,
            figure.n_seeds,
        )
        for figure in figures
    ]
