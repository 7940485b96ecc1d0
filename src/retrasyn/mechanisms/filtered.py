"""The estimator of `steered`: everyone reports in phase; filter in time, shrink in space.

One dialogue serves all three ways to treat presence; what it asks about are the topics of the
method's row. By `count`, everybody reports over all states and a few report ages; under `flags`,
who moves, starts and stops reports over the moves or the cells only; when it is `hidden`, everybody
enrolled reports, the absent null, and a few report whether they are present at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from retrasyn.arrays import with_prefix, without_prefix
from retrasyn.mechanisms.base import Outcome
from retrasyn.messages import Ask, Estimate, Question
from retrasyn.mobility.durations import AgeMemory
from retrasyn.mobility.estimator import (
    ENTER,
    MOVE,
    QUIT,
    STAY,
    FilterBank,
    ShrinkageMemory,
    groups_of,
)
from retrasyn.privacy.selection import age_thresholds

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    import numpy.typing as npt

    from retrasyn.mechanisms.base import Dialogue, View
    from retrasyn.messages import Topic
    from retrasyn.space import StateSpace

Vector: TypeAlias = "npt.NDArray[np.float64]"
Reading: TypeAlias = "tuple[npt.NDArray[np.float64], float]"
"""Frequencies, and the variance of each."""

_LEAST_MOVING = 0.05
_LEAST_PRESENCE = 0.01
_UNKNOWN = 1e6  # variance of what nobody has reported yet


@dataclass(slots=True)
class FilterMemory:
    """Everything the estimator remembers."""

    states: StateSpace
    banks: dict[Topic, FilterBank]  # by topic
    ages: AgeMemory | None
    shrinkage: ShrinkageMemory = field(default_factory=ShrinkageMemory)
    released: npt.NDArray[np.float64] | None = None

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the memory as plain arrays."""
        slow = self.shrinkage.slow_density
        arrays: dict[str, npt.NDArray[Any]] = {
            "released": np.empty(0) if self.released is None else self.released,
            "slow_density": np.empty(0) if slow is None else slow,
            "priors": self.shrinkage.priors,
        }
        for about, bank in self.banks.items():
            arrays |= with_prefix(f"{about}_", bank.to_arrays())
        if self.ages is not None:
            arrays |= with_prefix("ages_", self.ages.to_arrays())
        return arrays

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore the memory from plain arrays."""
        self.released = arrays["released"] if arrays["released"].size else None
        slow = arrays["slow_density"]
        self.shrinkage = ShrinkageMemory(slow if slow.size else None, arrays["priors"].copy())
        for about, bank in self.banks.items():
            bank.load_arrays(without_prefix(f"{about}_", arrays))
        if self.ages is not None:
            self.ages.load_arrays(without_prefix("ages_", arrays))

    def copied(self) -> FilterMemory:
        """Return an independent copy."""
        return FilterMemory(
            states=self.states,
            banks={about: bank.copied() for about, bank in self.banks.items()},
            ages=None if self.ages is None else self.ages.copied(),
            shrinkage=self.shrinkage.copied(),
            released=self.released,
        )

    @property
    def started(self) -> bool:
        """Whether any move has been reported yet."""
        return next(iter(self.banks.values())).started

    @property
    def presence(self) -> float:
        """Share of enrolled devices that are present, where presence is hidden."""
        bank = self.banks.get("present")
        if bank is None or not bank.started:
            return 1.0 if bank is None else 0.0
        return min(max(float(bank.read(STAY)[0][0]), 0.0), 1.0)

    def readings(self) -> tuple[Reading, Reading, Reading, Reading]:
        """Return moves read fast and slowly, [n_cells, 9] each, then enters and quits, [n_cells].

        Frequencies are shares of those present and come with their variance.
        """
        n_moves, n_cells = self.states.n_moves, self.states.grid.n_cells
        bank = self.banks.get("transition") or self.banks["move"]
        factor = 1.0 / max(self.presence, _LEAST_PRESENCE)
        fast, slow = (_scaled(bank.read(group), factor) for group in (STAY, MOVE))
        if "transition" in self.banks:
            x, variance = _scaled(bank.read_all_time(), factor)
            ends = (x[n_moves : n_moves + n_cells], variance), (x[n_moves + n_cells :], variance)
        else:
            ends = self._read_ends("enter"), self._read_ends("quit")
        return self._in_table(fast), self._in_table(slow), *ends

    def _read_ends(self, about: Literal["enter", "quit"]) -> Reading:
        """Return the reading of enters or quits; unknown before the first report."""
        bank = self.banks[about]
        if bank.started:
            return bank.read_all_time()
        return np.zeros(self.states.grid.n_cells), _UNKNOWN

    def _in_table(self, reading: Reading) -> Reading:
        """Arrange moves by cell and direction."""
        table = np.zeros(self.states.move_index.shape)
        known = self.states.move_index >= 0
        table[known] = reading[0][: self.states.n_moves]
        return table, reading[1]


@dataclass(frozen=True, slots=True)
class Filtered:
    """Filter bank and empirical Bayes, over one stratum of states or three."""

    balanced: bool = True  # use the fact that shares sum to a known total
    asks_once: ClassVar[bool] = True
    unary_only: ClassVar[bool] = False

    def open_memory(self, states: StateSpace, gap: int, topics: Sequence[Topic]) -> FilterMemory:
        """Return empty filters for every topic, including ages if they are one."""
        groups = groups_of(states)
        strata: dict[Topic, npt.NDArray[np.int64]] = {
            "transition": groups,
            "move": groups[: states.n_moves],
            "enter": groups[groups == ENTER],
            "quit": groups[groups == QUIT],
            "present": np.full(1, STAY),
            "cell": np.full(states.grid.n_cells, STAY),  # asked, and not yet used
        }
        return FilterMemory(
            states=states,
            banks={about: FilterBank.empty(strata[about]) for about in topics if about in strata},
            ages=AgeMemory(age_thresholds(gap)) if "older" in topics else None,
        )

    def dialogue(self, view: View) -> Dialogue:
        """Ask, filter and shrink; the previous memory is not changed."""
        memory = view.memory_as(FilterMemory).copied()
        fresh = False
        for about, bank in memory.banks.items():
            estimate = yield Ask(share=1.0, lane=about, question=Question(about=about))
            if estimate is not None:
                bank.update(estimate)
                fresh = True
        hazard = totals = None
        if memory.ages is not None:
            hazard, totals = yield from _ask_ages(view, memory.ages)
        variance = None
        if memory.started:
            memory.released, variance = self._shrink(memory, totals, view)
        hidden = "present" in memory.banks
        return Outcome(
            released=memory.released,
            n_significant=0,
            fresh=fresh and memory.started,
            hazard=hazard,
            size=round(memory.presence * view.n_enrolled) if hidden else None,
            mass_variance=variance,
            memory=memory,
        )

    def _moving_share(self, totals: Vector | None, view: View) -> float | None:
        """Return the share of moves among all states, if it is known without reports."""
        if not self.balanced:
            return None
        if view.flags is not None:
            return 1.0  # only those who move were asked about moves
        return None if totals is None else 1.0 - float(totals.sum())

    def _shrink(
        self, memory: FilterMemory, totals: Vector | None, view: View
    ) -> tuple[Vector, Vector]:
        """Return the released frequencies and the variance of each move's share."""
        states, shrinkage = memory.states, memory.shrinkage
        fast, slow, enter, quit_ = memory.readings()
        leaving_error = 0.0
        whole = self._moving_share(totals, view)
        if whole is not None:
            fast, slow = (_balanced(reading, whole, states) for reading in (fast, slow))
            n_cells, n_moves = states.grid.n_cells, states.n_moves
            leaving_error = n_cells * (n_moves - n_cells) / n_moves
        moves = shrinkage.shrink_moves(fast, slow, states.grid, leaving_error=leaving_error)
        shrinkage.follow(moves.mass, states.grid)
        if view.flags is None:
            entering, quitting = shrinkage.shrink_endpoints(enter, quit_, totals)
        else:  # only those who start or stop were asked where; how many did is known
            entering, quitting = shrinkage.shrink_endpoints(enter, quit_, np.ones(2))
            n_quitting = view.flags.ages_of_quitters.size
            n_states = max(view.size + n_quitting, 1)
            entering *= view.flags.n_entering / n_states / entering.sum()
            quitting *= n_quitting / n_states / quitting.sum()
        ending = entering.sum() + quitting.sum()
        moving = max(1.0 - ending, _LEAST_MOVING)
        if moving == _LEAST_MOVING:  # noise of few reports; all shares must still sum to 1
            entering, quitting = (part * ((1.0 - moving) / ending) for part in (entering, quitting))
        mass = moving * moves.mass[states.grid.neighbour_table >= 0]
        return np.concatenate([mass, entering, quitting]), moves.mass_variance


def _balanced(reading: Reading, whole: float, states: StateSpace) -> Reading:
    """Spread the difference to a known sum evenly over a table of moves: least squares."""
    table, variance = reading
    near = states.move_index >= 0
    return table + near * ((whole - table.sum()) / states.n_moves), variance


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


def _scaled(reading: Reading, factor: float) -> Reading:
    """Return a reading rescaled to shares of a larger whole."""
    return reading[0] * factor, reading[1] * factor**2
