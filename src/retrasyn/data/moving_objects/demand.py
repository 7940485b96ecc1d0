"""Demand: starts, destinations and birth times of trips.

Every draw is addressed by (seed, purpose, object number), so it depends on nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrasyn.randomness.kernels import words_at
from retrasyn.randomness.words import address
from retrasyn.roads.network import RoadNetwork

if TYPE_CHECKING:
    import numpy.typing as npt

TRIP_SPREAD = 0.13
"""Scale of the half-normal trip length distribution, relative to map width plus height."""
N_CANDIDATES = 8
"""Destinations drawn per trip; the one closest to the intended trip length is taken."""
_MORNING, _EVENING = 8 / 24, 17.5 / 24  # of a day
_TIDE_WIDTH = 1.25 / 24
_TIDE_HEIGHT = 5.0  # peak of a rush hour relative to all-day demand
_ELSEWHERE_WIDTH = 0.05  # of the extent


def uniforms(seed: int, purpose: str, objects: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return a uniform number in [0, 1) for every object."""
    key = np.uint64(address(seed, 0, f"generate/{purpose}"))
    words = words_at(key, objects.astype(np.uint64)) >> np.uint64(11)
    return words.astype(np.float64) * 2.0**-53


def count_births(
    *, n_objects: int, n_new: int, n_steps: int, day: int | None
) -> npt.NDArray[np.int64]:
    """Return the number of objects that appear at every step: [n_steps]."""
    rate = np.ones(n_steps)
    if day is not None:
        total = tides(np.arange(day), day).sum(axis=0)  # [day]
        rate = (total / total.mean())[np.arange(n_steps) % day]
    rate[0] = 0.0
    births = np.diff(np.floor(n_new * np.cumsum(rate) + 0.5), prepend=0.0).astype(np.int64)
    births[0] = n_objects
    return births


def tides(t: npt.NDArray[np.int64], day: int) -> npt.NDArray[np.float64]:
    """Return the strength of all-day, morning and evening demand: [3, n]."""
    hour = t % day / day
    peaks = [
        _TIDE_HEIGHT * np.exp(-0.5 * ((hour - peak) / _TIDE_WIDTH) ** 2)
        for peak in (_MORNING, _EVENING)
    ]
    return np.stack([np.ones(t.size), *peaks])


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """Cumulative node distributions, one row per map: everywhere, homes, works, elsewhere."""

    network: RoadNetwork
    seed: int
    maps: npt.NDArray[np.float64]  # [4, n_nodes]

    @classmethod
    def over(cls, network: RoadNetwork, *, seed: int) -> Demand:
        """Compute the four maps of a network.

        Everywhere: uniform over nodes, so that traffic follows the road network. Works cluster in
        the centre, homes surround them. Elsewhere: one area far from the centre, set by the seed.
        """
        x, y = network.x, network.y
        squared = (x - x.mean()) ** 2 + (y - y.mean()) ** 2
        radius = squared / squared.mean()  # [n_nodes], squared, 1 on average
        works = np.exp(-4 * radius)
        homes = 1 - np.exp(-radius)
        outer = np.argsort(radius, kind="stable")[network.n_nodes // 2 :]
        place = outer[int(uniforms(seed, "elsewhere", np.zeros(1, np.int64))[0] * outer.size)]
        away = np.hypot(x - x[place], y - y[place]) / (_ELSEWHERE_WIDTH * network.extent)
        weights = np.stack([np.ones(x.size), homes + 1e-9, works + 1e-9, np.exp(-0.5 * away**2)])
        cumulated = np.cumsum(weights, axis=1)
        return cls(network, seed, cumulated / cumulated[:, -1:])

    def starts_and_goals(
        self, objects: npt.NDArray[np.int64], born: npt.NDArray[np.int64], day: int | None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Draw the start and destination of every object, given the step at which it appears."""
        start_map = goal_map = np.zeros(objects.size, np.int64)
        if day is not None:
            strength = tides(born, day)
            share = np.cumsum(strength, axis=0) / strength.sum(axis=0)  # [3, n]
            kind = (uniforms(self.seed, "kind", objects) >= share[:2]).sum(axis=0)
            start_map, goal_map = kind, np.array([0, 2, 1])[kind]
        start = self._pick(start_map, uniforms(self.seed, "start", objects))
        return start, self._goals(objects, start, goal_map)

    def elsewhere(
        self, objects: npt.NDArray[np.int64], start: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Draw destinations from the map `elsewhere`, at any distance."""
        drawn = uniforms(self.seed, "goal elsewhere", objects)
        return self._other_than(start, self._pick(np.full(objects.size, 3), drawn))

    def _goals(
        self,
        objects: npt.NDArray[np.int64],
        start: npt.NDArray[np.int64],
        goal_map: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.int64]:
        """Draw destinations whose distance follows the trip length distribution."""
        x, y = self.network.x, self.network.y
        radius = np.sqrt(-2 * np.log(1 - uniforms(self.seed, "length", objects)))
        turn = uniforms(self.seed, "length turn", objects)
        wanted = TRIP_SPREAD * self.network.extent * radius * np.abs(np.cos(2 * np.pi * turn))
        goal = start.copy()
        misfit = np.full(objects.size, np.inf)
        for candidate in range(N_CANDIDATES):
            other = self._pick(goal_map, uniforms(self.seed, f"goal {candidate}", objects))
            off = np.abs(np.hypot(x[other] - x[start], y[other] - y[start]) - wanted)
            better = (off < misfit) & (other != start)
            goal[better] = other[better]
            misfit[better] = off[better]
        return self._other_than(start, goal)

    def _pick(
        self, which: npt.NDArray[np.int64], drawn: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int64]:
        """Return the node at every quantile in [0, 1) of the map `which` selects."""
        node = np.empty(which.size, np.int64)
        for number, cumulated in enumerate(self.maps):
            rows = which == number
            node[rows] = np.searchsorted(cumulated, drawn[rows], side="right")
        return np.minimum(node, self.network.n_nodes - 1)

    def _other_than(
        self, start: npt.NDArray[np.int64], goal: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Replace a destination that equals the start by the next node."""
        return np.where(goal == start, (start + 1) % self.network.n_nodes, goal)
