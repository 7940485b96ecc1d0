"""Markdown: tables, the figures in them, and what their captions say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from retrasyn.experiments.tables.summary import Summary

if TYPE_CHECKING:
    from retrasyn.experiments.sources import DataSet


@dataclass(frozen=True, slots=True)
class Entry:
    """One figure of ours, the published one beside it, and whether ours is the best of all."""

    ours: Summary | None
    published: float | None = None
    best: bool = False


def entry_text(entry: Entry, digits: int = 4) -> str:
    """Return `mean ± spread (published)`, as far as each is known.

    >>> entry_text(Entry(Summary(0.12345, 0.001, 3), 0.1338, best=True))
    '**0.1235** ± 0.0010 (0.1338)'
    """
    parts = []
    if entry.ours is not None:
        mean = f"{entry.ours.mean:.{digits}f}"
        parts.append(f"**{mean}**" if entry.best else mean)
        if entry.ours.spread is not None:
            parts.append(f"± {entry.ours.spread:.{digits}f}")
    if entry.published is not None:
        parts.append(f"({entry.published:.{digits}f})")
    return " ".join(parts)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, the first column to the left and numbers to the right.

    >>> print(table(["method", "error"], [["steered", "0.03"]]))
    | method | error |
    |:--|--:|
    | steered | 0.03 |
    """
    rule = "|" + "|".join([":--"] + ["--:"] * (len(heads) - 1)) + "|"
    lines = [_row(heads), rule, *(_row(row) for row in rows)]
    return "\n".join(lines)


def heading(dataset: DataSet, note: str = "") -> str:
    """Return the heading of a data set's block, and whether its data were made here."""
    text = f"## {dataset.title}{note}"
    if dataset.generated:
        text += "\n\nGenerated data, not those of the paper: published figures are for orientation."
    return text


def seeds_text(summaries: Iterable[Summary | None]) -> str:
    """Return over how many seeds the figures are, and how many are still to come.

    >>> seeds_text([Summary(1.0, 0.1, 3), Summary(1.0, None, 1), None])
    '1 to 3 seeds; 1 of 3 figures not computed'
    """
    figures = list(summaries)
    counts = sorted({figure.n_seeds for figure in figures if figure is not None})
    if not counts:
        return "no seed: nothing computed yet"
    text = f"{counts[0]} to {counts[-1]} seeds" if len(counts) > 1 else _seeds(counts[0])
    n_missing = sum(figure is None for figure in figures)
    if n_missing:
        text += f"; {n_missing} of {len(figures)} figures not computed"
    return text


def spread_text(
    summaries: Iterable[Summary | None], known: str = "Mean ± sample standard deviation over"
) -> str:
    """Return what the figures are: means with their spread, or values of a single seed.

    >>> spread_text([Summary(1.0, 0.1, 3)]), spread_text([Summary(1.0, None, 1)])
    ('Mean ± sample standard deviation over 3 seeds', 'Values of 1 seed')
    """
    figures = list(summaries)
    single = all(figure is None or figure.spread is None for figure in figures)
    return f"{'Values of' if single else known} {seeds_text(figures)}"


def milliseconds(summary: Summary | None) -> str:
    """Return seconds as milliseconds with three digits that count.

    >>> milliseconds(Summary(0.0123456, 0.0001, 3))
    '12.3 ± 0.1'
    """
    if summary is None:
        return ""
    mean, n_decimals = _rounded(1000 * summary.mean)
    return mean if summary.spread is None else f"{mean} ± {1000 * summary.spread:.{n_decimals}f}"


def whole(value: float | None) -> str:
    """Return a number without decimals, thousands apart.

    >>> whole(3167316.0)
    '3,167,316'
    """
    return "" if value is None else f"{value:,.0f}"


def times(value: float | None) -> str:
    """Return a factor with three digits that count.

    >>> times(597.213), times(1.2345)
    ('597', '1.23')
    """
    return "" if value is None else _rounded(value)[0]


def _rounded(value: float) -> tuple[str, int]:
    """Return a number with three digits that count, and how many of them are decimals."""
    magnitude = math.floor(math.log10(abs(value))) if value else 0
    n_decimals = min(max(2 - magnitude, 0), 5)
    return f"{value:,.{n_decimals}f}", n_decimals


def _seeds(n_seeds: int) -> str:
    return f"{n_seeds} seeds" if n_seeds > 1 else "1 seed"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
