"""Who is born and who ends (Sec. III-D, Eq. 8 and size adjustment)."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from retrasyn.interpretation import Interpretation
from retrasyn.mobility.model import MobilityModel
from retrasyn.space import Grid
from retrasyn.synthesis.paper_steps import CompetingPlan
from retrasyn.synthesis.steered_steps import AGE_EDGES, OrderedPlan

_ALWAYS = np.float64(np.inf)


@dataclass(slots=True)
class LifecycleMemory:
    """What a lifecycle remembers: masses released so far and the last entering distribution."""

    going_on: float = 0.0
    quitting: float = 0.0
    enter: npt.NDArray[np.float64] | None = None
    started: bool = False
    pull: npt.NDArray[np.float64] | None = None  # of steering, kept between timestamps

    def last_pull(self, grid: Grid) -> npt.NDArray[np.float64]:
        """Return how much each cell attracted at the last timestamp, all alike at first."""
        return np.ones(grid.n_cells) if self.pull is None else self.pull

    @property
    def released_length(self) -> float:
        """Lambda from what was released: mass that goes on over mass that quits, in 2..1000."""
        if self.quitting <= 0:
            return 1000.0
        return min(max(self.going_on / self.quitting, 2.0), 1000.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisContext:
    """What a lifecycle may look at besides the model."""

    cell_counts: npt.NDArray[np.int64]  # [n_cells], synthetic streams before this timestamp
    mass: npt.NDArray[np.float64] | None = None  # [n_cells, 9], of all moves, sums to 1
    hazard: npt.NDArray[np.float64] | None = None  # of quitting by age
    ages_of_quitters: npt.NDArray[np.int64] | None = None  # real ones, where that is public


class Lifecycle(Protocol):
    """Plans births and ends."""

    def plan(
        self,
        model: MobilityModel,
        memory: LifecycleMemory,
        *,
        grid: Grid,
        reading: Interpretation,
        length_scale: float | None,
        size: int,
        scene: SynthesisContext,
    ) -> CompetingPlan | OrderedPlan:
        """Return the plan of one timestamp."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(frozen=True, slots=True)
class EnterQuit:
    """Length-aware quitting, then births or ends until the size is right."""

    surplus_floor: float = 1e-8  # streams in cells nobody quits from go last

    def plan(
        self,
        model: MobilityModel,
        memory: LifecycleMemory,
        *,
        grid: Grid,
        reading: Interpretation,
        length_scale: float | None,
        size: int,
        scene: SynthesisContext | None = None,
    ) -> CompetingPlan:
        """Quit by hazard and length, end a surplus by the quit share, begin by the enter share."""
        del scene
        if model.enter.sum() > 0:
            memory.enter = model.enter
        memory.started = True
        uniform = np.full(grid.n_cells, 1.0 / grid.n_cells)
        stay = 1.0 - model.quit_hazard
        against_moves = reading.quit == "renormalised"
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
            length_scale=memory.released_length if length_scale is None else length_scale,
            target=size,
            enter=uniform if memory.enter is None else memory.enter,
            surplus_weights=model.quit_share + self.surplus_floor,
            surplus_by_newest=reading.surplus == "newest-cell",
        )


@dataclass(frozen=True, slots=True)
class Immortal:
    """As many streams as users at the first timestamp that has any, anywhere, for ever."""

    wanders: bool = False  # out of a cell nobody was seen to leave, to any neighbour

    def plan(
        self,
        model: MobilityModel,
        memory: LifecycleMemory,
        *,
        grid: Grid,
        reading: Interpretation,
        length_scale: float | None,
        size: int,
        scene: SynthesisContext | None = None,
    ) -> CompetingPlan:
        """Begin once, uniformly; then only move."""
        del reading, length_scale, scene
        begins = not memory.started and size > 0
        memory.started = memory.started or begins
        return CompetingPlan(
            move=model.move,
            quit_odds=np.zeros(grid.n_cells),
            against_moves=True,
            length_scale=1000.0,
            target=size if begins else None,
            enter=np.full(grid.n_cells, 1.0 / grid.n_cells),
            surplus_weights=np.ones(grid.n_cells),
            surplus_by_newest=False,
            wanders=self.wanders,
        )


_LONGEST = 1000
_SMOOTHING = 0.002
_TILTS = (0.1, 10.0)


@dataclass(frozen=True, slots=True)
class QuitByLength:
    """The longer a stream, the likelier its end (Eq. 8), before anybody moves."""

    def plan(
        self,
        model: MobilityModel,
        memory: LifecycleMemory,
        *,
        grid: Grid,
        reading: Interpretation,
        length_scale: float | None,
        size: int,
        scene: SynthesisContext,
    ) -> OrderedPlan:
        """Quit by hazard and length, end a surplus by the same weights."""
        del reading
        scale = memory.released_length if length_scale is None else length_scale
        return OrderedPlan(
            by_age=np.minimum(1.0, np.arange(1, _LONGEST + 1) / scale),
            by_cell=model.quit_hazard,
            keeps_sum=False,
            at_least=0,
            cap=1.0,
            ends=None,
            target=size,
            enter=_entering(model, memory, grid),
            mass=scene.mass,
            pull=memory.last_pull(grid),
        )


@dataclass(frozen=True, slots=True)
class QuitByAge:
    """The hazard by age that people's answers support, tilted to where they quit."""

    def plan(
        self,
        model: MobilityModel,
        memory: LifecycleMemory,
        *,
        grid: Grid,
        reading: Interpretation,
        length_scale: float | None,
        size: int,
        scene: SynthesisContext,
    ) -> OrderedPlan:
        """Quit by age and cell, but not fewer than the size demands."""
        del reading, length_scale
        if scene.hazard is None:
            raise AssertionError("a method that quits by age must ask about ages")
        n_before = int(scene.cell_counts.sum())
        shares = scene.cell_counts / max(n_before, 1)
        known = model.quit_share.sum() > 0
        ratio = (model.quit_share + _SMOOTHING) / (shares + _SMOOTHING)
        return OrderedPlan(
            by_age=scene.hazard,
            by_cell=np.clip(ratio, *_TILTS) if known else np.ones(grid.n_cells),
            keeps_sum=True,
            at_least=n_before - size,
            cap=0.95,
            ends=None,
            target=size,
            enter=_entering(model, memory, grid),
            mass=scene.mass,
            pull=memory.last_pull(grid),
        )


@dataclass(frozen=True, slots=True)
class QuitAsSeen:
    """As many end in each bucket of ages as real devices did: starting and stopping are public."""

    floor: float = 1e-6

    def plan(
        self,
        model: MobilityModel,
        memory: LifecycleMemory,
        *,
        grid: Grid,
        reading: Interpretation,
        length_scale: float | None,
        size: int,
        scene: SynthesisContext,
    ) -> OrderedPlan:
        """End as many as the real ones of each age, by the quit share of their cells."""
        del reading, length_scale
        if scene.ages_of_quitters is None:
            raise AssertionError("ends can be copied only where presence is public")
        places = np.searchsorted(AGE_EDGES, scene.ages_of_quitters, side="right") - 1
        return OrderedPlan(
            by_age=np.ones(1),
            by_cell=model.quit_share + self.floor,
            keeps_sum=False,
            at_least=0,
            cap=np.inf,
            ends=np.bincount(places, minlength=AGE_EDGES.size),
            target=size,
            enter=_entering(model, memory, grid),
            mass=scene.mass,
            pull=memory.last_pull(grid),
        )


def _entering(model: MobilityModel, memory: LifecycleMemory, grid: Grid) -> npt.NDArray[np.float64]:
    """Return where newborn streams begin: as last known, uniform before."""
    if model.enter.sum() > 0:
        memory.enter = model.enter
    memory.started = True
    return np.full(grid.n_cells, 1.0 / grid.n_cells) if memory.enter is None else memory.enter
