"""What a timestamp costs: bits sent, and time against K and the number of users (Sec. IV-B)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from retrasyn.experiments.cells import Cell, Results, Timing, Timings
from retrasyn.experiments.tables.components import COMPONENTS
from retrasyn.experiments.tables.fits import Fit, power_law
from retrasyn.experiments.tables.markdown import heading, seeds_text, table, whole
from retrasyn.experiments.tables.summary import Book

if TYPE_CHECKING:
    from retrasyn.experiments.sources import DataSet

# How the paper's bound of each component grows with K and with the users.
BOUNDS = {
    "seconds_user": ("2", "1"),
    "seconds_model": ("2", "1"),
    "seconds_update": ("2", "0"),
    "seconds_synthesis": ("0", "1"),
    "seconds_total": ("2", "1"),
}
GROWTH_METHODS = ("retrasyn-b", "retrasyn-p", "steered")


def complexity(results: Results, timings: Timings, datasets: Sequence[DataSet]) -> str:
    """Return bits and exponents, one pair of tables per data set."""
    utility, seconds = Book(results), Book(timings)
    parts = []
    for dataset in datasets:
        parts += [heading(dataset), *_bits(utility, dataset.name)]
        parts += _exponents(seconds, dataset.name)
    return "\n\n".join(parts) + "\n"


def growth(
    book: Book[Timing], measure: str, data: str, method: str, field: str
) -> list[tuple[float, float]]:
    """Return (K or mean active users, seconds) while only one of side and share changes."""
    points = []
    for value in book.steps(field, data):
        key = {"data": data, "method": method, field: value}
        spent, crowd = book.read(measure, **key), book.read("n_active", **key)
        if spent is not None and crowd is not None:
            points.append((float(value) if field == "side" else crowd.mean, spent.mean))
    return points


def exponent(points: list[tuple[float, float]]) -> Fit | None:
    """Return the power by which seconds grow."""
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
