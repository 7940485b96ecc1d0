"""How long people stay: Weibull laws, told apart by noisy answers about ages (of `steered`)."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.mobility import kernels

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from retrasyn.messages import Estimate


OLDEST = 400
_SCALES = np.geomspace(2.0, 300.0, 22)
_SHAPES = np.array([0.4, 0.6, 0.8, 1.0, 1.3, 1.7, 2.2, 3.0])
_LEAST, _MOST = 1e-4, 0.9
_TOTALS_MEMORY = 0.98


@lru_cache(maxsize=1)
def expert_laws() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return scale and shape [n_experts, 2] and hazard by age [n_experts, 400] of all experts."""
    laws = np.array([(scale, shape) for scale in _SCALES for shape in _SHAPES])
    scale, shape = laws[:, :1], laws[:, 1:]
    ages = np.arange(OLDEST + 1)
    survival = -((ages / scale) ** shape)  # logarithm, [n_experts, 401]
    hazards = np.clip(-np.expm1(np.diff(survival, axis=1)), _LEAST, _MOST)
    return laws, hazards


@dataclass(slots=True)
class AgeMemory:
    """The age histogram of every expert, and the pooled answers so far."""

    thresholds: tuple[int, ...]
    histograms: npt.NDArray[np.float64] = field(init=False)  # [n_experts, 400]
    answers: npt.NDArray[np.float64] = field(init=False)  # [n_thresholds, 2]: how many, sum of bits
    expected: npt.NDArray[np.float64] = field(init=False)  # [n_experts, n_thresholds]
    totals: npt.NDArray[np.float64] = field(init=False)  # [2], smoothed; NaN before the second step
    started: bool = False
    variance: float = 1.0  # variance of one answer; unused before the first
    place: float | None = None  # of a replica, whose law is one of the experts, by their weights

    def __post_init__(self) -> None:
        n_experts = expert_laws()[0].shape[0]
        self.histograms = np.zeros((n_experts, OLDEST))
        self.answers = np.zeros((len(self.thresholds), 2))
        self.expected = np.zeros((n_experts, len(self.thresholds)))
        self.totals = np.full(2, np.nan)

    def copied(self) -> AgeMemory:
        """Return an independent copy."""
        twin = copy.copy(self)
        for name in ("histograms", "answers", "expected", "totals"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def step(self, size: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Advance every expert by one timestamp; return how many enter and quit: [n_experts]."""
        hazards = expert_laws()[1]
        entering, quitting = np.empty(hazards.shape[0]), np.empty(hazards.shape[0])
        kernels.step_ages(self.histograms, hazards, float(size), entering, quitting)
        return entering, quitting

    def pool(self, which: int, estimate: Estimate, size: int) -> None:
        """Add the answers about one threshold, and each expert's expectation of them."""
        self.variance = estimate.variance * estimate.n
        self.answers[which] += estimate.n, estimate.n * estimate.frequencies[0]
        older = self.histograms[:, self.thresholds[which] :].sum(axis=1) / max(size, 1)
        self.expected[:, which] += estimate.n * older

    def weights(self, window: int) -> npt.NDArray[np.float64]:
        """Return the weight of every expert: [n_experts]."""
        laws = expert_laws()[0]
        score = np.log(laws[:, 0] / window) ** 2 + (np.log(laws[:, 1] / 1.2) / 0.6) ** 2
        known = self.answers[:, 0] > 0
        if known.any():
            n, bits = self.answers[known].T
            score += ((bits - self.expected[:, known]) ** 2 / n).sum(axis=1) / self.variance
        weights = np.exp(-(score - score.min()) / 2.0)
        whole: npt.NDArray[np.float64] = weights / weights.sum()
        if self.place is not None:
            chosen = np.searchsorted(np.cumsum(whole)[:-1], self.place)
            whole = (np.arange(whole.size) == chosen).astype(np.float64)
        return whole

    def smooth(
        self,
        weights: npt.NDArray[np.float64],
        entering: npt.NDArray[np.float64],
        quitting: npt.NDArray[np.float64],
        size: int,
    ) -> npt.NDArray[np.float64] | None:
        """Return the shares of entering and quitting among all states; None at the first step."""
        if not self.started:
            self.started = size > 0  # the initial population enters at once, which is no rate
            return None
        states = np.maximum(size + quitting, 1e-300)
        now = np.array([weights @ (entering / states), weights @ (quitting / states)])
        if np.isnan(self.totals).any():
            self.totals = now
        else:
            self.totals = _TOTALS_MEMORY * self.totals + (1 - _TOTALS_MEMORY) * now
        return self.totals

    @staticmethod
    def hazard(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the mean hazard by age, from age 1 on: [400]."""
        mean: npt.NDArray[np.float64] = weights @ expert_laws()[1]
        return mean

    def to_arrays(self) -> dict[str, npt.NDArray[np.float64]]:
        """Return the complete state as plain arrays."""
        return {
            "histograms": self.histograms,
            "answers": self.answers,
            "expected": self.expected,
            "totals": self.totals,
            "rest": np.array([self.started, self.variance]),
        }

    def load_arrays(self, arrays: Mapping[str, npt.NDArray[np.float64]]) -> None:
        """Restore the complete state from plain arrays."""
        self.histograms, self.answers = arrays["histograms"].copy(), arrays["answers"].copy()
        self.expected, self.totals = arrays["expected"].copy(), arrays["totals"].copy()
        self.started, self.variance = bool(arrays["rest"][0]), float(arrays["rest"][1])
