"""Everything a report shows, as plain values, before any drawing or HTML."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn._version import __version__
from retrasyn.metrics.baselines import plain_baselines
from retrasyn.metrics.density import density_errors
from retrasyn.metrics.suite import METRICS, evaluate_pair
from retrasyn.metrics.transition import transition_errors
from retrasyn.report.packing import pack, plain, rounded
from retrasyn.report.places import cell_counts, fine_density, flows, hotspots
from retrasyn.report.statement import Statement, state
from retrasyn.report.streams import durations, lengths, patterns, sample, trips
from retrasyn.report.streets import street_lines
from retrasyn.report.timeline import Timeline, clock_facts
from retrasyn.report.verdict import CHANCE, YARDSTICKS, Grade, Yardstick, verdict
from retrasyn.roads.coordinates import is_degrees

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from retrasyn.data.metadata import Clock
    from retrasyn.metrics.pair import Gridded, Pair
    from retrasyn.metrics.suite import Metric, Scores
    from retrasyn.report.uncertainty import CellErrors
    from retrasyn.roads.network import RoadNetwork
    from retrasyn.space import Box


KINDS = ("real", "synthetic")
_LETTER = 0.05  # of a bar: as wide as a letter
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
    ticks: tuple[Tick, ...]
    chance: float | None  # likeness of one half of the real data to the other


@dataclass(frozen=True, slots=True)
class Tick:
    """A baseline's place on the bar of a measure."""

    letter: str
    title: str
    value: str
    likeness: float
    below: bool  # whether its letter stands below the bar, since another is near


def measures(scores: Scores, baselines: Mapping[str, Scores]) -> list[Measure]:
    """Return one row per metric, in the order of the table."""
    return [_measure(metric, scores[metric.key], baselines) for metric in METRICS]


def _measure(metric: Metric, value: float, baselines: Mapping[str, Scores]) -> Measure:
    known = math.isfinite(value)
    others = {name: found[metric.key] for name, found in baselines.items()}
    others = {name: other for name, other in others.items() if math.isfinite(other)}
    return Measure(
        key=metric.key,
        title=metric.title,
        better=BETTER.get(metric.better, ""),
        explanation=metric.explanation,
        value=f"{value:.4f}" if known else "no value",
        likeness=likeness(metric, value) if known else None,
        ticks=_ticks(metric, others),
        chance=likeness(metric, others[CHANCE]) if CHANCE in others else None,
    )


def _ticks(metric: Metric, values: Mapping[str, float]) -> tuple[Tick, ...]:
    """Return the baselines of a measure from left to right, with letters that do not collide."""
    found = [(likeness(metric, values[one.key]), one) for one in YARDSTICKS if one.key in values]
    ticks: list[Tick] = []
    for place, one in sorted(found, key=lambda entry: entry[0]):
        near = bool(ticks) and place - ticks[-1].likeness < _LETTER and not ticks[-1].below
        ticks.append(Tick(one.letter, one.title, f"{values[one.key]:.4f}", place, near))
    return tuple(ticks)


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
    grades: list[Grade]
    yardsticks: list[Yardstick]
    measures: list[Measure]
    sizes: list[tuple[str, str, str]]  # (name, real, synthetic)
    notes: tuple[str, ...]
    time: str
    extent: str  # in degrees; empty where coordinates are not known to be degrees
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
    baselines: Mapping[str, Scores] | None = None,
    errors: CellErrors | None = None,
    crs: str | None = None,
) -> Content:
    """Compute everything a report shows; `write_report` says what the arguments are."""
    if baselines is None:
        measure = partial(
            evaluate_pair, span=span, seed=seed, top_cells=top_cells, top_patterns=top_patterns
        )
        baselines = plain_baselines(pair, measure, seed=seed)
    grid = pair.grid
    timeline = Timeline.over(pair.n_timestamps, n_cells=grid.n_cells)
    real, synthetic = (
        cell_counts(gridded, timeline, grid.n_cells) for gridded in (pair.real, pair.synthetic)
    )
    last_t = pair.first_t + pair.n_timestamps - 1
    data = {
        "grid": {"side": grid.side, "box": grid.box, "degrees": is_degrees(crs)},
        "time": {
            "first": pair.first_t,
            "n": pair.n_timestamps,
            "width": timeline.width,
            "frames": timeline.n_frames,
            "clock": clock_facts(clock, pair.first_t, last_t),
        },
        "density": {"real": pack(real), "synthetic": pack(synthetic)},
        "errors": None if errors is None else errors.packed(pair.first_t, timeline),
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
        grades=verdict(scores, baselines),
        yardsticks=[one for one in YARDSTICKS if one.key in baselines],
        measures=measures(scores, baselines),
        sizes=_sizes(pair),
        notes=tuple(dict.fromkeys([*pair.notes, *scores.notes])),
        time=f"{pair.first_t:,} to {last_t:,}",
        extent=_extent(grid.box) if is_degrees(crs) else "",
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


def _extent(box: Box) -> str:
    """Return a box on the globe in words.

    >>> from retrasyn.space import Box
    >>> _extent(Box(-0.5, 51.3, 0.25, 51.7))
    '51.3\N{DEGREE SIGN} N to 51.7\N{DEGREE SIGN} N, 0.5\N{DEGREE SIGN} W to 0.25\N{DEGREE SIGN} E'
    """
    south, north = (f"{abs(y):g}\N{DEGREE SIGN} {'S' if y < 0 else 'N'}" for y in (box.y0, box.y1))
    west, east = (f"{abs(x):g}\N{DEGREE SIGN} {'W' if x < 0 else 'E'}" for x in (box.x0, box.x1))
    return f"{south} to {north}, {west} to {east}"
