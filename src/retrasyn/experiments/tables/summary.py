"""The seeds of one cell together: mean, spread, number."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic

from retrasyn.experiments.cells import Key, Table
from retrasyn.methods import METHODS
from retrasyn.metrics.suite import METRICS, Metric

METRIC: Mapping[str, Metric] = {metric.key: metric for metric in METRICS}


@dataclass(frozen=True, slots=True)
class Summary:
    """A measure over seeds; one seed has no spread."""

    mean: float
    spread: float | None  # sample standard deviation
    n_seeds: int


def summarise(values: list[float]) -> Summary | None:
    """Return the mean and the sample standard deviation, or None of nothing.

    >>> summarise([1.0, 2.0, 3.0])
    Summary(mean=2.0, spread=1.0, n_seeds=3)
    >>> summarise([])
    """
    if not values:
        return None
    spread = statistics.stdev(values) if len(values) > 1 else None
    return Summary(statistics.fmean(values), spread, len(values))


class Book(Generic[Key]):
    """A table of results opened for reading, the seeds of each cell together."""

    def __init__(self, table: Table[Key]) -> None:
        self._key_type = table.key_type
        self._rows: dict[Any, list[Mapping[str, float]]] = defaultdict(list)
        for key in sorted(table.rows):
            self._rows[dataclasses.replace(key, seed=0)].append(table.rows[key])

    def read(self, measure: str, **key: Any) -> Summary | None:
        """Return a measure of one cell; fields not named have their defaults."""
        rows = self._rows.get(self._key_type(**key), [])
        return summarise([row[measure] for row in rows if measure in row])

    def steps(self, field: str, data: str) -> list[Any]:
        """Return the values a field takes while all others stand at their defaults."""
        return sorted({getattr(key, field) for key in self._plain(field, data)})

    def methods(self, data: str, varying: str = "seed") -> list[str]:
        """Return the methods run while at most one field leaves its default, in our order."""
        found = {key.method for key in self._plain(varying, data)}
        return [name for name in METHODS if name in found]

    def _plain(self, field: str, data: str) -> Iterable[Any]:
        plain = self._key_type(data=data, method="")
        same = {"method": "", "faithful": False, field: getattr(plain, field)}
        return (key for key in self._rows if dataclasses.replace(key, **same) == plain)


def merit(metric: Metric, value: float) -> float:
    """Return a number that is larger the better a figure is.

    >>> merit(METRIC["stream_ratio"], 2.0) == merit(METRIC["stream_ratio"], 0.5)
    True
    """
    if metric.better == "one":
        return -abs(math.log(value)) if value > 0 else -math.inf
    return value if metric.better == "larger" else -value
