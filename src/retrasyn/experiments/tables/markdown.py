"""Markdown tables: cells summarised over seeds, number formats, captions."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from retrasyn.experiments.cells import Key, ResultTable
from retrasyn.methods import METHODS
from retrasyn.metrics.suite import METRICS, Metric

if TYPE_CHECKING:
    from retrasyn.experiments.sources import DataSet


METRIC: Mapping[str, Metric] = {metric.key: metric for metric in METRICS}


@dataclass(frozen=True, slots=True)
class SeedSummary:
    """Mean and spread of a measure over seeds; a single seed has no spread."""

    mean: float
    spread: float | None  # sample standard deviation
    n_seeds: int


def summarise(values: list[float]) -> SeedSummary | None:
    """Return the mean and the sample standard deviation; None for an empty list.

    >>> summarise([1.0, 2.0, 3.0])
    SeedSummary(mean=2.0, spread=1.0, n_seeds=3)
    >>> summarise([])
    """
    if not values:
        return None
    spread = statistics.stdev(values) if len(values) > 1 else None
    return SeedSummary(statistics.fmean(values), spread, len(values))


class Book(Generic[Key]):
    """Reads a table of results, summarising each cell over its seeds."""

    def __init__(self, table: ResultTable[Key]) -> None:
        self._key_type = table.key_type
        self._rows: dict[Any, list[Mapping[str, float]]] = defaultdict(list)
        for key in sorted(table.rows):
            self._rows[dataclasses.replace(key, seed=0)].append(table.rows[key])

    def read(self, measure: str, **key: Any) -> SeedSummary | None:
        """Return a measure of one cell; fields that are not named have their defaults."""
        rows = self._rows.get(self._key_type(**key), [])
        return summarise([row[measure] for row in rows if measure in row])

    def steps(self, field: str, data: str) -> list[Any]:
        """Return the values a field takes while all other fields have their defaults."""
        return sorted({getattr(key, field) for key in self._plain(field, data)})

    def methods(self, data: str, varying: str = "seed") -> list[str]:
        """Return the methods run with at most one field off its default, in our order."""
        found = {key.method for key in self._plain(varying, data)}
        return [name for name in METHODS if name in found]

    def _plain(self, field: str, data: str) -> Iterable[Any]:
        plain = self._key_type(data=data, method="")
        same = {"method": "", "faithful": False, field: getattr(plain, field)}
        return (key for key in self._rows if dataclasses.replace(key, **same) == plain)


def merit(metric: Metric, value: float) -> float:
    """Return a number that grows with how good a score is.

    >>> merit(METRIC["stream_ratio"], 2.0) == merit(METRIC["stream_ratio"], 0.5)
    True
    """
    if metric.better == "one":
        return -abs(math.log(value)) if value > 0 else -math.inf
    return value if metric.better == "larger" else -value


@dataclass(frozen=True, slots=True)
class TableEntry:
    """Our value, the published one, and whether ours is the best of all."""

    ours: SeedSummary | None
    published: float | None = None
    best: bool = False


def entry_text(entry: TableEntry, digits: int = 4) -> str:
    """Return `mean ± spread (published)`, leaving out what is unknown.

    >>> entry_text(TableEntry(SeedSummary(0.12345, 0.001, 3), 0.1338, best=True))
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
    """Return a Markdown table, with the first column left-aligned and the others right-aligned.

    >>> print(table(["method", "error"], [["steered", "0.03"]]))
    | method | error |
    |:--|--:|
    | steered | 0.03 |
    """
    rule = "|" + "|".join([":--"] + ["--:"] * (len(heads) - 1)) + "|"
    lines = [_row(heads), rule, *(_row(row) for row in rows)]
    return "\n".join(lines)


def heading(dataset: DataSet, note: str = "") -> str:
    """Return the heading of a data set's section, saying whether the data was generated."""
    text = f"## {dataset.title}{note}"
    if dataset.generated:
        text += "\n\nGenerated data, not those of the paper: published figures are for orientation."
    return text


def seeds_text(summaries: Iterable[SeedSummary | None]) -> str:
    """State the number of seeds behind the figures, and how many figures are missing.

    >>> seeds_text([SeedSummary(1.0, 0.1, 3), SeedSummary(1.0, None, 1), None])
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
    summaries: Iterable[SeedSummary | None], known: str = "Mean ± sample standard deviation over"
) -> str:
    """State what the figures are: means with a spread, or values of a single seed.

    >>> spread_text([SeedSummary(1.0, 0.1, 3)]), spread_text([SeedSummary(1.0, None, 1)])
    ('Mean ± sample standard deviation over 3 seeds', 'Values of 1 seed')
    """
    figures = list(summaries)
    single = all(figure is None or figure.spread is None for figure in figures)
    return f"{'Values of' if single else known} {seeds_text(figures)}"


def milliseconds(summary: SeedSummary | None) -> str:
    """Return seconds as milliseconds, with three significant digits.

    >>> milliseconds(SeedSummary(0.0123456, 0.0001, 3))
    '12.3 ± 0.1'
    """
    if summary is None:
        return ""
    mean, n_decimals = _rounded(1000 * summary.mean)
    return mean if summary.spread is None else f"{mean} ± {1000 * summary.spread:.{n_decimals}f}"


def whole(value: float | None) -> str:
    """Return a number without decimals, with thousands separators.

    >>> whole(3167316.0)
    '3,167,316'
    """
    return "" if value is None else f"{value:,.0f}"


def times(value: float | None) -> str:
    """Return a factor with three significant digits.

    >>> times(597.213), times(1.2345)
    ('597', '1.23')
    """
    return "" if value is None else _rounded(value)[0]


def _rounded(value: float) -> tuple[str, int]:
    """Return a number with three significant digits, and how many of them are decimals."""
    magnitude = math.floor(math.log10(abs(value))) if value else 0
    n_decimals = min(max(2 - magnitude, 0), 5)
    return f"{value:,.{n_decimals}f}", n_decimals


def _seeds(n_seeds: int) -> str:
    return f"{n_seeds} seeds" if n_seeds > 1 else "1 seed"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
