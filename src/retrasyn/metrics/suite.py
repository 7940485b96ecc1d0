"""All metrics of one real and one synthetic data set."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from retrasyn.errors import SettingError
from retrasyn.metrics.density import density_errors
from retrasyn.metrics.divergence import mean_known
from retrasyn.metrics.duration import duration_divergence
from retrasyn.metrics.hotspot import hotspot_ndcgs
from retrasyn.metrics.kendall import pair_tau
from retrasyn.metrics.length import length_divergence
from retrasyn.metrics.pair import Pair
from retrasyn.metrics.pattern import pattern_f1s
from retrasyn.metrics.query import query_errors
from retrasyn.metrics.spans import check_settings, random_spans
from retrasyn.metrics.streams import pair_ratio
from retrasyn.metrics.transition import transition_errors
from retrasyn.metrics.trip import trip_divergence
from retrasyn.space.grid import Box, Grid

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories


@dataclass(frozen=True, slots=True)
class Metric:
    """How to read one figure."""

    key: str
    title: str
    better: Literal["smaller", "larger", "one"]
    explanation: str


METRICS = (
    Metric(
        "density_error",
        "Density error",
        "smaller",
        "How far apart real and synthetic crowds are spread over the cells, averaged over "
        "timestamps. 0 is the same map every time, 0.693 is two maps that share no cell.",
    ),
    Metric(
        "query_error",
        "Query error",
        "smaller",
        "The relative error of asking how many points lie in a random square during a random "
        "span. 0.2 means that a typical answer is 20 % off.",
    ),
    Metric(
        "hotspot_ndcg",
        "Hotspot NDCG",
        "larger",
        "Whether the busiest cells of a random span are found, the busiest first. 1 is the same "
        "ranking.",
    ),
    Metric(
        "transition_error",
        "Transition error",
        "smaller",
        "How far apart real and synthetic moves between neighbouring cells are, averaged over "
        "timestamps. 0 is the same flows, 0.693 is flows that share nothing.",
    ),
    Metric(
        "pattern_f1",
        "Pattern F1",
        "larger",
        "How many of the most frequent routes of two to five cells in a random span are the same. "
        "1 is all of them.",
    ),
    Metric(
        "kendall_tau",
        "Kendall tau",
        "larger",
        "Whether cells keep their order by the number of streams that pass them. 1 is the same "
        "order, 0 is chance, -1 is the order reversed.",
    ),
    Metric(
        "trip_error",
        "Trip error",
        "smaller",
        "How far apart the pairs of first and last cell of whole streams are. 0 is the same trips.",
    ),
    Metric(
        "length_error",
        "Length error",
        "smaller",
        "How far apart the distances travelled by whole streams are. 0 is the same lengths.",
    ),
    Metric(
        "duration_error",
        "Duration error",
        "smaller",
        "How far apart the numbers of timestamps that streams last are. 0 is the same durations.",
    ),
    Metric(
        "stream_ratio",
        "Stream ratio",
        "one",
        "Synthetic streams for each real one. Below 1 synthetic streams are too few and too long, "
        "above 1 too many and too short.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The ten figures; NaN where there was nothing to compare."""

    density_error: float
    query_error: float
    hotspot_ndcg: float
    transition_error: float
    pattern_f1: float
    kendall_tau: float
    trip_error: float
    length_error: float
    duration_error: float
    stream_ratio: float
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, float | None]:
        """Return the figures by name, ready for JSON; None where there was nothing to compare."""
        figures = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del figures["notes"]
        return {name: None if math.isnan(value) else value for name, value in figures.items()}


def evaluate(
    real: Trajectories,
    synthetic: Trajectories,
    grid: Grid | int = 6,
    *,
    box: Box | tuple[float, float, float, float] | None = None,
    span: int = 20,
    seed: int = 0,
    n_queries: int = 100,
    top_cells: int = 10,
    top_patterns: int = 100,
) -> Scores:
    """Compare two data sets in every way; without a box, that of the real data is taken.

    >>> import retrasyn
    >>> city = retrasyn.demo_city(n_users=100, n_timestamps=30, seed=1)
    >>> retrasyn.evaluate(city, city, grid=4).density_error
    0.0
    """
    pair = Pair.of(real, synthetic, grid_over(real, grid, box))
    return evaluate_pair(
        pair,
        span=span,
        seed=seed,
        n_queries=n_queries,
        top_cells=top_cells,
        top_patterns=top_patterns,
    )


def evaluate_pair(
    pair: Pair,
    *,
    span: int = 20,
    seed: int = 0,
    n_queries: int = 100,
    top_cells: int = 10,
    top_patterns: int = 100,
    only: Container[str] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Scores:
    """Compute every figure, or only some; `progress` is told the key of each before it begins."""
    check_settings(
        span=span, seed=seed, queries=n_queries, top_cells=top_cells, top_patterns=top_patterns
    )

    def spans(purpose: str) -> npt.NDArray[np.int64]:
        return random_spans(pair.n_timestamps, span, n_queries, seed=seed, purpose=purpose)

    measures: dict[str, Callable[[], float]] = {
        "density_error": lambda: mean_known(density_errors(pair)),
        "query_error": lambda: mean_known(
            query_errors(pair, span=span, n_queries=n_queries, seed=seed)
        ),
        "hotspot_ndcg": lambda: mean_known(
            hotspot_ndcgs(pair, spans("hotspot"), span=span, top=top_cells)
        ),
        "transition_error": lambda: mean_known(transition_errors(pair)),
        "pattern_f1": lambda: mean_known(
            pattern_f1s(pair, spans("pattern"), span=span, top=top_patterns)
        ),
        "kendall_tau": lambda: pair_tau(pair),
        "trip_error": lambda: trip_divergence(pair),
        "length_error": lambda: length_divergence(pair),
        "duration_error": lambda: duration_divergence(pair),
        "stream_ratio": lambda: pair_ratio(pair),
    }
    figures: dict[str, float] = {}
    for name, measure in measures.items():
        if only is not None and name not in only:
            figures[name] = math.nan
            continue
        progress(name)
        figures[name] = measure()
    return Scores(**figures, notes=pair.notes)


def grid_over(
    real: Trajectories,
    grid: Grid | int,
    box: Box | tuple[float, float, float, float] | None = None,
) -> Grid:
    """Return a grid as given, or one of that side over the box, or over the real data's extent."""
    if isinstance(grid, Grid):
        if box is not None:
            raise SettingError("give a whole grid, which has its box, or a side and a box")
        return grid
    if box is None:
        box = Box.around(real.x, real.y)
    return Grid(Box(*box), grid)
