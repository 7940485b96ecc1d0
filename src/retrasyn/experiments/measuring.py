"""Measures one run: its utility, the bits sent, or the time it takes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

import numpy as np

from retrasyn.experiments.cells import Cell, Timing
from retrasyn.experiments.sources import share_of_users
from retrasyn.messages import MICRO
from retrasyn.metrics.pair import Pair
from retrasyn.metrics.suite import evaluate_pair
from retrasyn.run_settings import RunSettings
from retrasyn.simulation.run import SimulatedRun
from retrasyn.sinks.collected import Collected
from retrasyn.space import Box, Grid

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories
    from retrasyn.mechanisms.base import Dialogue
    from retrasyn.messages import Aggregate, Ask, Estimate, Grant
    from retrasyn.metrics.suite import Scores
    from retrasyn.simulation.report_sources import ReportSource
    from retrasyn.simulation.run import Simulation

OF_SPAN = ("query_error", "hotspot_ndcg", "pattern_f1")
"""Metrics that depend on the span."""
SPAN = 20
_WARM_UP = 30  # timestamps run before timing starts, so that everything is compiled
_LONGEST = 10.0  # seconds after which enough timestamps have been timed

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class Metered:
    """A report source that counts the bits sent by devices."""

    source: ReportSource
    bits: int = 0
    n_reports: int = 0
    name: ClassVar[str] = "metered"

    def collect(
        self,
        grant: Grant,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        lane: str,
    ) -> Aggregate:
        """Collect from the wrapped source and count the bits."""
        self.bits += states.size * grant.n_answers
        self.n_reports += states.size
        return self.source.collect(grant, states, addresses, lane=lane)


def measure(real: Trajectories, cells: Sequence[Cell]) -> list[dict[str, float]]:
    """Synthesise once and evaluate with the span of each cell; the cells differ in nothing else."""
    wanted = cells[0].run
    part = share_of_users(real, wanted.share)
    settings = RunSettings.of(
        wanted.method,
        grid=Grid(Box.around(real.x, real.y), wanted.side),  # the data's own, as the paper does
        epsilon=wanted.epsilon,
        window=wanted.window,
        seed=wanted.seed,
        faithful=wanted.faithful,
    )
    run = SimulatedRun.of(part, settings)
    meter = Metered(run.simulation.source)
    run.simulation.source = meter
    collected = Collected()
    for release in run.releases():
        collected.write(release)
    pair = Pair.of(part, collected.trajectories(), settings.grid)
    return [_utility(pair, cell, run, meter) for cell in cells]


def _utility(pair: Pair, cell: Cell, run: SimulatedRun, meter: Metered) -> dict[str, float]:
    """Return the row of one cell."""
    if cell.span != SPAN:
        return _known(evaluate_pair(pair, span=cell.span, seed=cell.seed, only=OF_SPAN))
    simulation, recording = run.simulation, run.recording
    personal = simulation.personal
    n_asked = int(np.count_nonzero(personal.peaks()))
    return _known(evaluate_pair(pair, span=cell.span, seed=cell.seed)) | {
        "n_active": recording.streams.size / recording.n_timestamps,
        "n_timestamps": recording.n_timestamps,
        "n_states": simulation.curator.states.n_states,
        "n_reports": meter.n_reports,
        "bits": meter.bits / recording.n_timestamps,
        "never_asked": 1 - n_asked / simulation.n_users,
        "worst_window": personal.worst / MICRO,
    }


def _known(scores: Scores) -> dict[str, float]:
    """Return the scores that are numbers, not NaN."""
    return {name: value for name, value in scores.to_dict().items() if value is not None}


@dataclass(slots=True)
class Stopwatch:
    """Seconds spent in each component."""

    seconds: dict[str, float] = field(default_factory=dict)

    def timed(self, component: str, call: Callable[P, R]) -> Callable[P, R]:
        """Wrap a function so that its running time is added to a component."""

        def timed_call(*args: P.args, **kwargs: P.kwargs) -> R:
            begin = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                spent = time.perf_counter() - begin
                self.seconds[component] = self.seconds.get(component, 0.0) + spent

        return timed_call

    def attach(self, simulation: Simulation) -> None:
        """Time the parts of a simulation from now on."""
        curator: Any = simulation.curator
        synthesizer, begin = curator.synthesizer, curator.begin
        curator.estimate = self.timed("model", curator.estimate)
        curator.model = self.timed("model", curator.model)
        curator.synthesizer = SimpleNamespace(
            step=self.timed("synthesis", synthesizer.step),
            release=self.timed("synthesis", synthesizer.release),
        )
        curator.begin = lambda *args, **kwargs: TimedDialogue(begin(*args, **kwargs), self)
        curator.step = self.timed("curator", curator.step)
        simulation.source = TimedSource(simulation.source, self)


@dataclass(slots=True)
class TimedDialogue:
    """A mechanism's dialogue, with its decisions and updates timed."""

    dialogue: Dialogue
    stopwatch: Stopwatch

    def __next__(self) -> Ask:
        return self.stopwatch.timed("update", self.dialogue.__next__)()

    def send(self, estimate: Estimate | None) -> Ask:
        """Resume the dialogue with an estimate, and time it."""
        return self.stopwatch.timed("update", self.dialogue.send)(estimate)


@dataclass(slots=True)
class TimedSource:
    """A report source that is timed."""

    source: ReportSource
    stopwatch: Stopwatch
    name: ClassVar[str] = "timed"

    def collect(
        self,
        grant: Grant,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        lane: str,
    ) -> Aggregate:
        """Collect from the wrapped source, timing the devices and the sum of their reports."""
        return self.stopwatch.timed("door", self.source.collect)(
            grant, states, addresses, lane=lane
        )


def clock(real: Trajectories, timing: Timing) -> dict[str, float]:
    """Time a run in which every report is perturbed bit by bit; return means per timestamp.

    User-side computation covers all devices together: positions to states to perturbed bits, and
    their sum. Construction of the model is debiasing and Eq. 6; the update is the mechanism's own
    work, its allocation included; the total is everything, the independent recount included.
    """
    part = share_of_users(real, timing.share)
    settings = RunSettings.of(
        timing.method,
        grid=Grid(Box.around(real.x, real.y), timing.side),
        seed=timing.seed,
        faithful=timing.faithful,
        door="reports",
    )
    for most in (_WARM_UP, math.inf):
        run = SimulatedRun.of(part, settings)
        simulation, recording = run.simulation, run.recording
        stopwatch = Stopwatch()
        stopwatch.attach(simulation)
        step = stopwatch.timed("total", simulation.step)
        n = n_active = 0
        while n < min(most, recording.n_timestamps):
            now = recording.step(recording.first_t + n)
            step(now)
            n, n_active = n + 1, n_active + now.streams.size
            if stopwatch.seconds["total"] > _LONGEST:
                break
    seconds = dict.fromkeys(("door", "model", "update", "synthesis"), 0.0) | stopwatch.seconds
    return {
        "seconds_user": (seconds["total"] - seconds["curator"] + seconds["door"]) / n,
        "seconds_model": seconds["model"] / n,
        "seconds_update": seconds["update"] / n,
        "seconds_synthesis": seconds["synthesis"] / n,
        "seconds_total": seconds["total"] / n,
        "n_active": n_active / n,
        "n_reports": simulation.curator.state.n_reports / n,
        "n_timestamps": n,
    }
