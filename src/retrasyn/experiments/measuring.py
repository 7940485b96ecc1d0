"""Measures one run: its utility, the bits sent, or the time taken."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

import numpy as np

from retrasyn.experiments.cells import Cell, Timing
from retrasyn.experiments.sources import extent, share_of_users
from retrasyn.messages import MICRO
from retrasyn.metrics.pair import Pair
from retrasyn.metrics.suite import evaluate_pair
from retrasyn.simulation.plan import Plan
from retrasyn.simulation.population import Recording
from retrasyn.simulation.run import set_up
from retrasyn.sinks.collected import Collected
from retrasyn.space import Grid

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.data.trajectories import Trajectories
    from retrasyn.mechanisms.base import Dialogue
    from retrasyn.messages import Aggregate, Ask, Estimate, Grant
    from retrasyn.metrics.suite import Scores
    from retrasyn.simulation.report_sources import ReportSource
    from retrasyn.simulation.simulation import Simulation

OF_SPAN = ("query_error", "hotspot_ndcg", "pattern_f1")
"""Figures that depend on the span."""
SPAN = 20
_WARM_UP = 30  # timestamps that compile everything before the stopwatch starts
_LONGEST = 10.0  # seconds after which a stopwatch has seen enough timestamps

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class Metered:
    """A door that counts the bits sent through it."""

    door: ReportSource
    bits: int = 0
    n_reports: int = 0
    name: ClassVar[str] = "metered"

    def collect(
        self,
        grant: Grant,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        n_states: int,
        lane: str,
    ) -> Aggregate:
        """Let the reports through."""
        self.bits += states.size * n_states
        self.n_reports += states.size
        return self.door.collect(grant, states, addresses, n_states=n_states, lane=lane)


def measure(real: Trajectories, cells: Sequence[Cell]) -> list[dict[str, float]]:
    """Synthesise once and evaluate over the span of every cell; they differ in nothing else."""
    run = cells[0].run
    part = share_of_users(real, run.share)
    grid = Grid(extent(real), run.side)
    recording = Recording.of(part, grid)
    plan = Plan.of(run.method, faithful=run.faithful)
    simulation = set_up(
        plan, part, recording, grid, epsilon=run.epsilon, window=run.window, seed=run.seed
    )
    meter = Metered(simulation.door)
    simulation.door = meter
    collected = Collected()
    for step in recording.steps():
        collected.write(simulation.step(step))
    pair = Pair.of(part, collected.trajectories(), grid)
    return [_utility(pair, cell, simulation, meter, recording) for cell in cells]


def _utility(
    pair: Pair, cell: Cell, simulation: Simulation, meter: Metered, recording: Recording
) -> dict[str, float]:
    """Return the row of one cell."""
    if cell.span != SPAN:
        return _known(evaluate_pair(pair, span=cell.span, seed=cell.seed, only=OF_SPAN))
    personal = simulation.personal
    identities = simulation.population.identities
    n_persons = int(identities.person_of[: identities.n_keys].max()) + 1
    n_asked = int(np.count_nonzero(personal.peaks()))
    return _known(evaluate_pair(pair, span=cell.span, seed=cell.seed)) | {
        "n_active": recording.streams.size / recording.n_timestamps,
        "n_timestamps": recording.n_timestamps,
        "n_states": simulation.curator.states.n_states,
        "n_reports": meter.n_reports,
        "bits": meter.bits / recording.n_timestamps,
        "never_asked": 1 - n_asked / n_persons,
        "worst_window": personal.worst / MICRO,
    }


def _known(scores: Scores) -> dict[str, float]:
    """Return the figures that were computed and could be."""
    return {name: value for name, value in scores.to_dict().items() if value is not None}


@dataclass(slots=True)
class Stopwatch:
    """Seconds by component."""

    seconds: dict[str, float] = field(default_factory=dict)

    def timed(self, component: str, call: Callable[P, R]) -> Callable[P, R]:
        """Return a function that does the same and adds its time to a component."""

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
        simulation.door = TimedDoor(simulation.door, self)


@dataclass(slots=True)
class TimedDialogue:
    """A mechanism's dialogue with a stopwatch: what it decides and how it updates."""

    dialogue: Dialogue
    stopwatch: Stopwatch

    def __next__(self) -> Ask:
        return self.stopwatch.timed("update", self.dialogue.__next__)()

    def send(self, estimate: Estimate | None) -> Ask:
        """Go on with an estimate."""
        return self.stopwatch.timed("update", self.dialogue.send)(estimate)


@dataclass(slots=True)
class TimedDoor:
    """A door with a stopwatch."""

    door: ReportSource
    stopwatch: Stopwatch
    name: ClassVar[str] = "timed"

    def collect(
        self,
        grant: Grant,
        states: npt.NDArray[np.int32],
        addresses: npt.NDArray[np.uint64],
        *,
        n_states: int,
        lane: str,
    ) -> Aggregate:
        """Time the devices and the sum of their reports."""
        return self.stopwatch.timed("door", self.door.collect)(
            grant, states, addresses, n_states=n_states, lane=lane
        )


def clock(real: Trajectories, timing: Timing) -> dict[str, float]:
    """Run with a stopwatch, every report perturbed bit by bit; return means per timestamp.

    User-side computation is all devices together: from positions to states to perturbed bits, and
    their sum. Construction of the model is debiasing and Eq. 6; the update is the mechanism's own
    work, its allocation included; the total is everything, the independent recount included.
    """
    part = share_of_users(real, timing.share)
    grid = Grid(extent(real), timing.side)
    recording = Recording.of(part, grid)
    plan = Plan.of(timing.method, faithful=timing.faithful)
    for n_steps in (_WARM_UP, recording.n_timestamps):
        simulation = set_up(
            plan, part, recording, grid, epsilon=1.0, window=20, seed=timing.seed, door="reports"
        )
        stopwatch = Stopwatch()
        stopwatch.attach(simulation)
        step = stopwatch.timed("total", simulation.step)
        n = n_active = 0
        while n < min(n_steps, recording.n_timestamps):
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
