"""The curator: one call per timestamp (Alg. 1), no I/O, all memory in one state."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from retrasyn.arrays import with_prefix, without_prefix
from retrasyn.engines.base import Engine
from retrasyn.errors import SettingError
from retrasyn.mechanisms.base import Dialogue, MechanismMemory, Outcome, View, drive
from retrasyn.messages import MICRO, Aggregate, Ask, Estimate, Flags, Grant, Release, Roster
from retrasyn.mobility.model import MobilityModel, masses, standard_errors
from retrasyn.oracles.registry import n_answers, oracle_for
from retrasyn.privacy.ledger import Ledger
from retrasyn.roads.next_hops import NextHops, Progress
from retrasyn.run_settings import RunSettings
from retrasyn.synthesis import kernels
from retrasyn.synthesis.lifecycle import LifecycleMemory, SynthesisContext
from retrasyn.synthesis.points import FineMap
from retrasyn.synthesis.shard import MakeSink
from retrasyn.synthesis.synthesizer import ShardedStreams, Synthesizer

MAX_ROUNDS = 100_000  # the latest rounds a receipt tells of
_BELIEVED = 0.5  # belief above which points within a cell follow a public map
Collect = Callable[[Grant, str], Aggregate]
"""Collects the reports of a grant on a lane: the only link between curator and devices."""


@dataclass(slots=True)
class CuratorState:
    """Everything that changes from one timestamp to the next; it travels as plain arrays."""

    ledger: Ledger
    streams: ShardedStreams
    memory: MechanismMemory
    t: int | None = None
    first_t: int | None = None
    n_reports: int = 0
    rounds: deque[tuple[int, int, int]] = field(  # t, reports, micro-nats each reporter spent
        default_factory=lambda: deque(maxlen=MAX_ROUNDS)
    )
    errors: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))  # see mean_errors
    lifecycle: LifecycleMemory = field(default_factory=LifecycleMemory)
    waiting: dict[tuple[str, int], Aggregate] = field(default_factory=dict)  # by lane and epsilon

    @property
    def n_waiting(self) -> int:
        """How many reports wait to be estimated with later ones."""
        return sum(aggregate.n for aggregate in self.waiting.values())

    @property
    def mean_errors(self) -> tuple[float, float] | None:
        """Mean standard error of a cell's and of a flow's share, where they are known."""
        n, cells, flows = self.errors
        return (float(cells / n), float(flows / n)) if n else None

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as plain arrays."""
        times = [0, 0] if self.t is None or self.first_t is None else [self.t, self.first_t]
        arrays: dict[str, npt.NDArray[Any]] = {
            "clock": np.array([self.t is not None, *times, self.n_reports], np.int64),
            "errors": self.errors,
            "rounds": np.array(self.rounds, np.int64).reshape(-1, 3),
            "streams_next": np.array([self.streams.next_id], np.int64),
        }
        for (lane, epsilon), sums in self.waiting.items():
            arrays[f"waiting_{lane}@{epsilon}"] = np.append(sums.counts, sums.n)
        arrays |= with_prefix("life_", self.lifecycle.to_arrays())
        arrays |= with_prefix("memory_", self.memory.to_arrays())
        arrays |= with_prefix("streams_", self.streams.columns())
        return arrays | with_prefix("ledger_", self.ledger.to_arrays())

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore the state from plain arrays."""
        known, t, first_t, self.n_reports = (int(value) for value in arrays["clock"])
        self.t, self.first_t = (t, first_t) if known else (None, None)
        self.errors = arrays["errors"].copy()
        self.rounds.clear()
        self.rounds.extend((int(t), int(n), int(spent)) for t, n, spent in arrays["rounds"])
        self.waiting = {}
        for name, array in without_prefix("waiting_", arrays).items():
            lane, _, epsilon = name.rpartition("@")
            self.waiting[lane, int(epsilon)] = Aggregate(counts=array[:-1], n=int(array[-1]))
        columns = without_prefix("streams_", arrays)
        next_id = int(columns.pop("next")[0])
        self.streams.take(columns, next_id)
        self.memory.load_arrays(without_prefix("memory_", arrays))
        self.lifecycle.load_arrays(without_prefix("life_", arrays))
        self.ledger.load_arrays(without_prefix("ledger_", arrays))


def averaged(estimates: Sequence[Estimate]) -> Estimate:
    """Average estimates of the same frequencies by their precision.

    Reports that spent different budgets must not be added up, but what they say can be averaged.
    """
    if len(estimates) == 1:
        return estimates[0]
    precision = sum(1.0 / estimate.variance for estimate in estimates)
    shares = [1.0 / estimate.variance / precision for estimate in estimates]
    parts = [share * each.frequencies for share, each in zip(shares, estimates, strict=True)]
    return Estimate(
        frequencies=np.sum(parts, axis=0),
        variance=1.0 / precision,
        n=sum(estimate.n for estimate in estimates),
    )


class Curator:
    """Runs one method over a stream, a timestamp at a time.

    `step` is told how many synthetic points are wanted, who has something to report, and a
    function that brings the reports of those it grants. It never sees a position.

    >>> from retrasyn import Box, Curator, Grid, Roster, RunSettings
    >>> curator = Curator(RunSettings.of(grid=Grid(Box(0, 0, 1, 1), side=2), window=5))
    >>> release = curator.step(0, size=3, roster=Roster.empty(), collect=None)
    >>> release.ids.tolist(), release.n_reports
    ([0, 1, 2], 0)
    """

    def __init__(
        self,
        settings: RunSettings,
        *,
        mean_length: float | None = None,
        engine: Engine | None = None,
        make_sink: MakeSink | None = None,
        on_ways: Progress | None = None,
        roads: NextHops | None = None,
    ) -> None:
        self.settings = settings
        self.method = settings.method
        self.grid = settings.grid
        self.states = settings.states
        self.epsilon = settings.budget
        self.window = settings.window
        self.seed = settings.seed
        self.reading = settings.interpretation
        self.length_scale = settings.length_scale(mean_length)  # None: from what was released
        self.gap = settings.gap
        self.oracle = settings.chosen_oracle
        self.synthesizer = Synthesizer(self.grid, self.seed, self.method.steers)
        self.roads = roads or roads_of(settings, engine, on_ways)
        streams = ShardedStreams.open(
            self.grid,
            engine,
            continuous=self.method.continuous,
            make_sink=make_sink,
            roads=self.roads,
        )
        ledger = self.method.division.open_ledger(epsilon=self.epsilon, gap=self.gap)
        known = settings.public_map
        self.fine_map = None if known is None else FineMap.of(self.grid, known.raster)
        memory = self.method.mechanism.open_memory(
            self.states,
            self.gap,
            self.method.topics,
            None if known is None else known.shares(self.grid),
        )
        self.state = CuratorState(ledger=ledger, streams=streams, memory=memory)

    def step(
        self,
        t: int,
        *,
        size: int,
        roster: Roster,
        collect: Collect | None,
        flags: Flags | None = None,
    ) -> Release:
        """Collect reports, update the model, and extend the synthetic stream by timestamp t."""
        if roster.keys.min(initial=0) < 0:
            raise SettingError("ledger keys are numbers from 0 on; the roster has a negative one")
        granted: list[Grant] = []

        def answer(ask: Ask) -> Estimate | None:
            if not roster.keys.size:  # nobody is charged, whatever the division
                return None
            grant = self.grant(ask, t=t, roster=roster)
            if collect is None or grant.reporters.size == 0:
                return None
            granted.append(grant)
            return self.estimate(ask, grant, collect(grant, ask.lane))

        if self.method.presence != "flags":
            flags = None
        elif flags is None:
            raise SettingError(f"{self.method.name} must be told who starts and stops: give flags")
        dialogue = self.begin(t, size=size, n_enrolled=roster.keys.size, flags=flags)
        outcome = drive(dialogue, answer)
        return self.end(t, outcome, size=size, granted=granted, flags=flags)

    def begin(
        self, t: int, *, size: int = 0, n_enrolled: int = 0, flags: Flags | None = None
    ) -> Dialogue:
        """Open the dialogue of timestamp t; timestamps must be consecutive."""
        state = self.state
        if state.t is not None and t != state.t + 1:
            raise SettingError(
                f"timestamp {t} follows {state.t}; every timestamp must be stepped through, "
                "empty ones with size 0 and an empty roster"
            )
        if state.first_t is None:
            state.first_t = t
        view = self.view(t, size=size, n_enrolled=n_enrolled, flags=flags)
        return self.method.mechanism.dialogue(view)

    def view(
        self, t: int, *, size: int = 0, n_enrolled: int = 0, flags: Flags | None = None
    ) -> View:
        """Return what the mechanism may use to decide about timestamp t."""
        state = self.state
        return View(
            t=t,
            first_t=t if state.first_t is None else state.first_t,
            window=self.window,
            gap=self.gap,
            reading=self.reading,
            memory=state.memory,
            size=0 if self.method.presence == "hidden" else size,
            n_enrolled=n_enrolled,
            epsilon=self.epsilon,
            splits_users=self.method.division.splits_users,
            flags=flags,
        )

    def grant(self, ask: Ask, *, t: int, roster: Roster) -> Grant:
        """Charge the ledger for an ask."""
        grant = self.state.ledger.grant(ask, t=t, roster=roster, seed=self.seed)
        return self._hidden_by_oracle(grant)

    def admit(self, ask: Ask, *, t: int, epsilon: int, reporters: npt.NDArray[np.int64]) -> Grant:
        """Charge the ledger for devices that decided themselves to report, in place of a grant.

        Real devices decide themselves whether they report; nobody learns who was drawn and silent.
        """
        if not self.method.division.private:
            raise SettingError(f"{self.method.name} is not private: no device answers it")
        grant = self.state.ledger.admit(ask, t=t, epsilon=epsilon, reporters=reporters)
        return self._hidden_by_oracle(grant)

    def _hidden_by_oracle(self, grant: Grant) -> Grant:
        """Set the oracle that hides the answers of a grant."""
        answers = n_answers(grant.question, self.states)
        return dataclasses.replace(grant, oracle=self.oracle, n_answers=answers)

    def estimate(self, ask: Ask, grant: Grant, aggregate: Aggregate) -> Estimate | None:
        """Turn a sum of reports into frequencies; None if there are too few.

        With fewer than `fewest` reports, the sum waits and is estimated with the next ones.
        """
        if aggregate.n == 0:
            return None
        if not grant.private:
            return Estimate(frequencies=aggregate.counts / aggregate.n, variance=0.0, n=aggregate.n)
        sums = {grant.epsilon: aggregate}
        if not ask.adds_up:
            sums = self._with_waiting(ask.lane, grant.epsilon, aggregate)
        estimates = [
            oracle_for(dataclasses.replace(grant, epsilon=epsilon)).estimate(total)
            for epsilon, total in sums.items()
        ]
        return averaged(estimates) if estimates else None

    def _with_waiting(self, lane: str, epsilon: int, aggregate: Aggregate) -> dict[int, Aggregate]:
        """Add a sum to those that wait; return all of them by epsilon once they are enough."""
        waiting = self.state.waiting
        before = waiting.get((lane, epsilon))
        waiting[lane, epsilon] = aggregate if before is None else before + aggregate
        mine = {spent: sums for (where, spent), sums in waiting.items() if where == lane}
        if sum(sums.n for sums in mine.values()) < self.settings.fewest:
            return {}
        for spent in mine:
            del waiting[lane, spent]
        return mine

    def end(
        self,
        t: int,
        outcome: Outcome,
        *,
        size: int,
        granted: list[Grant],
        flags: Flags | None = None,
    ) -> Release:
        """Update the model and extend the synthetic stream."""
        state = self.state
        size = size if outcome.size is None else outcome.size
        state.memory = outcome.memory
        if outcome.released is not None:
            going_on, quitting = masses(outcome.released, self.states)
            state.lifecycle.going_on += going_on
            state.lifecycle.quitting += quitting
        context = self._context(outcome, size, flags)
        plan = self.method.lifecycle.plan(context)
        changes = self.synthesizer.step(state.streams, plan, t)
        if changes.pull is not None:
            state.lifecycle.pull = changes.pull
        if changes.pace is not None:
            state.lifecycle.pace = changes.pace
        released = self.synthesizer.release(state.streams, t)
        uncertainty = None
        if outcome.variances is not None and context.mass is not None:
            counts = state.streams.counts
            uncertainty = standard_errors(counts, context.mass, outcome.variances, self.grid)
            state.errors += 1.0, uncertainty.cell_errors.mean(), uncertainty.flow_errors.mean()
        n_reports = sum(grant.reporters.size for grant in granted)
        spends = [grant.epsilon for grant in granted]
        spent = max(spends, default=0) if self.method.division.splits_users else sum(spends)
        state.n_reports += n_reports
        if n_reports:
            state.rounds.append((t, n_reports, spent))
        state.t = t
        return Release(
            t=t,
            n_points=state.streams.n,
            **released,
            n_born=changes.n_born,
            n_ended=changes.n_ended,
            epsilon_t=spent / MICRO,
            n_reports=n_reports,
            uncertainty=uncertainty,
        )

    def model(self, outcome: Outcome) -> MobilityModel:
        """Build the global mobility model from an outcome (Eq. 6)."""
        return MobilityModel.from_frequencies(outcome.released, self.states)

    def _context(self, outcome: Outcome, size: int, flags: Flags | None) -> SynthesisContext:
        """Gather what a lifecycle may use; the model comes from the release (Eq. 6)."""
        mass = None
        if outcome.released is not None:
            mass = np.zeros(self.states.move_index.shape)
            mass[self.states.move_index >= 0] = outcome.released[: self.states.n_moves]
            whole = mass.sum()
            mass = mass / whole if whole > 0 else None
        memory, scale = self.state.lifecycle, self.length_scale
        return SynthesisContext(
            model=self.model(outcome),
            memory=memory,
            grid=self.grid,
            interpretation=self.reading,
            length_scale=memory.released_length if scale is None else scale,
            size=size,
            cell_counts=self.state.streams.counts,
            mass=mass,
            hazard=outcome.hazard,
            ages_of_quitters=None if flags is None else flags.ages_of_quitters,
            roads=self.roads,
            alarm=outcome.alarm,
            speeds=outcome.speeds,
            gap=self.gap,
            fine_map=self.fine_map if outcome.belief > _BELIEVED else None,
        )


def roads_of(
    settings: RunSettings, engine: Engine | None, on_ways: Progress | None = None
) -> NextHops | None:
    """Return the ways on public roads if streams drive on them."""
    if (
        not settings.method.roads
        or settings.public_map is None
        or settings.public_map.roads is None
    ):
        return None
    n_threads = None if engine is None else engine.n_threads
    return NextHops.of(
        settings.public_map.roads,
        settings.grid,
        n_threads=n_threads or kernels.n_threads(),
        progress=on_ways,
    )
