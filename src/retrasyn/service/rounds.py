"""The clockwork. `tick` does all that is due; `run` does it when it is due.

Opening and folding are two tasks, so that a round opens on time while the one before it is still
being folded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from retrasyn.errors import RetraSynError
from retrasyn.service.calendar import Calendar
from retrasyn.service.clock import Clock
from retrasyn.service.closing import Closing
from retrasyn.service.counters import Counters
from retrasyn.service.opening import Opening

_log = logging.getLogger(__name__)
_PAUSE = 1.0  # seconds after a failure


@dataclass(slots=True, kw_only=True)
class Rounds:
    """Drives the rounds of one campaign."""

    calendar: Calendar
    opening: Opening
    closing: Closing
    counters: Counters
    clock: Clock
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
