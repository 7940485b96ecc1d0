"""The clockwork: rounds open, close and are rehearsed when they are due."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrasyn.errors import RetraSynError
from retrasyn.messages import MOVING, Question
from retrasyn.service.admission.open_rounds import AcceptedReports
from retrasyn.service.calendar import Calendar, ServiceClock
from retrasyn.service.campaign import Campaign
from retrasyn.service.campaign_state import CampaignState
from retrasyn.service.closing import Closing, fold
from retrasyn.service.counters import Counters
from retrasyn.service.opening import Opening
from retrasyn.service.store import RoundRow
from retrasyn.wire.frames import body_bytes, n_answers, question_code

_log = logging.getLogger(__name__)
_PAUSE = 1.0  # seconds after a failure


@dataclass(slots=True, kw_only=True)
class Scheduler:
    """Drives the rounds of one campaign."""

    calendar: Calendar
    opening: Opening
    closing: Closing
    counters: Counters
    clock: ServiceClock
    troubles: dict[str, str] = field(default_factory=dict)  # what does not work now, and why

    async def tick(self) -> None:
        """Do all that is due now."""
        await self.open_due()
        await self.fold_due()

    async def open_due(self) -> None:
        """Open the round of this instant."""
        await self.opening.open_due(self.clock.now())

    async def fold_due(self) -> None:
        """Fold and release what is over."""
        await self.closing.fold_due(self.clock.now())

    async def run(self) -> None:
        """Do what is due when it is due, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_opening())
            tasks.create_task(self._keep_folding())

    async def _keep_opening(self) -> None:
        while True:
            if await self._works("open", self.opening.open_due):
                await self.clock.sleep_until(self.calendar.next_opening(self.clock.now()))

    async def _keep_folding(self) -> None:
        while True:
            if await self._works("fold", self.closing.fold_due):
                ends = [row.ends for row in self.calendar.waiting.values()]
                upcoming = self.calendar.next_opening(self.clock.now())
                await self.clock.sleep_until(min([upcoming, *ends]))

    async def _works(self, what: str, act: Callable[[float], Awaitable[None]]) -> bool:
        """Do one half of the work; a failure is told, and tried again after a pause."""
        try:
            await act(self.clock.now())
        except Exception as error:  # noqa: BLE001 - the clockwork must not stop
            known = isinstance(error, RetraSynError)
            reason = str(error) if known else type(error).__name__
            if self.troubles.get(what) != reason:
                _log.error("cannot %s rounds: %s", what, reason)
            self.troubles[what] = reason
            self.counters.failures += 1
            await self.clock.sleep_until(self.clock.now() + _PAUSE)
            return False
        self.troubles.pop(what, None)
        return True


_ROUNDS = 3
_EACH = 20  # made-up reports on each question


def rehearse(campaign: Campaign) -> None:
    """Fold and release a few rounds of made-up reports, and forget them."""
    manifest, account = campaign.manifest, CampaignState(campaign)
    whole = manifest.division == "population"
    for t in range(_ROUNDS):
        row = RoundRow(
            t=t, epsilon=manifest.epsilon if whole else 1, portion=0, ends=0, envelope=b""
        )
        taken = _made_up(campaign, row)
        n = taken.keys.size
        round_, _ = fold(row, taken, account, n_enrolled=n, n_ever=n)
        account.receipt(account.step(round_))


def _made_up(campaign: Campaign, row: RoundRow) -> AcceptedReports:
    """Return reports that say nothing, each from a device of its own."""
    manifest, answers = campaign.manifest, {}
    abouts = [about for about in manifest.strata if about != "older"]
    questions = [Question(about=about) for about in abouts]  # type: ignore[arg-type]  # strata are questions
    questions += [Question(about="older", threshold=age) for age in manifest.ages]
    n_rounds = len(questions) * _EACH
    for place, question in enumerate(questions):
        n, code = n_answers(question, manifest), question_code(question, manifest.ages)
        bits = np.zeros((_EACH, body_bytes(code, n, row.epsilon, manifest.oracle)), np.uint8)
        first = row.t * n_rounds + place * _EACH
        answers[code] = bits, np.arange(first, first + _EACH)
    keys: npt.NDArray[np.int64] = np.arange((row.t + 1) * n_rounds)
    kinds = np.full(keys.size, MOVING, np.uint8)
    return AcceptedReports(answers=answers, kinds=kinds, keys=keys, marks=b"")
