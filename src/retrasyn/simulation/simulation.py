"""A curator and simulated devices, driven together and recounted independently."""

from dataclasses import dataclass, field

import numpy as np

from retrasyn.curator import Curator
from retrasyn.messages import Aggregate, Grant, Release
from retrasyn.privacy.replay import Replay
from retrasyn.simulation.doors import Door, Truth
from retrasyn.simulation.population import Identities, Population
from retrasyn.simulation.recording import Step


@dataclass(slots=True)
class Simulation:
    """Steps devices and curator through the same timestamps; every grant is replayed twice."""

    curator: Curator
    population: Population
    door: Door
    declared: Replay = field(init=False)  # in the declared unit and ledger key
    personal: Replay = field(init=False)  # per person and position

    def __post_init__(self) -> None:
        self.declared = Replay(span=self.curator.gap)
        self.personal = Replay(span=self.curator.window + 1)

    @classmethod
    def of(cls, curator: Curator, identities: Identities, door: Door) -> "Simulation":
        """Set devices up for a curator."""
        division = curator.method.division
        population = Population(
            identities=identities,
            states=curator.states,
            reading=curator.reading,
            gap=curator.gap,
            seed=curator.seed,
            everybody_reports=division.name != "population",
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
        )

    def _collect(self, grant: Grant, lane: str) -> Aggregate:
        """Bring the reports of a grant, and tell the replays who reported what."""
        if grant.private:
            self.declared.observe(grant.t, grant.epsilon, grant.reporters)
            self.personal.observe(grant.t, grant.epsilon, self.population.persons_of(grant))
        return self.door.collect(
            grant,
            self.population.states_of(grant),
            self.population.identities.addresses[grant.reporters].astype(np.uint64),
            n_states=self.curator.states.n_states,
            lane=lane,
        )
