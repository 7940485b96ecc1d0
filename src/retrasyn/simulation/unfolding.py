"""A synthesis made one timestamp at a time, for those who want to look on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from retrasyn.data.trajectories import Trajectories
from retrasyn.messages import Release
from retrasyn.oracles.registry import OracleWish
from retrasyn.privacy.receipt import Receipt
from retrasyn.simulation.plan import Plan
from retrasyn.simulation.population import Recording
from retrasyn.simulation.run import set_up
from retrasyn.simulation.simulation import Simulation
from retrasyn.space import Grid


@dataclass(slots=True)
class Unfolding:
    """The same releases as of `synthesize`, when they are asked for, and a receipt in between.

    >>> from retrasyn.simulation.city import CITY_BOX, demo_city
    >>> city = demo_city(n_users=50, n_timestamps=20, seed=3)
    >>> unfolding = Unfolding.of(city, Grid(CITY_BOX, 4), seed=3)
    >>> release = next(unfolding.releases())
    >>> release.t, unfolding.receipt().last_t
    (0, 0)
    """

    plan: Plan
    simulation: Simulation
    recording: Recording
    seed: int
    has_users: bool
    n_points_in: int = 0
    n_points_out: int = 0

    @classmethod
    def of(
        cls,
        real: Trajectories,
        grid: Grid,
        *,
        epsilon: float = 1.0,
        window: int = 20,
        seed: int = 0,
        oracle: OracleWish = "oue",
    ) -> Unfolding:
        """Set everything up for the first timestamp, with the default method."""
        plan, recording = Plan.of(oracle=oracle), Recording.of(real, grid)
        simulation = set_up(plan, real, recording, grid, epsilon=epsilon, window=window, seed=seed)
        return cls(plan, simulation, recording, seed, real.user_of_stream is not None)

    def releases(self) -> Iterator[Release]:
        """Make release after release, going on where the last one was."""
        for step in self.recording.steps(after=self.simulation.curator.state.t):
            release = self.simulation.step(step)
            self.n_points_in += step.cells.size
            self.n_points_out += release.ids.size
            yield release

    def receipt(self) -> Receipt:
        """State what was done so far."""
        return self.plan.receipt(
            self.simulation,
            seed=self.seed,
            has_users=self.has_users,
            box_inferred=False,
            enrols_on_sight=False,
            n_points_in=self.n_points_in,
            n_points_dropped=0,
            n_points_out=self.n_points_out,
        )
