"""The suite of all metrics, for one real and one synthetic data set."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

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
from retrasyn.space.grid import Box, Grid, grid_around

if TYPE_CHECKING:
    from collections.abc import Container

    import numpy.typing as npt

    from retrasyn.data.folding import Fold
    from retrasyn.data.trajectories import Trajectories
    from retrasyn.privacy.receipt import Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSettings:
    """Settings of the metrics; most metrics use none of them."""

    span: int = 20
    seed: int = 0
    n_queries: int = 100
    top_cells: int = 10
    top_patterns: int = 100

    def __post_init__(self) -> None:
        check_settings(
            span=self.span,
            seed=self.seed,
            queries=self.n_queries,
            top_cells=self.top_cells,
            top_patterns=self.top_patterns,
        )

    def spans(self, pair: Pair, purpose: str) -> npt.NDArray[np.int64]:
        """Draw the first timestamps of one metric's random spans."""
        return random_spans(
            pair.n_timestamps, self.span, self.n_queries, seed=self.seed, purpose=purpose
        )


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name and direction, and the function that computes it."""

    key: str
    title: str
    better: Literal["smaller", "larger", "one"]
    explanation: str
    measure: Callable[[Pair, MetricSettings], float]


METRICS = [
    Metric(
        "density_error",
        "Density error",
        "smaller",
        "How far apart real and synthetic crowds are spread over the cells, averaged over "
        "timestamps. 0 is the same map every time, 0.693 is two maps that share no cell.",
        lambda pair, _: mean_known(density_errors(pair)),
    ),
    Metric(
        "query_error",
        "Query error",
        "smaller",
        "The relative error of asking how many points lie in a random square during a random "
        "span. 0.2 means that a typical answer is 20 % off.",
        lambda pair, how: mean_known(
            query_errors(pair, span=how.span, n_queries=how.n_queries, seed=how.seed)
        ),
    ),
    Metric(
        "hotspot_ndcg",
        "Hotspot NDCG",
        "larger",
        "Whether the busiest cells of a random span are found, the busiest first. 1 is the same "
        "ranking.",
        lambda pair, how: mean_known(
            hotspot_ndcgs(pair, how.spans(pair, "hotspot"), span=how.span, top=how.top_cells)
        ),
    ),
    Metric(
        "transition_error",
        "Transition error",
        "smaller",
        "How far apart real and synthetic moves between neighbouring cells are, averaged over "
        "timestamps. 0 is the same flows, 0.693 is flows that share nothing.",
        lambda pair, _: mean_known(transition_errors(pair)),
    ),
    Metric(
        "pattern_f1",
        "Pattern F1",
        "larger",
        "How many of the most frequent routes of two to five cells in a random span are the same. "
        "1 is all of them.",
        lambda pair, how: mean_known(
            pattern_f1s(pair, how.spans(pair, "pattern"), span=how.span, top=how.top_patterns)
        ),
    ),
    Metric(
        "kendall_tau",
        "Kendall tau",
        "larger",
        "Whether cells keep their order by the number of streams that pass them. 1 is the same "
        "order, 0 is chance, -1 is the order reversed.",
        lambda pair, _: pair_tau(pair),
    ),
    Metric(
        "trip_error",
        "Trip error",
        "smaller",
        "How far apart the pairs of first and last cell of whole streams are. 0 is the same trips.",
        lambda pair, _: trip_divergence(pair),
    ),
    Metric(
        "length_error",
        "Length error",
        "smaller",
        "How far apart the distances travelled by whole streams are. 0 is the same lengths.",
        lambda pair, _: length_divergence(pair),
    ),
    Metric(
        "duration_error",
        "Duration error",
        "smaller",
        "How far apart the numbers of timestamps that streams last are. 0 is the same durations.",
        lambda pair, _: duration_divergence(pair),
    ),
    Metric(
        "stream_ratio",
        "Stream ratio",
        "one",
        "Synthetic streams for each real one. Below 1 synthetic streams are too few and too long, "
        "above 1 too many and too short.",
        lambda pair, _: pair_ratio(pair),
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The ten metrics, and any added to the table; NaN where there was nothing to compare."""

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
    added: Mapping[str, float] = field(default_factory=dict)  # scores of added metrics by key

    def __getitem__(self, key: str) -> float:
        """Return the score of a metric by its key."""
        figure: float = self.added[key] if key in self.added else getattr(self, key)
        return figure

    def to_dict(self) -> dict[str, float | None]:
        """Return the scores by name, ready for JSON; None where there was nothing to compare."""
        figures = {name: self[name] for name in (*_OWN, *self.added)}
        return {name: None if math.isnan(value) else value for name, value in figures.items()}


_OWN = tuple(field.name for field in dataclasses.fields(Scores))[:-2]
"""Names of the metrics that are fields of `Scores`."""

_SIDE = 6  # of a grid that nobody names


def evaluate(
    real: Trajectories,
    synthetic: Trajectories | tuple[Trajectories, Receipt],
    grid: Grid | int | None = None,
    *,
    box: Box | tuple[float, float, float, float] | None = None,
    receipt: Receipt | None = None,
    span: int = 20,
    seed: int = 0,
    n_queries: int = 100,
    top_cells: int = 10,
    top_patterns: int = 100,
) -> Scores:
    """Compute all metrics.

    Side and box that are not given are those of the receipt, if it is given or `synthetic` is what
    `synthesize` returned; else 6, and the bounding box of the real data.

    >>> import retrasyn
    >>> city = retrasyn.demo_city(n_users=100, n_timestamps=30, seed=1)
    >>> retrasyn.evaluate(city, city, grid=4).density_error
    0.0
    """
    if isinstance(synthetic, tuple):
        synthetic, receipt = synthetic
    real = folded_alike(real, receipt)
    if receipt is not None and not isinstance(grid, Grid):
        grid = receipt.grid if grid is None else grid
        box = receipt.box if box is None else box
    pair = Pair.of(real, synthetic, grid_over(real, _SIDE if grid is None else grid, box))
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
    """Compute all metrics, or only some; `progress` is called with each key before it starts."""
    settings = MetricSettings(
        span=span,
        seed=seed,
        n_queries=n_queries,
        top_cells=top_cells,
        top_patterns=top_patterns,
    )
    figures: dict[str, float] = {}
    for metric in METRICS:
        if only is not None and metric.key not in only:
            figures[metric.key] = math.nan
            continue
        progress(metric.key)
        figures[metric.key] = metric.measure(pair, settings)
    own = {key: figures.pop(key) for key in _OWN}
    return Scores(**own, notes=pair.notes, added=figures)


def folded_alike(real: Trajectories, receipt: Receipt | None) -> Trajectories:
    """Return the real data on the timestamps of a release, as its receipt says."""
    if receipt is None or receipt.folded is None or real.fold is not None:
        return real
    return real.folded(cast("Fold", receipt.folded.by))


def grid_over(
    real: Trajectories,
    grid: Grid | int,
    box: Box | tuple[float, float, float, float] | None = None,
) -> Grid:
    """Return the grid as given, or one of that side over the box or over the real data's extent."""
    return grid_around(real.x, real.y, grid, box)
