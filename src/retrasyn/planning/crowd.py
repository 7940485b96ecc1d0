"""Simulated devices of which each stands for many people.

The curator, its ledger and its synthetic streams see the simulated people. What they are sent is
the sum of as many reports as the whole crowd would have sent, so its noise is that of the whole
crowd: a thousand times as many people cost no more time.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from retrasyn.curator import Curator
from retrasyn.mechanisms.base import drive
from retrasyn.messages import Aggregate, Ask, Estimate, Flags, Grant, Release, Roster
from retrasyn.oracles.choice import n_answers, oracle_for
from retrasyn.privacy.selection import can_answer
from retrasyn.randomness.addresses import address
from retrasyn.simulation.doors import count_states
from retrasyn.simulation.population import Population
from retrasyn.simulation.recording import Step


@dataclass(slots=True)
class Crowd:
    """A curator and weighted devices, driven together."""

    curator: Curator
    population: Population
    weight: float  # people behind each simulated one, at least 1
    n_reports: int = 0  # of the whole crowd so far

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
            return curator.estimate(grant, self._collect(grant, roster, ask.lane))

        flags = None
        if curator.method.presence == "flags":
            flags = Flags(
                n_entering=population.n_entering, ages_of_quitters=population.ages_of_quitters
            )
        n_enrolled = round(self.weight * roster.keys.size)
        dialogue = curator.begin(step.t, size=population.size, n_enrolled=n_enrolled, flags=flags)
        outcome = drive(dialogue, answer)
        if outcome.size is not None:  # it was estimated, for the whole crowd
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

        Behind few simulated reporters stand many people. They are drawn from all who could have
        answered: else the sum would show the whims of the few.
        """
        n_states = n_answers(grant.question, self.curator.states)
        if self.weight == 1 or grant.reporters.size == roster.keys.size:
            counts = count_states(self.population.answers_to(grant), n_states)
            scaled: npt.NDArray[np.int64] = np.rint(self.weight * counts).astype(np.int64)
            return np.minimum(scaled, n)
        able = roster.keys[can_answer(roster, grant.question)]
        answers = self.population.answers_to(dataclasses.replace(grant, reporters=able))
        shares = np.bincount(answers + 1, minlength=n_states + 1) / answers.size
        return generator.multinomial(n, shares)[1:]
