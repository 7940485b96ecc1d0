"""Tables I and V and Sec. IV-B: the data sets, and the cost of a timestamp."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.experiments.cells import Cell, Results, Timing, Timings
from retrasyn.experiments.published import published_seconds, published_statistic
from retrasyn.experiments.tables.markdown import (
    Book,
    heading,
    milliseconds,
    seeds_text,
    spread_text,
    table,
    times,
    whole,
)

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
    """Return one table per data set: our times, and the speed-up over the published ones."""
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
    """Return the speed-up of a component over the published time."""
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
    """State the mean number of active users, on which time depends."""
    crowds = [book.read("n_active", data=data, method=method) for method in methods]
    known = next((crowd for crowd in crowds if crowd is not None), None)
    return f"; {whole(known.mean)} active users on average" if known else ""


@dataclass(frozen=True, slots=True)
class Fit:
    """Least-squares line y = slope x + intercept, and the share of variance it explains (R^2)."""

    slope: float
    intercept: float
    explained: float


def straight_line(x: Sequence[float], y: Sequence[float]) -> Fit | None:
    """Fit a line; None unless there are two different x.

    >>> straight_line([1, 2, 3], [3, 5, 7]).slope
    2.0
    """
    across, up = np.asarray(x, float), np.asarray(y, float)
    if np.unique(across).size < 2:  # noqa: PLR2004 - a line needs two points
        return None
    far, high = across - across.mean(), up - up.mean()
    slope = float(far @ high / (far @ far))
    left, total = float(((high - slope * far) ** 2).sum()), float(high @ high)
    explained = 1 - left / total if total > 0 else 1.0
    return Fit(slope, float(up.mean() - slope * across.mean()), explained)


def power_law(x: Sequence[float], y: Sequence[float]) -> Fit | None:
    """Fit y = exp(intercept) x^slope on logarithms, ignoring values that are not positive.

    >>> round(power_law([1, 10, 100], [2, 200, 20_000]).slope, 6)
    2.0
    """
    known = [(a, b) for a, b in zip(x, y, strict=True) if a > 0 and b > 0]
    return straight_line([np.log(a) for a, _ in known], [np.log(b) for _, b in known])


# How the paper's bound on each component grows with K and with the number of users.
BOUNDS = {
    "seconds_user": ("2", "1"),
    "seconds_model": ("2", "1"),
    "seconds_update": ("2", "0"),
    "seconds_synthesis": ("0", "1"),
    "seconds_total": ("2", "1"),
}
GROWTH_METHODS = ("retrasyn-b", "retrasyn-p", "steered")


def complexity(results: Results, timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return bits sent and growth exponents, two tables per data set."""
    utility, seconds = Book(results), Book(timings)
    parts = []
    for dataset in datasets:
        parts += [heading(dataset), *_bits(utility, dataset.name)]
        parts += _exponents(seconds, dataset.name)
    return "\n\n".join(parts) + "\n"


def growth(
    book: Book[Timing], measure: str, data: str, method: str, field: str
) -> list[tuple[float, float]]:
    """Return (K or mean active users, seconds) where only side or only share varies."""
    points = []
    for value in book.steps(field, data):
        key = {"data": data, "method": method, field: value}
        spent, crowd = book.read(measure, **key), book.read("n_active", **key)
        if spent is not None and crowd is not None:
            points.append((float(value) if field == "side" else crowd.mean, spent.mean))
    return points


def exponent(points: list[tuple[float, float]]) -> Fit | None:
    """Return the fitted exponent with which seconds grow."""
    return power_law([x for x, _ in points], [y for _, y in points])


def _bits(book: Book[Cell], data: str) -> Iterable[str]:
    rows, figures = [], []
    for method in book.methods(data):
        key = {"data": data, "method": method}
        bits, crowd = book.read("bits", **key), book.read("n_active", **key)
        states, reports = book.read("n_states", **key), book.read("n_reports", **key)
        steps = book.read("n_timestamps", **key)
        if not (bits and crowd and states and reports and steps):
            continue
        figures.append(bits)
        everybody = crowd.mean * states.mean
        asked = reports.mean / steps.mean * states.mean
        rows.append(
            [
                method,
                whole(crowd.mean),
                whole(states.mean),
                f"{asked / everybody:.4f}",
                whole(bits.mean),
                whole(everybody),
                whole(asked),
                f"{bits.mean / asked:.3f}" if asked else "",
            ]
        )
    heads = ["method", "n", "\\|S\\|", "p", "bits per timestamp", "n\\|S\\|", "p n\\|S\\|"]
    yield (
        f"ε = 1, w = 20, K = 6; means over {seeds_text(figures)}. n: active users; |S|: states; "
        "p: reports per active user and timestamp, above 1 where people are asked twice or report "
        "once more that they left. The paper's bounds are n|S| for dividing the budget and p n|S| "
        "for dividing the users."
    )
    yield table([*heads, "bits / p n\\|S\\|"], rows)


def _exponents(book: Book[Timing], data: str) -> Iterable[str]:
    timed = book.methods(data, "side") + book.methods(data, "share")
    methods = [method for method in GROWTH_METHODS if method in timed]
    if not methods:
        yield "Time: nothing computed yet."
        return
    heads = ["component", "bound: K", "bound: n"]
    heads += [f"{method}: {letter}" for method in methods for letter in "Kn"]
    rows = []
    for measure, title in COMPONENTS.items():
        row = [title, *BOUNDS[measure]]
        for method in methods:
            for field in ("side", "share"):
                fit = exponent(growth(book, measure, data, method, field))
                row.append("" if fit is None else f"{fit.slope:.2f}")
        rows.append(row)
    sides = ", ".join(f"{side}" for side in book.steps("side", data))
    shares = ", ".join(f"{100 * share:g} %" for share in book.steps("share", data))
    yield (
        "Time per timestamp as a power of K and of the number of active users n: fitted exponents "
        f"(least squares on logarithms; K = {sides}; users: {shares}), "
        "beside those of the paper's bounds."
    )
    yield table(heads, rows)


STATISTICS = {
    "streams": "streams",
    "points": "points",
    "mean_length": "mean length",
    "timestamps": "timestamps",
}


def table1(_results: Results, _timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return the statistics of the data sets."""
    rows = [[dataset.title, *_facts(dataset)] for dataset in datasets]
    caption = "In brackets: as published. A stream is one trajectory after splitting at gaps."
    return f"{caption}\n\n{table(['data', *STATISTICS.values()], rows)}\n"


def _facts(dataset: DataSet) -> list[str]:
    texts = []
    for name in STATISTICS:
        ours, theirs = dataset.statistics.get(name), published_statistic(name, data=dataset.name)
        figures = [_number(name, ours), f"({_number(name, theirs)})" if theirs is not None else ""]
        texts.append(" ".join(filter(None, figures)))
    return texts


def _number(name: str, value: float | None) -> str:
    if value is None or name != "mean_length":
        return whole(value)
    return f"{value:.2f}"
