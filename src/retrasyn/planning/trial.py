"""One simulated run: a method in a city on a grid, and how far off it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from retrasyn.metrics.density import density_errors
from retrasyn.metrics.divergence import mean_known
from retrasyn.metrics.pair import Pair
from retrasyn.metrics.transition import transition_errors
from retrasyn.planning.cities import City
from retrasyn.planning.crowd import Crowd
from retrasyn.simulation.city import CITY_BOX
from retrasyn.simulation.plan import Plan
from retrasyn.simulation.population import Identities
from retrasyn.simulation.recording import Recording
from retrasyn.sinks.collected import Collected
from retrasyn.space import Grid, StateSpace

Tick = Callable[[], None]
"""Called after every simulated timestamp; may raise to stop."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What one run showed."""

    density_error: float
    transition_error: float
    n_reports: float  # of the whole crowd, per timestamp


def run_trial(
    city: City, plan: Plan, *, side: int, epsilon: float, window: int, seed: int, tick: Tick
) -> Trial:
    """Run a method over a city and compare what it releases with the truth."""
    grid = Grid(CITY_BOX, side)
    recording = Recording.of(city.trips, grid)
    simulation = plan.simulation(grid, _identities(city), epsilon=epsilon, window=window, seed=seed)
    crowd = Crowd(simulation.curator, simulation.population, city.weight)
    collected = Collected()
    for step in recording.steps():
        collected.write(crowd.step(step))
        tick()
    pair = Pair.of(city.trips, collected.trajectories(), grid)
    return Trial(
        density_error=without_small_crowd(mean_known(density_errors(pair)), grid.n_cells, city),
        transition_error=without_small_crowd(
            mean_known(transition_errors(pair)), StateSpace(grid).n_moves, city
        ),
        n_reports=crowd.n_reports / recording.n_timestamps,
    )


def without_small_crowd(error: float, n_outcomes: int, city: City) -> float:
    """Return the error that the whole crowd would have had.

    Drawing n points from the right distribution over C outcomes makes a divergence of (C - 1) / 8n
    on average. What is simulated with n people is published with `weight` times as many. At most
    half of the error is taken for this.
    """
    own = (n_outcomes - 1) / (8.0 * city.n_active)
    return max(error - own * (1.0 - 1.0 / city.weight), 0.5 * error)


def _identities(city: City) -> Identities:
    """Number the people of a city."""
    people, keys = np.unique(city.drivers, return_inverse=True)
    identities = Identities.none()
    identities.add_keys(people.astype(np.uint64), np.arange(people.size))
    identities.add_streams(keys.astype(np.int64))
    return identities
