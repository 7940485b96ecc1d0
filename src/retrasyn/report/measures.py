"""The scores as rows of a table, each with a cue how near to perfect it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from retrasyn.metrics.suite import METRICS

if TYPE_CHECKING:
    from retrasyn.metrics.suite import Metric, Scores

BETTER = {
    "smaller": "smaller is better",
    "larger": "larger is better",
    "one": "best at 1",
}


@dataclass(frozen=True, slots=True)
class Measure:
    """One row: a figure, how to read it, and its likeness to the real data from 0 to 1."""

    key: str
    title: str
    better: str
    explanation: str
    value: str
    likeness: float | None  # None: there was nothing to compare
    best: str


def measures(scores: Scores) -> list[Measure]:
    """Return a row for every metric, in their order."""
    return [_measure(metric, float(getattr(scores, metric.key))) for metric in METRICS]


def _measure(metric: Metric, value: float) -> Measure:
    known = math.isfinite(value)
    return Measure(
        key=metric.key,
        title=metric.title,
        better=BETTER.get(metric.better, ""),
        explanation=metric.explanation,
        value=f"{value:.4f}" if known else "no value",
        likeness=likeness(metric, value) if known else None,
        best="0" if metric.better == "smaller" else "1",
    )


def likeness(metric: Metric, value: float) -> float:
    """Place a figure between nothing alike (0) and the same (1).

    Divergences go by their square root, which is a distance: near 0 they would all look alike.
    """
    if metric.better == "one":
        return min(value, 1.0 / value) if value > 0.0 else 0.0
    if metric.better == "larger":
        return min(max(value, 0.0), 1.0)
    if metric.key == "query_error":
        return max(1.0 - value, 0.0)
    return 1.0 - math.sqrt(min(max(value / math.log(2.0), 0.0), 1.0))
