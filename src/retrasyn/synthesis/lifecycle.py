"""Who is born and who ends (Sec. III-D, Eq. 8 and size adjustment)."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from retrasyn.mobility.model import MobilityModel
from retrasyn.reading import Reading
from retrasyn.space import Grid

_ALWAYS = np.float64(np.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the synthesiser is to do with the population at one timestamp."""

    quit_odds: npt.NDArray[np.float64]  # [n_cells], hazard / (1 - hazard), or the hazard
    against_moves: bool  # whether quitting competes with the moves, or is drawn by itself
    length_scale: float  # lambda
    target: int | None  # how many streams live afterwards; None leaves the number alone
    enter: npt.NDArray[np.float64]  # [n_cells], where the newborn begin
    surplus_weights: npt.NDArray[np.float64]  # [n_cells], positive
    surplus_by_newest: bool


@dataclass(slots=True)
class LifecycleMemory:
    """What a lifecycle remembers: masses released so far and the last entering distribution."""

    going_on: float = 0.0
    quitting: float = 0.0
    enter: npt.NDArray[np.float64] | None = None
    started: bool = False

    @property
    def released_length(self) -> float:
        """Lambda from what was released: mass that goes on over mass that quits, in 2..1000."""
        if self.quitting <= 0:
            return 1000.0
        return min(max(self.going_on / self.quitting, 2.0), 1000.0)


class Lifecycle(Protocol):
    """Plans births and ends."""

    def plan(
        self,
        model: MobilityModel,
        memory: LifecycleMemory,
        *,
        grid: Grid,
        reading: Reading,
        length_scale: float | None,
        size: int,
    ) -> Plan:
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
        reading: Reading,
        length_scale: float | None,
        size: int,
    ) -> Plan:
        """Quit by hazard and length, end a surplus by the quit share, begin by the enter share."""
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
        return Plan(
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

    def plan(
        self,
        model: MobilityModel,
        memory: LifecycleMemory,
        *,
        grid: Grid,
        reading: Reading,
        length_scale: float | None,
        size: int,
    ) -> Plan:
        """Begin once, uniformly; then only move."""
        del model, reading, length_scale
        begins = not memory.started and size > 0
        memory.started = memory.started or begins
        return Plan(
            quit_odds=np.zeros(grid.n_cells),
            against_moves=True,
            length_scale=1000.0,
            target=size if begins else None,
            enter=np.full(grid.n_cells, 1.0 / grid.n_cells),
            surplus_weights=np.ones(grid.n_cells),
            surplus_by_newest=False,
        )
