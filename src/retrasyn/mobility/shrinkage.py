"""Noisy frequencies drawn towards what they have in common (empirical Bayes)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.mobility import kernels

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrasyn.space import Grid


N_MOVE_PRIORS = 5
_ROUNDS = 25
_WARM_ROUNDS = 10  # enough where EM goes on from the timestamp before
_KEPT = 0.8  # how much of the prior before; the rest is uniform, or what is lost never returns
_SLOW_DENSITY = 0.98
_LEAST_TOTAL = 1e-3
_MOST_RATIO = 8.0


@dataclass(frozen=True, slots=True)
class Moves:
    """Where movers are and where they go."""

    kernel: npt.NDArray[np.float64]  # P, [n_cells, 9]; rows sum to 1
    kernel_variance: npt.NDArray[np.float64]  # [n_cells, 9]
    density: npt.NDArray[np.float64]  # o, [n_cells]; sums to 1
    density_variance: npt.NDArray[np.float64]  # [n_cells]

    @property
    def mass(self) -> npt.NDArray[np.float64]:
        """Share of every move among all: [n_cells, 9]."""
        return self.density[:, None] * self.kernel

    @property
    def mass_variance(self) -> npt.NDArray[np.float64]:
        """Variance of every move's share: [n_cells, 9]."""
        from_density = self.kernel**2 * self.density_variance[:, None]
        return from_density + self.density[:, None] ** 2 * self.kernel_variance


@dataclass(slots=True)
class ShrinkageMemory:
    """The slow density, and the priors EM begins with."""

    slow_density: npt.NDArray[np.float64] | None = None  # [n_cells], sums to 1
    priors: npt.NDArray[np.float64] = field(
        default_factory=lambda: np.full((N_MOVE_PRIORS, kernels.N_POINTS), 1 / kernels.N_POINTS)
    )

    def copied(self) -> ShrinkageMemory:
        """Return an independent copy."""
        return ShrinkageMemory(self.slow_density, self.priors.copy())

    def shrink_moves(
        self,
        fast: tuple[npt.NDArray[np.float64], float],
        slow: tuple[npt.NDArray[np.float64], float],
        grid: Grid,
        *,
        leaving_error: float = 0.0,
    ) -> Moves:
        """Estimate moves from a fast and a slow reading: frequencies [n_cells, 9], variance."""
        kernel, kernel_variance = np.empty((2, grid.n_cells, 9))
        density, variance = np.empty(grid.n_cells), np.empty(grid.n_cells)
        self.priors *= _KEPT
        self.priors += (1.0 - _KEPT) / kernels.N_POINTS
        kernels.shrink_moves(
            *fast,
            *slow,
            grid.neighbour_table,
            self.priors,
            _WARM_ROUNDS,
            leaving_error,
            kernel,
            kernel_variance,
            density,
            variance,
        )
        return Moves(kernel, kernel_variance, density, variance)

    def follow(self, mass: npt.NDArray[np.float64], grid: Grid) -> npt.NDArray[np.float64]:
        """Take a timestamp's moves into the slow density: half origins, half destinations."""
        near = grid.neighbour_table >= 0
        arrivals = np.bincount(grid.neighbour_table[near], mass[near], grid.n_cells)
        now: npt.NDArray[np.float64] = mass.sum(axis=1) + arrivals
        now /= now.sum()
        if self.slow_density is not None:
            now = _SLOW_DENSITY * self.slow_density + (1 - _SLOW_DENSITY) * now
            now /= now.sum()
        self.slow_density = now
        return now

    def shrink_endpoints(
        self,
        enter: tuple[npt.NDArray[np.float64], float],
        quit_: tuple[npt.NDArray[np.float64], float],
        totals: npt.NDArray[np.float64] | None,
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the masses of entering and quitting per cell, drawn towards the slow density.

        `totals` are the shares of entering and quitting among all states, if they are known from
        elsewhere; else they are fitted.
        """
        density = self.slow_density
        assert density is not None  # noqa: S101 - moves are shrunk first
        if totals is None:
            squares = density @ density
            totals = np.array([density @ enter[0], density @ quit_[0]]) / squares
        totals = np.maximum(totals, _LEAST_TOTAL)
        scales = 0.5 * totals + 0.5 * totals.mean()
        masses = []
        for (x, variance), scale in zip((enter, quit_), scales, strict=True):
            theta, spread = np.empty(x.size), np.empty(x.size)
            kernels.npmle(
                x / scale,
                density,
                np.full(x.size, variance / scale**2),
                _MOST_RATIO,
                np.full(kernels.N_POINTS, 1.0 / kernels.N_POINTS),
                _ROUNDS,
                theta,
                spread,
            )
            masses.append(scale * density * theta)
        return masses[0], masses[1]
