"""Births and ends of synthetic streams (Sec. III-D, Eq. 8 and size adjustment)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from retrasyn.arrays import with_prefix, without_prefix
from retrasyn.interpretation import Interpretation
from retrasyn.mobility.model import MobilityModel
from retrasyn.mobility.speeds import SpeedMemory
from retrasyn.roads.next_hops import NextHops
from retrasyn.space import Grid
from retrasyn.synthesis.paper_steps import CompetingPlan
from retrasyn.synthesis.points import FineMap
from retrasyn.synthesis.steered_steps import AGE_EDGES, OrderedPlan
from retrasyn.synthesis.trips import Pace, TripPlan

_ALWAYS = np.float64(np.inf)
_MOST_PARKED = 0.95


@dataclass(slots=True)
class LifecycleMemory:
    """What a lifecycle remembers: the mass released so far and the last entering distribution."""

    going_on: float = 0.0
    quitting: float = 0.0
    enter: npt.NDArray[np.float64] | None = None
    started: bool = False
    pull: npt.NDArray[np.float64] | None = None  # of steering, carried between timestamps
    pace: Pace | None = None  # of trips, the same

    def last_pull(self, grid: Grid) -> npt.NDArray[np.float64]:
        """Return the attraction of each cell at the last timestamp; uniform at first."""
        return np.ones(grid.n_cells) if self.pull is None else self.pull

    @property
    def released_length(self) -> float:
        """Lambda from past releases: continuing mass over quitting mass, within 2..1000."""
        if self.quitting <= 0:
            return 1000.0
        return min(max(self.going_on / self.quitting, 2.0), 1000.0)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the memory as plain arrays."""
        empty = np.empty(0)
        arrays = {} if self.pace is None else with_prefix("pace_", self.pace.to_arrays())
        return arrays | {
            "masses": np.array([self.going_on, self.quitting], np.float64),
            "started": np.array([self.started]),
            "pull": empty if self.pull is None else self.pull,
            "enter": empty if self.enter is None else self.enter,
        }

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore the memory from plain arrays."""
        self.going_on, self.quitting = arrays["masses"].tolist()
        self.started = bool(arrays["started"][0])
        self.pull = arrays["pull"].copy() if arrays["pull"].size else None
        self.enter = arrays["enter"] if arrays["enter"].size else None
        pace = without_prefix("pace_", arrays)
        self.pace = Pace.from_arrays(pace) if pace else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisContext:
    """Everything a lifecycle may use to plan a timestamp."""

    model: MobilityModel
    memory: LifecycleMemory
    grid: Grid
    interpretation: Interpretation
    length_scale: float  # lambda
    size: int  # wanted number of streams
    cell_counts: npt.NDArray[np.int64]  # [n_cells], synthetic streams before this timestamp
    mass: npt.NDArray[np.float64] | None = None  # [n_cells, 9], of all moves, sums to 1
    hazard: npt.NDArray[np.float64] | None = None  # of quitting by age
    ages_of_quitters: npt.NDArray[np.int64] | None = None  # of real users, where that is public
    roads: NextHops | None = None  # on which streams drive
    alarm: float = 0.0  # how surely people do other things than they used to, 0 to 1
    speeds: SpeedMemory | None = None  # answers about the lengths of steps
    gap: int = 1  # timestamps between two reports of one person
    fine_map: FineMap | None = None  # where in their cells people are, as far as it is believed

    @property
    def parked(self) -> float:
        """Share of people who hardly move, as their answers have it; 0 where nobody is asked."""
        if self.speeds is None or not self.speeds.answers[0, 0]:
            return 0.0
        n, farther = self.speeds.answers[0]
        return float(np.clip(1.0 - farther / n, 0.0, _MOST_PARKED))


class Lifecycle(Protocol):
    """Plans births and ends of streams."""

    @property
    def uses_length(self) -> bool:
        """Whether quitting depends on the length of a stream (Eq. 8)."""
        ...  # pragma: no cover - a protocol has no body

    def plan(self, context: SynthesisContext) -> CompetingPlan | OrderedPlan | TripPlan:
        """Return the plan for one timestamp."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(frozen=True, slots=True)
class EnterQuit:
    """Length-aware quitting, then births or ends until the size is right."""

    surplus_floor: float = 1e-8  # streams in cells where nobody quits end last
    uses_length: ClassVar[bool] = True

    def plan(self, context: SynthesisContext) -> CompetingPlan:
        """Plan quits by hazard and length, surplus ends by quit share, births by enter share."""
        model = context.model
        stay = 1.0 - model.quit_hazard
        against_moves = context.interpretation.quit == "renormalised"
        odds = np.divide(
            model.quit_hazard,
            stay,
            out=np.where(model.quit_hazard > 0, _ALWAYS, 0.0),
            where=stay > 0,
        )
        return CompetingPlan(
            move=model.move,
            quit_odds=odds if against_moves else model.quit_hazard,
            against_moves=against_moves,
            length_scale=context.length_scale,
            target=context.size,
            enter=_entering(context),
            surplus_weights=model.quit_share + self.surplus_floor,
            surplus_by_newest=context.interpretation.surplus == "newest-cell",
        )


@dataclass(frozen=True, slots=True)
class Immortal:
    """As many streams as users at the first non-empty timestamp, placed uniformly, never ending."""

    wanders: bool = False  # whether streams leave cells without known moves, to any neighbour
    uses_length: ClassVar[bool] = False

    def plan(self, context: SynthesisContext) -> CompetingPlan:
        """Plan births once, uniformly; after that only moves."""
        memory, n_cells = context.memory, context.grid.n_cells
        begins = not memory.started and context.size > 0
        memory.started = memory.started or begins
        return CompetingPlan(
            move=context.model.move,
            quit_odds=np.zeros(n_cells),
            against_moves=True,
            length_scale=1000.0,
            target=context.size if begins else None,
            enter=np.full(n_cells, 1.0 / n_cells),
            surplus_weights=np.ones(n_cells),
            surplus_by_newest=False,
            wanders=self.wanders,
        )


_LONGEST = 1000
_SMOOTHING = 0.002
_TILTS = (0.1, 10.0)


@dataclass(frozen=True, slots=True)
class QuitByLength:
    """The longer a stream, the likelier it ends (Eq. 8); quits are drawn before the moves."""

    uses_length: ClassVar[bool] = True

    def plan(self, context: SynthesisContext) -> OrderedPlan:
        """Plan quits by hazard and length, and surplus ends by the same weights."""
        return OrderedPlan(
            by_age=np.minimum(1.0, np.arange(1, _LONGEST + 1) / context.length_scale),
            by_cell=context.model.quit_hazard,
            keeps_sum=False,
            at_least=0,
            cap=1.0,
            ends=None,
            target=context.size,
            enter=_entering(context),
            mass=context.mass,
            pull=context.memory.last_pull(context.grid),
            fine_map=context.fine_map,
            parked=context.parked,
        )


@dataclass(frozen=True, slots=True)
class QuitByAge:
    """Quits by the age hazard estimated from users' answers, weighted by where users quit."""

    uses_length: ClassVar[bool] = False

    def plan(self, context: SynthesisContext) -> OrderedPlan:
        """Plan quits by age and cell, at least as many as the size requires."""
        if context.hazard is None:
            raise AssertionError("a method that quits by age must ask about ages")
        quit_share = context.model.quit_share
        n_before = int(context.cell_counts.sum())
        shares = context.cell_counts / max(n_before, 1)
        ratio = (quit_share + _SMOOTHING) / (shares + _SMOOTHING)
        known = quit_share.sum() > 0
        return OrderedPlan(
            by_age=context.hazard,
            by_cell=np.clip(ratio, *_TILTS) if known else np.ones(context.grid.n_cells),
            keeps_sum=True,
            at_least=n_before - context.size,
            cap=0.95,
            ends=None,
            target=context.size,
            enter=_entering(context),
            mass=context.mass,
            pull=context.memory.last_pull(context.grid),
            fine_map=context.fine_map,
            parked=context.parked,
        )


@dataclass(frozen=True, slots=True)
class QuitAsSeen:
    """As many streams end in each age bucket as real ones did: starting and stopping are public."""

    floor: float = 1e-6
    uses_length: ClassVar[bool] = False

    def plan(self, context: SynthesisContext) -> OrderedPlan:
        """Plan as many ends per age as real ones, chosen by the quit share of their cells."""
        if context.ages_of_quitters is None:
            raise AssertionError("ends can be copied only where presence is public")
        places = np.searchsorted(AGE_EDGES, context.ages_of_quitters, side="right") - 1
        return OrderedPlan(
            by_age=np.ones(1),
            by_cell=context.model.quit_share + self.floor,
            keeps_sum=False,
            at_least=0,
            cap=np.inf,
            ends=np.bincount(places, minlength=AGE_EDGES.size),
            target=context.size,
            enter=_entering(context),
            mass=context.mass,
            pull=context.memory.last_pull(context.grid),
            fine_map=context.fine_map,
            parked=context.parked,
        )


@dataclass(frozen=True, slots=True)
class Trips:
    """Streams drive on public roads and end at their goals; the number of new ones makes up."""

    uses_length: ClassVar[bool] = False

    def plan(self, context: SynthesisContext) -> TripPlan:
        """Plan where trips begin and end, and how fast they go."""
        roads, memory, table = context.roads, context.memory, context.grid.neighbour_table
        if context.hazard is None or roads is None:
            raise AssertionError("trips need roads, and answers about ages")
        flow = None
        if context.mass is not None:
            near = table >= 0
            flow = np.bincount(table[near], context.mass[near], context.grid.n_cells).astype(float)
        # Trips gather on large roads; they begin and end more evenly along all of them.
        ends = np.sqrt(_entering(context) * roads.cell_weights)
        return TripPlan(
            roads=roads,
            target=context.size,
            flow=roads.shares_on(roads.drivable, flow),
            ends=roads.shares_on(roads.cell_weights > 0, ends),
            hazard=context.hazard,
            alarm=context.alarm,
            speeds=context.speeds,
            gap=context.gap,
            pace=memory.pace or Pace.before_any_answer(roads, context.grid, context.speeds),
        )


def _entering(context: SynthesisContext) -> npt.NDArray[np.float64]:
    """Return where new streams begin: the last known distribution, uniform before any."""
    memory, n_cells = context.memory, context.grid.n_cells
    if context.model.enter.sum() > 0:
        memory.enter = context.model.enter
    memory.started = True
    return np.full(n_cells, 1.0 / n_cells) if memory.enter is None else memory.enter
