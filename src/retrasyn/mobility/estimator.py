"""The estimator of `steered`: temporal filters and spatial shrinkage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.mobility import kernels

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from retrasyn.messages import Estimate
    from retrasyn.space import Grid, StateSpace


FACTORS = np.array([0.0, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0])  # [n_factors]
STAY, MOVE, ENTER, QUIT = range(4)
N_GROUPS = 4
_SHARED = 0.01  # share of trust spread evenly at each update, to adapt quickly to changes


def groups_of(states: StateSpace) -> npt.NDArray[np.int64]:
    """Return the group of every state: [n_states]."""
    moves = np.where(states.origins == states.destinations, STAY, MOVE)
    n_cells = states.grid.n_cells if states.endpoints else 0
    return np.concatenate([moves, np.full(n_cells, ENTER), np.full(n_cells, QUIT)])


@dataclass(slots=True)
class FilterBank:
    """Exponentially weighted sums of a stratum's estimates, one per forgetting factor."""

    groups: npt.NDArray[np.int64]  # [n_states]
    sums: npt.NDArray[np.float64]  # [n_factors, n_states]
    weights: npt.NDArray[np.float64]  # [n_factors], effective number of reports
    trust: npt.NDArray[np.float64]  # [n_factors, n_groups], by prediction accuracy
    variance: float = 0.0  # of an estimate from one report; 0 before the first

    @classmethod
    def empty(cls, groups: npt.NDArray[np.int64]) -> FilterBank:
        """Return a filter bank without reports."""
        n = FACTORS.size
        return cls(groups, np.zeros((n, groups.size)), np.zeros(n), np.full((n, N_GROUPS), 1 / n))

    def update(self, estimate: Estimate) -> None:
        """Score every factor's prediction of an estimate, then add the estimate to the sums."""
        n, y = estimate.n, estimate.frequencies
        self.variance = estimate.variance * n
        if self.weights[-1] > 0:  # all factors have a past, or none has
            errors = n * (y - self.sums / self.weights[:, None]) ** 2  # [n_factors, n_states]
            for group in range(N_GROUPS):
                self._judge(group, errors[:, self.groups == group].sum(axis=1))
        self.sums *= FACTORS[:, None]
        self.sums += n * y
        self.weights *= FACTORS
        self.weights += n

    def _judge(self, group: int, losses: npt.NDArray[np.float64]) -> None:
        """Shift a group's trust to the factors that predicted best; each keeps a little."""
        likelihood = np.exp(-(losses - losses.min()) / (2.0 * self.variance))
        trust = self.trust[:, group] * likelihood
        self.trust[:, group] = (1 - _SHARED) * trust / trust.sum() + _SHARED / trust.size

    @property
    def started(self) -> bool:
        """Whether there has been any report."""
        return bool(self.weights[-1] > 0)

    def read(self, group: int) -> tuple[npt.NDArray[np.float64], float]:
        """Return the frequencies of all states and their variance, with a group's trust."""
        trust = self.trust[:, group]
        return (trust / self.weights) @ self.sums, self.variance / float(trust @ self.weights)

    def read_all_time(self) -> tuple[npt.NDArray[np.float64], float]:
        """Return the mean over all reports ever made, and its variance."""
        return self.sums[-1] / self.weights[-1], self.variance / float(self.weights[-1])

    def copied(self) -> FilterBank:
        """Return an independent copy."""
        return FilterBank(
            self.groups, self.sums.copy(), self.weights.copy(), self.trust.copy(), self.variance
        )

    def to_arrays(self) -> dict[str, npt.NDArray[np.float64]]:
        """Return the complete state as plain arrays."""
        return {
            "sums": self.sums,
            "weights": self.weights,
            "trust": self.trust,
            "variance": np.array([self.variance]),
        }

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[np.float64]]) -> None:
        """Restore the complete state from plain arrays."""
        self.sums, self.weights = arrays["sums"].copy(), arrays["weights"].copy()
        self.trust, self.variance = arrays["trust"].copy(), float(arrays["variance"][0])


N_MOVE_PRIORS = 5
_ROUNDS = 25
_WARM_ROUNDS = 10  # enough if EM continues from the previous timestamp
_KEPT = 0.8  # share of the previous prior; the rest is uniform, so that lost mass can return
_SLOW_DENSITY = 0.98
_LEAST_TOTAL = 1e-3
_MOST_RATIO = 8.0


@dataclass(frozen=True, slots=True)
class Moves:
    """Estimated transition kernel and density of movers, with variances."""

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
    """The slow density, and the priors from which EM starts."""

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
        """Estimate moves from a fast and a slow filter: frequencies [n_cells, 9] and variance."""
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
        """Update the slow density with a timestamp's moves: half origins, half destinations."""
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
        """Return the enter and quit masses per cell, shrunk towards the slow density.

        `totals` are the shares of entering and quitting among all states if known from elsewhere;
        otherwise they are fitted.
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
