"""Everything a report shows, as plain values, before any drawing or HTML."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn._version import __version__
from retrasyn.metrics.density import density_errors
from retrasyn.metrics.suite import METRICS
from retrasyn.metrics.transition import transition_errors
from retrasyn.report.packing import pack, plain, rounded
from retrasyn.report.places import cell_counts, fine_density, flows, hotspots
from retrasyn.report.statement import Statement, state
from retrasyn.report.streams import durations, lengths, patterns, sample, trips
from retrasyn.report.streets import street_lines
from retrasyn.report.timeline import Timeline, clock_facts

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.metadata import Clock
    from retrasyn.metrics.pair import Gridded, Pair
    from retrasyn.metrics.suite import Metric, Scores
    from retrasyn.roads.network import RoadNetwork


KINDS = ("real", "synthetic")
BETTER = {
    "smaller": "smaller is better",
    "larger": "larger is better",
    "one": "best at 1",
}


@dataclass(frozen=True, slots=True)
class Measure:
    """One row of the score table: a metric's value, how to read it, and a likeness from 0 to 1."""

    key: str
    title: str
    better: str
    explanation: str
    value: str
    likeness: float | None  # None: there was nothing to compare
    best: str


def measures(scores: Scores) -> list[Measure]:
    """Return one row per metric, in the order of the table."""
    return [_measure(metric, scores[metric.key]) for metric in METRICS]


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
    """Map a score to a scale from 0 (nothing in common) to 1 (identical).

    Divergences enter by their square root, which is a distance: otherwise small ones look alike.
    """
    if metric.better == "one":
        return min(value, 1.0 / value) if value > 0.0 else 0.0
    if metric.better == "larger":
        return min(max(value, 0.0), 1.0)
    if metric.key == "query_error":
        return max(1.0 - value, 0.0)
    return 1.0 - math.sqrt(min(max(value / math.log(2.0), 0.0), 1.0))


@dataclass(frozen=True, slots=True)
class Content:
    """The texts and tables of the page, and `data`, from which its charts are drawn."""

    title: str
    version: str
    statement: Statement
    measures: list[Measure]
    sizes: list[tuple[str, str, str]]  # (name, real, synthetic)
    notes: tuple[str, ...]
    time: str
    span: int
    top_cells: int
    top_patterns: int
    data: dict[str, Any]  # plain values, ready for JSON

    @property
    def shared_flows(self) -> tuple[int, int]:
        """How many of the main flows over all timestamps are on both sides, and of how many."""
        real, synthetic = (set(self.data["flows"][kind]["whole"]["codes"]) for kind in KINDS)
        return len(real & synthetic), max(len(real), len(synthetic))


def gather(
    pair: Pair,
    scores: Scores,
    *,
    receipt: dict[str, Any] | None,
    title: str,
    span: int,
    top_cells: int,
    top_patterns: int,
    seed: int,
    clock: Clock | None = None,
    roads: RoadNetwork | None = None,
) -> Content:
    """Compute everything a report shows; `roads` are public ones, drawn under its maps."""
    grid = pair.grid
    timeline = Timeline.over(pair.n_timestamps, n_cells=grid.n_cells)
    real, synthetic = (
        cell_counts(gridded, timeline, grid.n_cells) for gridded in (pair.real, pair.synthetic)
    )
    last_t = pair.first_t + pair.n_timestamps - 1
    data = {
        "grid": {"side": grid.side, "box": grid.box},
        "time": {
            "first": pair.first_t,
            "n": pair.n_timestamps,
            "width": timeline.width,
            "frames": timeline.n_frames,
            "clock": clock_facts(clock, pair.first_t, last_t),
        },
        "density": {"real": pack(real), "synthetic": pack(synthetic)},
        "fine": fine_density(pair),
        "streets": None if roads is None else street_lines(roads, grid.box),
        "flows": flows(pair, timeline, span=span),
        "curves": {
            "density_error": rounded(timeline.means(density_errors(pair))),
            "transition_error": rounded(timeline.means(transition_errors(pair))),
            "real": rounded(real.sum(axis=1) / timeline.sizes, 2),
            "synthetic": rounded(synthetic.sum(axis=1) / timeline.sizes, 2),
            **rounds(receipt, pair, timeline),
        },
        "hotspots": hotspots(real.sum(axis=0), synthetic.sum(axis=0), top_cells=top_cells),
        "patterns": patterns(pair, top_patterns=top_patterns),
        "trips": trips(pair),
        "lengths": lengths(pair),
        "durations": durations(pair),
        "sample": sample(pair, timeline, roads, seed=seed),
    }
    return Content(
        title=title,
        version=__version__,
        statement=state(receipt),
        measures=measures(scores),
        sizes=_sizes(pair),
        notes=tuple(dict.fromkeys([*pair.notes, *scores.notes])),
        time=f"{pair.first_t:,} to {last_t:,}",
        span=span,
        top_cells=top_cells,
        top_patterns=top_patterns,
        data=plain(data),
    )


def rounds(
    receipt: dict[str, Any] | None, pair: Pair, timeline: Timeline
) -> dict[str, npt.NDArray[np.float64]]:
    """Return reports per timestamp and epsilon per report, averaged over frames.

    Empty where the receipt has no `rounds` or they are unusable.
    """
    told = (receipt or {}).get("rounds")
    if not isinstance(told, dict):
        return {}
    curves = {}
    for name, key in (("reports", "n_reports"), ("epsilon", "epsilon")):
        try:
            t = np.asarray(told["t"], np.int64) - pair.first_t
            values = np.asarray(told[key], np.float64)
            inside = (t >= 0) & (t < pair.n_timestamps)
            per_timestamp = np.zeros(pair.n_timestamps)
            per_timestamp[t[inside]] = values[inside]
        except (KeyError, TypeError, ValueError, IndexError, OverflowError):
            continue
        curves[name] = rounded(timeline.means(per_timestamp), 6)
    return curves


def _sizes(pair: Pair) -> list[tuple[str, str, str]]:
    """Return the sizes of the real and the synthetic data, side by side."""

    def row(name: str, real: float, synthetic: float, form: str = ",d") -> tuple[str, str, str]:
        return name, format(real, form), format(synthetic, form)

    def points_per_stream(gridded: Gridded, n_streams: int) -> float:
        return gridded.n_points / max(n_streams, 1)

    return [
        row("Points", pair.real.n_points, pair.synthetic.n_points),
        row("Streams", pair.n_streams_real, pair.n_streams_synthetic),
        row(
            "Points per stream",
            points_per_stream(pair.real, pair.n_streams_real),
            points_per_stream(pair.synthetic, pair.n_streams_synthetic),
            ",.1f",
        ),
    ]
