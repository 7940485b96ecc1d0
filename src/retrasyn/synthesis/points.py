"""Where in its cell a stream is: by the density around it or, where there is one, by a map."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from retrasyn.randomness.kernels import words_at
from retrasyn.synthesis import point_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.space import Grid
    from retrasyn.synthesis.shard import StepInputs

_LEAST_DENSITY = 1e-4
_TRIES = 8  # for the first point of a stream; the last one stands
_CHOICES, _CHOICES_BY_MAP = 7, 3  # of places in a new cell, of which the nearest is taken
_FINEST = 48  # squares of a map along each side of the box, at least


class PointLaw(Protocol):
    """Where new streams begin in their cells, and how all others go on, in cell widths."""

    def step(
        self,
        ids: npt.NDArray[np.int64],
        before: npt.NDArray[np.uint16],
        after: npt.NDArray[np.uint16],
        x: npt.NDArray[np.float64],
        y: npt.NDArray[np.float64],
    ) -> None:
        """Move the points of streams from one cell to the next, in place."""
        ...  # pragma: no cover - a protocol has no body

    def place(
        self,
        ids: npt.NDArray[np.int64],
        cells: npt.NDArray[np.uint16],
        x: npt.NDArray[np.float64],
        y: npt.NDArray[np.float64],
    ) -> None:
        """Write the first points of new streams."""
        ...  # pragma: no cover - a protocol has no body


@lru_cache(maxsize=1)
def angles() -> npt.NDArray[np.float64]:
    """Return cosine and sine of evenly spaced directions: [4096, 2]."""
    turn = (np.arange(point_kernels.ANGLES) + 0.5) * (2.0 * np.pi / point_kernels.ANGLES)
    return np.stack([np.cos(turn), np.sin(turn)], axis=1)


@lru_cache(maxsize=4)
def corners(side: int) -> npt.NDArray[np.float64]:
    """Return the lower left corner of every cell, in cell widths: [n_cells, 2]."""
    cells = np.arange(side * side)
    return np.stack([cells % side, cells // side], axis=1).astype(np.float64)


def log_density(grid: Grid, mass: npt.NDArray[np.float64] | None) -> npt.NDArray[np.float64]:
    """Return the surface of ln(arriving mass): [side + 1, side + 1, 4], flat if it is unknown.

    Between four neighbouring cell centres it is bilinear: the level at the first of them, the
    slopes by x and by y, and the twist. Beyond the outermost centres it does not change.
    """
    side = grid.side
    if mass is None:
        return np.zeros((side + 1, side + 1, 4))
    near = grid.neighbour_table >= 0
    arriving = np.bincount(grid.neighbour_table[near], mass[near], grid.n_cells)
    inside = np.clip(np.arange(-1, side + 1), 0, side - 1)  # the outermost cells once more
    levels = np.log(arriving + _LEAST_DENSITY).reshape(side, side)[np.ix_(inside, inside)]
    by_x, by_y = np.diff(levels, axis=1), np.diff(levels, axis=0)
    return np.stack([levels[:-1, :-1], by_x[:-1], by_y[:, :-1], np.diff(by_x, axis=0)], axis=2)


def _keys(step: StepInputs, purpose: str, n: int) -> npt.NDArray[np.uint64]:
    """Return n keys for draws of one purpose."""
    return words_at(np.uint64(step.key(purpose)), np.arange(n, dtype=np.uint64))


@dataclass(frozen=True, slots=True)
class ByDensity:
    """Points follow the density of the cells around: it is higher towards busy ones."""

    surface: npt.NDArray[np.float64]  # see log_density
    lengths: npt.NDArray[np.float64]  # [n_cells], of a step
    key: np.uint64
    newcomer_keys: npt.NDArray[np.uint64]
    newborn_keys: npt.NDArray[np.uint64]  # [n_tries, 2]

    @classmethod
    def of(
        cls,
        step: StepInputs,
        mass: npt.NDArray[np.float64] | None,
        lengths: npt.NDArray[np.float64],
    ) -> ByDensity:
        """Return the law of a timestamp."""
        tries = [_keys(step, name, _TRIES) for name in ("first point", "first point taken")]
        return cls(
            log_density(step.grid, mass),
            lengths,
            np.uint64(step.key("step")),
            _keys(step, "newcomer", _CHOICES),
            np.stack(tries, axis=1),
        )

    def step(
        self,
        ids: npt.NDArray[np.int64],
        before: npt.NDArray[np.uint16],
        after: npt.NDArray[np.uint16],
        x: npt.NDArray[np.float64],
        y: npt.NDArray[np.float64],
    ) -> None:
        """Move the points of streams from one cell to the next, in place."""
        point_kernels.step_by_density(
            ids,
            before,
            after,
            self.key,
            self.newcomer_keys,
            self.lengths,
            angles(),
            self.surface,
            corners(self.surface.shape[0] - 1),
            x,
            y,
        )

    def place(
        self,
        ids: npt.NDArray[np.int64],
        cells: npt.NDArray[np.uint16],
        x: npt.NDArray[np.float64],
        y: npt.NDArray[np.float64],
    ) -> None:
        """Write the first points of new streams."""
        point_kernels.place_by_density(ids, cells, self.newborn_keys, self.surface, x, y)


@dataclass(frozen=True, slots=True)
class FineMap:
    """A public map within the cells of a grid."""

    density: npt.NDArray[np.float64]  # [side * fine, side * fine]
    limits: npt.NDArray[np.uint64]  # [n_cells, fine * fine - 1], of 32-bit words by square

    @classmethod
    def of(cls, grid: Grid, raster: npt.NDArray[np.float64]) -> FineMap:
        """Resample a raster to squares of which every cell has a whole number."""
        side, fine = grid.side, -(-_FINEST // grid.side)
        centres = (np.arange(side * fine) + 0.5) / (side * fine)
        rows = np.int64(centres * raster.shape[0])
        density = raster[np.ix_(rows, rows)]
        squares = density.reshape(side, fine, side, fine).swapaxes(1, 2)
        ends = np.cumsum(squares.reshape(grid.n_cells, -1), axis=1)
        limits = ends[:, :-1] / ends[:, -1:] * 2.0**32
        return cls(density, limits.astype(np.uint64))


@dataclass(frozen=True, slots=True)
class ByMap:
    """Points are where a public map has people."""

    map: FineMap
    lengths: npt.NDArray[np.float64]  # [n_cells], of a step, about
    parked: float  # share of those that stay in their cell that do not move at all
    keys: npt.NDArray[np.uint64]
    newcomer_keys: npt.NDArray[np.uint64]
    newborn_key: np.uint64
    side: int

    @classmethod
    def of(
        cls, step: StepInputs, fine: FineMap, lengths: npt.NDArray[np.float64], parked: float
    ) -> ByMap:
        """Return the law of a timestamp."""
        return cls(
            fine,
            lengths,
            parked,
            _keys(step, "step", 3),
            _keys(step, "newcomer", _CHOICES_BY_MAP),
            np.uint64(step.key("first point")),
            step.grid.side,
        )

    def step(
        self,
        ids: npt.NDArray[np.int64],
        before: npt.NDArray[np.uint16],
        after: npt.NDArray[np.uint16],
        x: npt.NDArray[np.float64],
        y: npt.NDArray[np.float64],
    ) -> None:
        """Move the points of streams from one cell to the next, in place."""
        point_kernels.step_by_map(
            ids,
            before,
            after,
            self.keys,
            self.newcomer_keys,
            self.lengths,
            self.parked,
            angles(),
            self.map.limits,
            self.map.density,
            x,
            y,
        )

    def place(
        self,
        ids: npt.NDArray[np.int64],
        cells: npt.NDArray[np.uint16],
        x: npt.NDArray[np.float64],
        y: npt.NDArray[np.float64],
    ) -> None:
        """Write the first points of new streams."""
        point_kernels.place_by_map(ids, cells, self.newborn_key, self.side, self.map.limits, x, y)
