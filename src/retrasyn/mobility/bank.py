"""A bank of filters: each state is remembered at nine speeds, and each group picks its own.

Forgetting fast follows change and keeps noise; forgetting slowly does the opposite. Every speed
predicts the next estimate from its past; groups of states (staying, moving, entering, quitting)
trust the speeds that predicted well lately. Nothing here costs privacy: estimates go in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from retrasyn.messages import Estimate
    from retrasyn.space import StateSpace

FACTORS = np.array([0.0, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0])  # [n_factors]
STAY, MOVE, ENTER, QUIT = range(4)
N_GROUPS = 4
_SHARED = 0.01  # of the trust is spread evenly each time, so that a change is noticed soon


def groups_of(states: StateSpace) -> npt.NDArray[np.int64]:
    """Return the group of every state: [n_states]."""
    moves = np.where(states.origins == states.destinations, STAY, MOVE)
    n_cells = states.grid.n_cells if states.endpoints else 0
    return np.concatenate([moves, np.full(n_cells, ENTER), np.full(n_cells, QUIT)])


@dataclass(slots=True)
class FilterBank:
    """Weighted sums of one stratum of states, which are reported together."""

    groups: npt.NDArray[np.int64]  # [n_states]
    sums: npt.NDArray[np.float64]  # [n_factors, n_states]
    weights: npt.NDArray[np.float64]  # [n_factors], reports remembered
    trust: npt.NDArray[np.float64]  # [n_factors, n_groups], by how well each speed predicted
    variance: float = 0.0  # of an estimate from one report; 0 before the first

    @classmethod
    def empty(cls, groups: npt.NDArray[np.int64]) -> FilterBank:
        """Return a bank without reports."""
        n = FACTORS.size
        return cls(groups, np.zeros((n, groups.size)), np.zeros(n), np.full((n, N_GROUPS), 1 / n))

    def update(self, estimate: Estimate) -> None:
        """Score every speed's prediction of an estimate, then take it in."""
        n, y = estimate.n, estimate.frequencies
        self.variance = estimate.variance * n
        if self.weights[-1] > 0:  # all speeds have a past, or none has
            errors = n * (y - self.sums / self.weights[:, None]) ** 2  # [n_factors, n_states]
            for group in range(N_GROUPS):
                self._judge(group, errors[:, self.groups == group].sum(axis=1))
        self.sums *= FACTORS[:, None]
        self.sums += n * y
        self.weights *= FACTORS
        self.weights += n

    def _judge(self, group: int, losses: npt.NDArray[np.float64]) -> None:
        """Move a group's trust to the speeds that predicted best; each keeps a little."""
        likelihood = np.exp(-(losses - losses.min()) / (2.0 * self.variance))
        trust = self.trust[:, group] * likelihood
        self.trust[:, group] = (1 - _SHARED) * trust / trust.sum() + _SHARED / trust.size

    @property
    def started(self) -> bool:
        """Whether anything was ever reported."""
        return bool(self.weights[-1] > 0)

    def read(self, group: int) -> tuple[npt.NDArray[np.float64], float]:
        """Return the frequencies of all states and their variance, at a group's speeds."""
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
        """Return everything as plain arrays."""
        return {
            "sums": self.sums,
            "weights": self.weights,
            "trust": self.trust,
            "variance": np.array([self.variance]),
        }

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[np.float64]]) -> None:
        """Take everything over from plain arrays."""
        self.sums, self.weights = arrays["sums"].copy(), arrays["weights"].copy()
        self.trust, self.variance = arrays["trust"].copy(), float(arrays["variance"][0])
