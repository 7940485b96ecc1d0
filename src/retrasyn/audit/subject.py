"""The subject of an audit: one oracle, on the code of devices or of simulated devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from retrasyn.audit.laws import Chances, Events, law_of
from retrasyn.oracles.base import Oracle
from retrasyn.oracles.registry import ReportMaker, find_oracle
from retrasyn.randomness.words import Words, system_bytes

Tick = Callable[[int], None]
"""Called with the number of reports just made."""
_CHUNK = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePath:
    """The code that devices run: one call of the shipped function per report."""

    report: ReportMaker
    words: Words = system_bytes

    def sample(
        self, state: int, n: int, *, oracle: Oracle, n_answers: int, tick: Tick
    ) -> npt.NDArray[np.uint8]:
        """Return n reports of one state: [n, size]."""
        made: list[bytes] = []
        for done in range(0, n, _CHUNK):
            now = min(_CHUNK, n - done)
            made += (
                self.report(state, n_answers, epsilon=oracle.epsilon, words=self.words)
                for _ in range(now)
            )
            tick(now)
        return np.frombuffer(b"".join(made), np.uint8).reshape(n, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The compiled code of simulated devices, with addressed words under fresh keys."""

    words: Words = system_bytes

    def sample(
        self, state: int, n: int, *, oracle: Oracle, n_answers: int, tick: Tick
    ) -> npt.NDArray[np.uint8]:
        """Return n reports of one state: [n, size]."""
        packed = oracle.perturb(
            np.full(n, state, np.int32),
            np.arange(n, dtype=np.uint64),
            key=int.from_bytes(self.words(8), "little"),
            n_answers=n_answers,
        )
        tick(n)
        return packed


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An oracle at one budget, and the code that makes its reports."""

    name: str
    epsilon: int
    n_answers: int
    path: DevicePath | Simulated

    @property
    def oracle(self) -> Oracle:
        """The oracle, as the curator uses it."""
        return find_oracle(self.name).at(self.epsilon, self.n_answers)

    def sample(self, state: int, n: int, tick: Tick) -> npt.NDArray[np.uint8]:
        """Return n reports of one state: [n, size]."""
        return self.path.sample(state, n, oracle=self.oracle, n_answers=self.n_answers, tick=tick)

    def events(self, packed: npt.NDArray[np.uint8]) -> Events:
        """Return the events that happened in each report, support first: [n, n_events]."""
        return law_of(self.name).events(packed, self.oracle, self.n_answers)

    @property
    def n_independent(self) -> int:
        """How many of the leading events are independent of one another."""
        return law_of(self.name).n_independent(self.n_answers)

    def chances(self, state: int) -> Chances:
        """Return the probability of every event in a report of a state: [n_events]."""
        return law_of(self.name).chances(state, self.oracle, self.n_answers)
