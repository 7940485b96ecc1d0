"""A curator and simulated devices, driven together and recounted independently."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from retrasyn.curator import Curator
from retrasyn.messages import Aggregate, Flags, Grant, Release
from retrasyn.oracles.choice import n_answers
from retrasyn.privacy.replay import Replay
from retrasyn.simulation.population import Identities, SimulatedDevices, Step
from retrasyn.simulation.report_sources import ReportSource, Truth


def replays_of(curator: Curator) -> tuple[Replay, Replay]:
    """Return two recounts of nothing: as declared, and per person and position."""
    furthest = curator.method.furthest_lookback(curator.gap)
    return Replay(curator.gap, furthest), Replay(curator.window + 1, furthest)


class AccountedRun(Protocol):
    """A curator and the two recounts of what was reported to it: what a receipt is made from."""

    curator: Curator
    declared: Replay
    personal: Replay

    @property
    def door_name(self) -> str:
        """How reports come."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def n_users(self) -> int:
        """Number of persons behind the devices."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(slots=True)
class Simulation:
    """Steps devices and curator through the same timestamps; every grant is replayed twice."""

    curator: Curator
    population: SimulatedDevices
    door: ReportSource
    declared: Replay = field(init=False)  # in the declared unit and ledger key
    personal: Replay = field(init=False)  # per person and position

    def __post_init__(self) -> None:
        self.declared, self.personal = replays_of(self.curator)

    @property
    def door_name(self) -> str:
        """How reports come."""
        return self.door.name

    @property
    def n_users(self) -> int:
        """Number of persons behind the devices."""
        return self.population.identities.n_persons

    @classmethod
    def of(cls, curator: Curator, identities: Identities, door: ReportSource) -> "Simulation":
        """Set devices up for a curator."""
        division = curator.method.division
        population = SimulatedDevices(
            identities=identities,
            states=curator.states,
            reading=curator.reading,
            gap=curator.gap,
            seed=curator.seed,
            everybody_reports=not division.splits_users,
            everybody_enrolled=curator.method.presence == "hidden",
        )
        return cls(curator, population, door if division.private else Truth())

    def step(self, step: Step) -> Release:
        """Run one timestamp."""
        self.population.observe(step)
        return self.curator.step(
            step.t,
            size=self.population.size,
            roster=self.population.roster(),
            collect=self._collect,
            flags=Flags(
                n_entering=self.population.n_entering,
                ages_of_quitters=self.population.ages_of_quitters,
            ),
        )

    def _collect(self, grant: Grant, lane: str) -> Aggregate:
        """Bring the reports of a grant, and tell the replays who reported what."""
        if grant.private:
            lookback = grant.question.lookback
            persons = self.population.persons_of(grant)
            self.declared.observe(grant.t, grant.epsilon, grant.reporters, lookback)
            self.personal.observe(grant.t, grant.epsilon, persons, lookback)
        return self.door.collect(
            grant,
            self.population.answers_to(grant),
            self.population.identities.addresses[grant.reporters].astype(np.uint64),
            n_states=n_answers(grant.question, self.curator.states),
            lane=lane,
        )
