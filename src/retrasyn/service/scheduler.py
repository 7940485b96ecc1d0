"""Opens and closes rounds when they are due; rehearses a few before the first one."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from retrasyn.errors import RetraSynError
from retrasyn.messages import MOVING
from retrasyn.service.admission.open_rounds import AcceptedReports
from retrasyn.service.campaign import Campaign
from retrasyn.service.campaign_state import CampaignState
from retrasyn.service.closing import Closing, fold
from retrasyn.service.opening import Opening
from retrasyn.service.store import RoundRow
from retrasyn.wire.frames import body_bytes, n_answers, question_code

if TYPE_CHECKING:
    from retrasyn.service.runtime import CampaignRuntime

PATIENCE = 10.0
"""Seconds to wait for a fold to end when the service stops."""
_PAUSE = 1.0  # seconds after a failure
_ROUNDS = 3  # of a rehearsal
_EACH = 20  # made-up reports on each question
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Scheduler:
    """Drives the rounds of one campaign: one task opens them, another one closes them."""

    runtime: CampaignRuntime
    opening: Opening = field(init=False)
    closing: Closing = field(init=False)
    _task: asyncio.Task[None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.opening, self.closing = Opening(self.runtime), Closing(self.runtime)

    def start(self) -> None:
        """Open and close rounds when they are due, until `stop`."""
        self._task = asyncio.create_task(self._run())
        if self.runtime.alerting is not None:
            self.runtime.alerting.start()

    async def stop(self) -> None:
        """Ask nothing more, write what was accepted, save a snapshot, end the feeds."""
        runtime = self.runtime
        if runtime.stopped:
            return
        runtime.stopped = True
        if self._task is not None:
            await self._halt(self._task)
        if runtime.alerting is not None:
            await runtime.alerting.stop()
        runtime.feed.close()
        await runtime.write_queue.close()
        await self.closing.save()

    async def tick(self) -> None:
        """Do all that is due now."""
        await self.open_due()
        await self.fold_due()

    async def open_due(self) -> None:
        """Open the round of this instant."""
        await self.opening.open_due(self.runtime.clock.now())

    async def fold_due(self) -> None:
        """Fold and release what is over."""
        await self.closing.fold_due(self.runtime.clock.now())

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_opening())
            tasks.create_task(self._keep_folding())

    async def _keep_opening(self) -> None:
        clock, calendar = self.runtime.clock, self.runtime.calendar
        while True:
            if await self._works("open", self.opening.open_due):
                await clock.sleep_until(calendar.next_opening(clock.now()))

    async def _keep_folding(self) -> None:
        clock, calendar = self.runtime.clock, self.runtime.calendar
        while True:
            if await self._works("fold", self.closing.fold_due):
                ends = [row.ends for row in calendar.waiting.values()]
                await clock.sleep_until(min([calendar.next_opening(clock.now()), *ends]))

    async def _works(self, what: str, act: Callable[[float], Awaitable[None]]) -> bool:
        """Open or fold; log a failure and pause before the next try."""
        clock, troubles = self.runtime.clock, self.runtime.troubles
        try:
            await act(clock.now())
        except Exception as error:  # noqa: BLE001 - one failure must not end the rounds
            known = isinstance(error, RetraSynError)
            reason = str(error) if known else type(error).__name__
            if troubles.get(what) != reason:
                _log.error("cannot %s rounds: %s", what, reason)
            troubles[what] = reason
            self.runtime.counters.failures += 1
            await clock.sleep_until(clock.now() + _PAUSE)
            return False
        troubles.pop(what, None)
        return True

    async def _halt(self, task: asyncio.Task[None]) -> None:
        """Cancel the task between two steps of the curator, unless that takes too long."""
        lock = self.runtime.state_lock
        try:
            await asyncio.wait_for(lock.acquire(), PATIENCE)
        except TimeoutError:  # the store fails, and folding waits for it
            task.cancel()
        else:
            task.cancel()
            lock.release()
        await asyncio.gather(task, return_exceptions=True)


def rehearse(campaign: Campaign) -> None:
    """Fold and release a few rounds of made-up reports, and forget them."""
    at_once = dataclasses.replace(campaign.run_settings, fewest=1)  # or nothing would be estimated
    few = campaign.settings.model_copy(update={"replicates": min(campaign.settings.replicates, 1)})
    state = CampaignState(dataclasses.replace(campaign, run_settings=at_once, settings=few))
    manifest = campaign.manifest
    whole = manifest.division == "population"
    for t in range(_ROUNDS):
        row = RoundRow(
            t=t, epsilon=manifest.epsilon if whole else 1, portion=0, ends=0, envelope=b""
        )
        accepted = _made_up(campaign, row)
        n = accepted.keys.size
        round_, *_ = fold(row, accepted, state, n_enrolled=n, n_ever=n)
        state.receipt(state.step(round_))


def _made_up(campaign: Campaign, row: RoundRow) -> AcceptedReports:
    """Return reports that say nothing, each from a device of its own."""
    manifest, answers = campaign.manifest, {}
    questions = manifest.questions
    n_rounds = len(questions) * _EACH
    for place, question in enumerate(questions):
        n, code = n_answers(question, manifest), question_code(question, manifest)
        bits = np.zeros((_EACH, body_bytes(code, n, row.epsilon, manifest.oracle)), np.uint8)
        first = row.t * n_rounds + place * _EACH
        answers[code] = bits, np.arange(first, first + _EACH)
    keys: npt.NDArray[np.int64] = np.arange((row.t + 1) * n_rounds)
    kinds = np.full(keys.size, MOVING, np.uint8)
    return AcceptedReports(answers=answers, kinds=kinds, keys=keys, marks=b"")
