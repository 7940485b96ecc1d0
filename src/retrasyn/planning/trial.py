"""Simulates one run in a built-in city and measures its errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from retrasyn.curator import Curator
from retrasyn.data.trajectories import Trajectories
from retrasyn.mechanisms.base import drive
from retrasyn.messages import Aggregate, Ask, Estimate, Flags, Grant, Release, Roster
from retrasyn.metrics.density import density_errors
from retrasyn.metrics.divergence import mean_known
from retrasyn.metrics.pair import Pair
from retrasyn.metrics.transition import transition_errors
from retrasyn.oracles.registry import oracle_for
from retrasyn.planning.closed_forms import ENROLLED
from retrasyn.privacy.selection import can_answer
from retrasyn.randomness.kernels import words_at
from retrasyn.randomness.words import address
from retrasyn.run_settings import RunSettings
from retrasyn.simulation.city import DAY, drive_through_city
from retrasyn.simulation.population import SimulatedDevices, Step
from retrasyn.simulation.report_sources import count_states
from retrasyn.simulation.run import SimulatedRun
from retrasyn.sinks.collected import Collected
from retrasyn.space import StateSpace

N_TIMESTAMPS = 4 * DAY
"""Default length of the simulated stream."""
_N_NEW = 200  # per timestamp; about 5,000 people are on their way at a time
_N_FIRST = 2_000


@dataclass(frozen=True, slots=True)
class City:
    """The trips of simulated people, each of whom stands for `weight` people."""

    name: str
    trips: Trajectories
    weight: float = 1.0

    @property
    def n_active(self) -> float:
        """Simulated people at a time, on average."""
        return self.trips.n_points / (self.trips.last_t - self.trips.first_t + 1)

    @property
    def drivers(self) -> npt.NDArray[np.int64]:
        """The person who makes each trip: [n_streams]."""
        assert self.trips.user_of_stream is not None  # noqa: S101 - the cities here name them
        return self.trips.user_of_stream

    def of_size(self, n_users: int) -> City:
        """Return the city with `n_users` people at a time, by thinning it or raising the weight."""
        if n_users >= self.n_active:
            return dataclasses.replace(self, weight=n_users / self.n_active)
        return dataclasses.replace(self, trips=self._thinned(n_users / self.n_active))

    def _thinned(self, share: float) -> Trajectories:
        """Keep a share of the people (at least one), with all their trips."""
        trips, drivers = self.trips, self.drivers
        n_people = int(drivers.max()) + 1
        words = words_at(np.uint64(address(0, 0, "thin")), np.arange(n_people, dtype=np.uint64))
        kept = np.zeros(n_people, np.bool_)
        kept[np.argsort(words, kind="stable")[: max(1, round(share * n_people))]] = True
        streams = kept[drivers]  # [n_streams]
        rows = np.repeat(streams, trips.lengths)  # [n_points]
        lengths = trips.lengths[streams]
        return Trajectories(
            trips.stream_ids[streams],
            trips.begins[streams],
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            trips.x[rows],
            trips.y[rows],
            drivers[streams],
        )


def built_in_cities(*, n_timestamps: int = N_TIMESTAMPS, seed: int = 0) -> list[City]:
    """Return the city at rest and the city with rush hours.

    >>> [city.name for city in built_in_cities(n_timestamps=5)]
    ['at rest', 'rush hours']
    """
    cities = []
    for name, day in (("at rest", None), ("rush hours", DAY)):
        trips = drive_through_city(
            n_first=_N_FIRST,
            n_new=_N_NEW,
            n_users=ENROLLED * 25 * _N_NEW,  # a trip takes about 25 timestamps
            n_timestamps=n_timestamps,
            day=day,
            seed=seed,
        )
        cities.append(City(name, trips))
    return cities


@dataclass(slots=True)
class Crowd:
    """A curator and weighted simulated devices, stepped together."""

    curator: Curator
    population: SimulatedDevices
    weight: float  # people each simulated one stands for, at least 1
    n_reports: int = 0  # of the whole weighted crowd, so far

    def step(self, step: Step) -> Release:
        """Run one timestamp."""
        curator, population = self.curator, self.population
        population.observe(step)
        roster = population.roster()
        granted: list[Grant] = []

        def answer(ask: Ask) -> Estimate | None:
            grant = curator.grant(ask, t=step.t, roster=roster)
            if grant.reporters.size == 0:
                return None
            granted.append(grant)
            return curator.estimate(ask, grant, self._collect(grant, roster, ask.lane))

        flags = None
        if curator.method.presence == "flags":
            flags = Flags(
                n_entering=population.n_entering, ages_of_quitters=population.ages_of_quitters
            )
        n_enrolled = round(self.weight * roster.keys.size)
        dialogue = curator.begin(step.t, size=population.size, n_enrolled=n_enrolled, flags=flags)
        outcome = drive(dialogue, answer)
        if outcome.size is not None:  # presence was estimated, for the whole crowd
            outcome = dataclasses.replace(outcome, size=round(outcome.size / self.weight))
        return curator.end(step.t, outcome, size=population.size, granted=granted, flags=flags)

    def _collect(self, grant: Grant, roster: Roster, lane: str) -> Aggregate:
        """Draw the sum of all reports of the whole crowd."""
        key = address(self.curator.seed, grant.t, f"noise/{lane}", n_bytes=16)
        generator = np.random.Generator(np.random.Philox(key=key))
        n = round(self.weight * grant.reporters.size)
        true = self._true_counts(grant, roster, n, generator)
        self.n_reports += n
        return oracle_for(grant).draw_counts(true, n, generator=generator)

    def _true_counts(
        self, grant: Grant, roster: Roster, n: int, generator: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Return how many of n reporters hold each answer.

        Few simulated reporters stand for many people. Answers are therefore drawn from everyone who
        could have been asked: otherwise the sum would carry the sampling noise of the few.
        """
        if self.weight == 1 or grant.reporters.size == roster.keys.size:
            counts = count_states(self.population.answers_to(grant), grant.n_answers)
            scaled: npt.NDArray[np.int64] = np.rint(self.weight * counts).astype(np.int64)
            return np.minimum(scaled, n)
        able = roster.keys[can_answer(roster, grant.question)]
        answers = self.population.answers_to(dataclasses.replace(grant, reporters=able))
        shares = np.bincount(answers + 1, minlength=grant.n_answers + 1) / answers.size
        return generator.multinomial(n, shares)[1:]


Tick = Callable[[], None]
"""Called after every simulated timestamp; may raise to stop."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The results of one trial."""

    density_error: float
    transition_error: float
    n_reports: float  # of the whole crowd, per timestamp


def run_trial(city: City, settings: RunSettings, *, tick: Tick) -> Trial:
    """Run a method over a city and compare its releases with the truth."""
    grid, run = settings.grid, SimulatedRun.of(city.trips, settings)
    simulation, recording = run.simulation, run.recording
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
    """Return the error with the sampling error of a small simulated crowd removed.

    Sampling n points from the right distribution over C outcomes gives a mean divergence of
    (C - 1) / 8n. The simulation has n people, the real campaign `weight` times as many. At most
    half of the error is attributed to this.
    """
    own = (n_outcomes - 1) / (8.0 * city.n_active)
    return max(error - own * (1.0 - 1.0 / city.weight), 0.5 * error)
