"""Everything a report shows, as plain values: no drawing, no HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from retrasyn._version import __version__
from retrasyn.metrics.density import density_errors
from retrasyn.metrics.transition import transition_errors
from retrasyn.report.flows import flows
from retrasyn.report.measures import Measure, measures
from retrasyn.report.packing import pack, plain, rounded
from retrasyn.report.patterns import patterns
from retrasyn.report.places import cell_counts, hotspots
from retrasyn.report.sample import sample
from retrasyn.report.statement import Statement, state
from retrasyn.report.timeline import Timeline, clock_facts
from retrasyn.report.trips import durations, lengths, trips

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.clock import Clock
    from retrasyn.metrics.pair import Gridded, Pair
    from retrasyn.metrics.suite import Scores


@dataclass(frozen=True, slots=True)
class Content:
    """What stands in the page itself, and `data`: what its pictures are drawn from."""

    title: str
    version: str
    statement: Statement
    measures: list[Measure]
    sizes: list[tuple[str, str, str]]  # a name, real, synthetic
    notes: tuple[str, ...]
    time: str
    span: int
    top_cells: int
    top_patterns: int
    data: dict[str, Any]  # plain values, ready for JSON


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
) -> Content:
    """Count everything a report shows."""
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
        "sample": sample(pair.synthetic, grid, timeline, seed=seed),
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

    Empty where the receipt has no `rounds`, or such that cannot be used.
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
    """Compare how much there is on either side."""

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
