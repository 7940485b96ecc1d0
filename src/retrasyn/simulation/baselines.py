"""What a release is compared with at its own budget: the mean of all reports, `lpa` and `exact`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from retrasyn.data.trajectories import Trajectories
from retrasyn.errors import RetraSynError
from retrasyn.methods import DEFAULT_METHOD
from retrasyn.metrics.pair import Pair
from retrasyn.metrics.suite import evaluate_pair
from retrasyn.oracles.registry import oracle_for
from retrasyn.run_settings import RunSettings
from retrasyn.simulation.run import Progress, SimulatedRun, synthesize
from retrasyn.space import Box, Grid

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    import numpy.typing as npt

    from retrasyn.messages import Aggregate, Grant
    from retrasyn.metrics.suite import Scores
    from retrasyn.simulation.report_sources import ReportSource

STATIC = ("density_error", "query_error", "hotspot_ndcg")
"""What a mean of reports can answer: it has neither moves nor trips."""
RIVALS = ("lpa", "exact")
"""Rows of the table of methods that run in the place of the release's own."""


def settings_of_receipt(receipt: Mapping[str, Any]) -> RunSettings | None:
    """Return settings with the budget, window and grid of a receipt; None if it does not tell."""
    try:
        return RunSettings.of(
            grid=Grid(Box(*receipt["box"]), receipt["grid"]),
            epsilon=receipt["epsilon"],
            window=receipt["window"],
            unit=receipt["unit"],
            ledger="stream" if receipt["ledger"] == "stream" else "user",  # or of folded days
        )
    except (KeyError, TypeError, ValueError, RetraSynError):
        return None


def run_baselines(
    real: Trajectories,
    settings: RunSettings,
    pair: Pair,
    measure: Callable[..., Scores] = evaluate_pair,
    *,
    progress: Callable[[int, int, str], None] = lambda *_: None,
    seed: int = 0,
) -> dict[str, Scores]:
    """Return the scores of all three, with the budget, window and grid of `settings`.

    `measure` is `evaluate_pair` with the settings of the release's own scores. The seed repeats
    their noise: they are made to be measured, not to be released.
    """

    def told(name: str) -> Progress:
        return lambda done, total: progress(done, total, f"timestamps of {name}")

    def measured(shown: Trajectories, only: Container[str] | None = None) -> Scores:
        return measure(Pair.of(real, shown, pair.grid), only=only)

    found = {}
    crowd = mean_crowd(real, _like(settings, DEFAULT_METHOD, seed, real), told("the mean"))
    found["static"] = measured(crowd, STATIC)
    for name in RIVALS:
        run = synthesize(real, _like(settings, name, seed, real), progress=told(name))
        found[name] = measured(run.synthetic)
    return found


def _like(settings: RunSettings, row: str, seed: int, real: Trajectories) -> RunSettings:
    """Return the settings of another row; where points lie outside the box, they are dropped.

    Days are as they are in the data, folded or not.
    """
    return RunSettings.of(
        row,
        grid=settings.grid,
        epsilon=settings.epsilon,
        window=settings.window,
        unit=settings.interpretation.unit,
        ledger=settings.interpretation.ledger,
        seed=seed,
        outside="drop",
        fold=None if real.fold is None else real.fold.by,
    )


@dataclass(slots=True)
class HeardCells:
    """Passes reports on, and adds up what they say about cells."""

    source: ReportSource
    sums: npt.NDArray[np.float64] = field(repr=False)  # [n_cells]
    name: ClassVar[str] = "counts"

    def collect(
        self,
        grant: Grant,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        lane: str,
    ) -> Aggregate:
        """Return the sum of all reports."""
        aggregate = self.source.collect(grant, states, addresses, lane=lane)
        if grant.question.about == "cell" and aggregate.n:
            self.sums += aggregate.n * oracle_for(grant).estimate(aggregate).frequencies
        return aggregate

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """The mean of all reports so far, clipped; uniform before the first: [n_cells]."""
        likely = np.maximum(self.sums, 0.0)
        if not likely.any():
            likely = np.ones_like(likely)
        shares: npt.NDArray[np.float64] = likely / likely.sum()
        return shares


def mean_crowd(
    real: Trajectories,
    settings: RunSettings,
    progress: Progress = lambda *_: None,
) -> Trajectories:
    """Return a crowd drawn anew at every timestamp from the mean of all reports so far.

    The reports are those about cells that a run of `settings`, a row that asks about them, gets.
    """
    run = SimulatedRun.of(real, settings)
    grid, recording = settings.grid, run.recording
    heard = HeardCells(run.simulation.source, np.zeros(grid.n_cells))
    run.simulation.source = heard
    generator = np.random.default_rng(settings.seed)
    crowds = []
    for release in run.releases():
        counts = generator.multinomial(release.n_points, heard.shares)
        crowds.append(np.repeat(np.arange(grid.n_cells), counts))
        progress(len(crowds), recording.n_timestamps)
    cells = np.concatenate(crowds)
    begins = np.repeat(np.arange(len(crowds)), [crowd.size for crowd in crowds])
    within = generator.random((cells.size, 2)) * (grid.cell_width, grid.cell_height)
    x, y = (grid.corners[cells] + within).T
    ids = np.arange(cells.size)
    return Trajectories(ids, recording.first_t + begins, np.arange(ids.size + 1), x, y)
