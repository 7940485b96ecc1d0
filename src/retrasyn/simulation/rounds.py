"""A curator fed with sums of real reports: by the live service, on recovery and in replays.

The same folded rounds give the same releases, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from retrasyn.curator import Curator
from retrasyn.mechanisms.base import drive
from retrasyn.messages import TRANSITION, Aggregate, Ask, Estimate, Flags, Grant, Question, Release
from retrasyn.privacy.replay import Replay
from retrasyn.simulation.accounting import DEVICES, replays_of
from retrasyn.simulation.replicas import Heard, Replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The sum of all reports on one question, and the ledger keys that sent them."""

    aggregate: Aggregate
    keys: npt.NDArray[np.int64]  # [aggregate.n], ascending

    def __post_init__(self) -> None:
        if self.keys.size != self.aggregate.n:
            raise ValueError(f"{self.aggregate.n} reports came from {self.keys.size} keys")


NO_ANSWERS = Answers(
    aggregate=Aggregate(counts=np.empty(0, np.int64), n=0), keys=np.empty(0, np.int64)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """What is kept of a round once its individual reports are deleted."""

    t: int
    epsilon: int  # micro-nats the round asked of each reporter; 0 if nobody should report
    size: int  # devices that share, where they are counted
    n_enrolled: int
    answers: Mapping[Question, Answers]
    flags: Flags | None = None  # where starting and stopping are public


@dataclass(slots=True)
class Recorded:
    """Steps a curator and its replicas through folded rounds; every report is recounted twice."""

    curator: Curator
    declared: Replay = field(init=False)  # in the declared unit and ledger key
    personal: Replay = field(init=False)  # per person and position
    n_users: int = 0  # devices that ever enrolled
    n_points_in: int = 0  # number of sharing devices, summed over all rounds
    n_points_out: int = 0
    replicas: Replicas | None = None
    source_name: ClassVar[str] = DEVICES
    has_users: ClassVar[bool] = True
    enrols_on_sight: ClassVar[bool] = False
    n_points_dropped: ClassVar[int] = 0
    folded: ClassVar[None] = None

    def __post_init__(self) -> None:
        self.declared, self.personal = replays_of(self.curator)

    def step(self, folded: Folded) -> Release:
        """Run one timestamp; without reports, or with too few, the model stays as it is."""
        curator, granted = self.curator, list[Grant]()
        sums: dict[str, tuple[Grant, Aggregate]] = {}
        unheard = {TRANSITION: NO_ANSWERS} | dict(folded.answers)

        def answer(ask: Ask) -> Estimate | None:
            found = unheard.pop(ask.question, NO_ANSWERS)
            grant = self._charge(ask, folded, found.keys)
            if found.keys.size == 0:
                return None
            granted.append(grant)
            sums[ask.lane] = grant, found.aggregate
            return curator.estimate(ask, grant, found.aggregate)

        dialogue = curator.begin(
            folded.t, size=folded.size, n_enrolled=folded.n_enrolled, flags=folded.flags
        )
        outcome = drive(dialogue, answer)
        granted += self._charge_unheard(folded, unheard)
        release = curator.end(
            folded.t, outcome, size=folded.size, granted=granted, flags=folded.flags
        )
        self.n_points_in += folded.size
        self.n_points_out += release.n_points
        if self.replicas is not None:
            heard = Heard(
                t=folded.t,
                size=folded.size,
                n_enrolled=folded.n_enrolled,
                flags=folded.flags,
                sums=sums,
            )
            self.replicas.step(heard)
        return release

    def _charge(self, ask: Ask, folded: Folded, keys: npt.NDArray[np.int64]) -> Grant:
        """Charge the ledger, and pass the reports to both recounts."""
        grant = self.curator.admit(ask, t=folded.t, epsilon=folded.epsilon, reporters=keys)
        if keys.size:
            for replay in (self.declared, self.personal):
                replay.observe(folded.t, grant.epsilon, keys, ask.question.lookback)
        return grant

    def _charge_unheard(self, folded: Folded, unheard: Mapping[Question, Answers]) -> list[Grant]:
        """Charge for reports whose question is no longer asked.

        A round fixes its questions when it opens. If they have changed by the time it is folded,
        its reports are useless, but they were sent.
        """
        charged = [
            self._charge(Ask(share=1.0, question=question), folded, answers.keys)
            for question, answers in unheard.items()
        ]
        return [grant for grant in charged if grant.reporters.size]
