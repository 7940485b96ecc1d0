"""The dialogue of `steered`: everyone reports in phase, and a log-linear model makes one of it.

One dialogue serves all three ways to treat presence; what it asks about are the topics of the
method's row. By `count`, people report a transition, their cell or, a few, their age or how far
they moved; under `flags`, who moves, starts and stops reports over the moves or the cells only;
when it is `hidden`, everybody enrolled reports, the absent null, and some report whether they are
present at all.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from retrasyn.arrays import with_prefix, without_prefix
from retrasyn.mechanisms.base import Outcome
from retrasyn.messages import SPEEDS, Ask, Estimate, Question
from retrasyn.mobility.durations import AgeMemory
from retrasyn.mobility.estimator import (
    LEAST_TOTAL,
    UNKNOWN_TOTAL,
    EndMemory,
    Flow,
    FlowMemory,
    Hypotheses,
    PresenceMemory,
)
from retrasyn.mobility.speeds import SpeedMemory
from retrasyn.privacy.selection import age_thresholds

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    import numpy.typing as npt

    from retrasyn.mechanisms.base import Dialogue, View
    from retrasyn.messages import Topic
    from retrasyn.space import StateSpace

Vector: TypeAlias = "npt.NDArray[np.float64]"

_Part: TypeAlias = "AgeMemory | PresenceMemory | SpeedMemory | FlowMemory | EndMemory"
_LEAST_MOVING = 0.05


@dataclass(slots=True)
class LogLinearMemory:
    """Everything the estimator remembers."""

    states: StateSpace
    topics: tuple[Topic, ...]
    hypotheses: Hypotheses
    ages: AgeMemory | None
    presence: PresenceMemory | None
    speeds: SpeedMemory | None = None
    flow: FlowMemory = field(init=False)
    ends: EndMemory = field(init=False)
    released: Vector | None = None

    def __post_init__(self) -> None:
        self.flow = FlowMemory(self.states, self.hypotheses)
        self.ends = EndMemory.empty(self.states.grid.n_cells)

    @property
    def _parts(self) -> dict[str, _Part]:
        """What is remembered, by the prefix of its arrays."""
        parts: dict[str, _Part] = {"flow_": self.flow, "ends_": self.ends}
        if self.ages is not None:
            parts["ages_"] = self.ages
        if self.presence is not None:
            parts["presence_"] = self.presence
        if self.speeds is not None:
            parts["speeds_"] = self.speeds
        return parts

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the memory as plain arrays."""
        arrays = {"released": np.empty(0) if self.released is None else self.released}
        for prefix, part in self._parts.items():
            arrays |= with_prefix(prefix, part.to_arrays())
        return arrays

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore the memory from plain arrays."""
        self.released = arrays["released"] if arrays["released"].size else None
        for prefix, part in self._parts.items():
            part.load_arrays(without_prefix(prefix, arrays))

    def replica(self, random: np.random.Generator) -> LogLinearMemory:
        """Return the memory of a replica: around a draw from what is believed before any report."""
        twin = dataclasses.replace(self.copied(), hypotheses=self.hypotheses.drawn(random))
        twin.flow.begin_apart(random)
        twin.ends.begin_apart(random)
        if twin.ages is not None:
            twin.ages.place = random.random()
        return twin

    def follow(self, main: LogLinearMemory, random: np.random.Generator) -> None:
        """Let the truth of a replica move on its own way; it trusts what the real one trusts."""
        self.flow.follow(main.flow, random)

    def copied(self) -> LogLinearMemory:
        """Return an independent copy."""
        twin = LogLinearMemory(
            states=self.states,
            topics=self.topics,
            hypotheses=self.hypotheses,
            ages=None if self.ages is None else self.ages.copied(),
            presence=None if self.presence is None else self.presence.copied(),
            speeds=None if self.speeds is None else self.speeds.copied(),
            released=self.released,
        )
        twin.flow, twin.ends = self.flow.copied(), self.ends.copied()
        return twin


@dataclass(frozen=True, slots=True)
class LogLinear:
    """A log-linear model of moves, and where they begin and end."""

    asks_once: ClassVar[bool] = True
    knows_errors: ClassVar[bool] = True
    unary_only: ClassVar[bool] = False

    def open_memory(
        self,
        states: StateSpace,
        gap: int,
        topics: Sequence[Topic],
        map_shares: Vector | None = None,
    ) -> LogLinearMemory:
        """Return an empty memory of what is asked."""
        return LogLinearMemory(
            states=states,
            topics=tuple(topics),
            hypotheses=Hypotheses.of(states, map_shares),
            ages=AgeMemory(age_thresholds(gap)) if "older" in topics else None,
            presence=PresenceMemory() if "present" in topics else None,
            speeds=SpeedMemory(SPEEDS) if "faster" in topics else None,
        )

    def dialogue(self, view: View) -> Dialogue:
        """Ask, and fit the model to the answers; the previous memory is not changed."""
        memory = view.memory_as(LogLinearMemory).copied()
        answers: dict[Topic, Estimate] = {}
        for about in memory.topics:
            if about not in ("older", "faster"):
                estimate = yield Ask(share=1.0, lane=about, question=Question(about=about))
                if estimate is not None:
                    answers[about] = estimate
        hazard = totals = None
        if memory.ages is not None:
            hazard, totals = yield from _ask_ages(view, memory.ages)
        elif view.t > view.first_t:
            totals = memory.ends.totals()
        if memory.speeds is not None:
            yield from _ask_speeds(memory.speeds)
        flow = _learn(memory, answers, totals, view)
        variances = None
        if flow is not None:
            memory.released = _released(memory, flow, totals, view)
            if flow.variances.size:
                table = np.zeros(memory.states.move_index.shape)
                table[memory.states.move_index >= 0] = flow.variances
                variances = table, flow.arrival_variances
        return Outcome(
            released=memory.released,
            n_significant=0,
            fresh=bool(answers) and flow is not None,
            hazard=hazard,
            alarm=memory.flow.alarm,
            belief=memory.flow.belief_in_map,
            size=round(memory.presence.share * view.n_enrolled) if memory.presence else None,
            variances=variances,
            speeds=memory.speeds,
            memory=memory,
        )


def _learn(
    memory: LogLinearMemory, answers: Mapping[Topic, Estimate], totals: Vector | None, view: View
) -> Flow | None:
    """Add the answers of a timestamp to the memory; return the flow, None before any report."""
    n_moves, n_cells = memory.states.n_moves, memory.states.grid.n_cells
    present = 1.0
    if memory.presence is not None:
        if "present" in answers:
            memory.presence.update(answers["present"])
        present = memory.presence.share
    if view.flags is not None:  # only those who move, start or stop were asked about it
        moves, moving = answers.get("move"), 1.0
        for which, ending in enumerate((answers.get("enter"), answers.get("quit"))):
            if ending is not None:
                memory.ends.add(which, ending.frequencies, ending.n)
    else:
        moves, moving = answers.get("transition"), None
        if moves is not None and totals is not None and present > 0:
            moving = present * max(1.0 - float(totals.sum()), _LEAST_MOVING)
            parts = np.split(moves.frequencies, [n_moves, n_moves + n_cells])
            moves = Estimate(frequencies=parts[0], variance=moves.variance, n=moves.n)
            for which in (0, 1):
                memory.ends.add(which, parts[1 + which], moves.n, present)
    memory.flow.update(moves, answers.get("cell"), moving=moving, present=present)
    return memory.flow.fit() if memory.flow.started else None


def _released(memory: LogLinearMemory, flow: Flow, totals: Vector | None, view: View) -> Vector:
    """Return the frequencies of all states: moves, and where people enter and quit."""
    ends = memory.ends
    around = ends.follow(memory.flow.arriving(flow.shares), memory.flow.alarm)
    if view.flags is not None:
        where = ends.fit(around, np.ones(2), memory.flow.variance)
        numbers = view.flags.n_entering, view.flags.ages_of_quitters.size
        ending = np.array(numbers) / max(view.size + numbers[1], 1)
    else:
        ending = np.full(2, UNKNOWN_TOTAL) if totals is None else np.maximum(totals, LEAST_TOTAL)
        where = ends.fit(around, ending, memory.flow.variance)
    moving = max(1.0 - float(ending.sum()), _LEAST_MOVING)
    if moving == _LEAST_MOVING:  # noise of few reports; all shares must still sum to 1
        ending *= (1.0 - moving) / ending.sum()
    return np.concatenate([moving * flow.shares, *(total * where for total in ending)])


def _ask_ages(
    view: View, ages: AgeMemory
) -> Generator[Ask, Estimate | None, tuple[Vector, Vector | None]]:
    """Ask about every age threshold; return the hazard by age and the totals of endpoints."""
    entering, quitting = ages.step(view.size)
    for which, threshold in enumerate(ages.thresholds):
        question = Question(about="older", threshold=threshold)
        estimate = yield Ask(share=1.0, lane=f"older/{threshold}", question=question, adds_up=True)
        if estimate is not None:
            ages.pool(which, estimate, view.size)
    weights = ages.weights(view.window)
    return ages.hazard(weights), ages.smooth(weights, entering, quitting, view.size)


def _ask_speeds(speeds: SpeedMemory) -> Generator[Ask, Estimate | None, None]:
    """Ask about every distance, and pool the answers."""
    for which, threshold in enumerate(speeds.thresholds):
        question = Question(about="faster", threshold=threshold)
        estimate = yield Ask(share=1.0, lane=f"faster/{threshold}", question=question, adds_up=True)
        if estimate is not None:
            speeds.pool(which, estimate)
