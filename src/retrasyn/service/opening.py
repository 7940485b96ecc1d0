"""Rounds open on the clock: what they ask is decided, signed, recorded, and then told."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from retrasyn.errors import SettingError
from retrasyn.service import asking
from retrasyn.service.account import Account
from retrasyn.service.calendar import Calendar
from retrasyn.service.campaign import Campaign
from retrasyn.service.clock import Clock
from retrasyn.service.counters import Counters
from retrasyn.service.devices import Devices
from retrasyn.service.gate import Gate
from retrasyn.service.ingest import Ingest
from retrasyn.service.store import RoundRow, Store

_log = logging.getLogger(__name__)
MAX_SILENCE = 100_000
"""Most rounds that may be stepped over; beyond it the clock is taken to be wrong."""


@dataclass(slots=True, kw_only=True)
class Opening:
    """Opens the round of an instant."""

    campaign: Campaign
    calendar: Calendar
    account: Account
    store: Store
    gate: Gate
    ingest: Ingest
    devices: Devices
    counters: Counters
    clock: Clock
    lock: asyncio.Lock  # of the account

    async def open_due(self, now: float) -> None:
        """Open the round of this instant, unless it was opened or its time is over."""
        t = self.campaign.round_at(now)
        if t < 0 or now >= self.campaign.closing_of(t) or self._is_past(t):
            return
        check_silence(t, self.account.t)
        asked = await self._decide(t)
        if self.clock.now() >= self.campaign.closing_of(t):
            return  # deciding had to wait for a fold that took the whole round
        text = self.campaign.write_round(
            t,
            epsilon=asked.epsilon or self.campaign.manifest.epsilon,
            portion=asked.portion,
            previous=self.calendar.head(),
        )
        row = RoundRow(
            t=t,
            epsilon=asked.epsilon,
            portion=asked.portion,
            ends=self.campaign.closing_of(t) + self.campaign.settings.seconds_of_grace,
            envelope=self.campaign.sign("round", text),
            drawn=asked.drawn_bytes,
        )
        await self.ingest.run(self.store.add_round, row)
        self.gate.open_round(row)
        self.calendar.add(row, waits=True)
        self.counters.rounds_opened += 1
        _log.info("round opened t=%d epsilon=%d", t, row.epsilon)

    def _is_past(self, t: int) -> bool:
        """Tell whether a round was opened, or stepped over, before: a clock may be set back."""
        return any(
            last is not None and t <= last for last in (self.calendar.newest, self.account.t)
        )

    async def _decide(self, t: int) -> asking.Asked:
        """Decide what to ask; slots need no look at the account, so nobody waits for it."""
        manifest = self.campaign.manifest
        if manifest.sampling == "phase":
            return asking.Asked(epsilon=manifest.epsilon, portion=asking.EVERYBODY)
        async with self.lock:
            return asking.decide(
                self.account.recorded.curator,
                manifest,
                t,
                pending=list(self.calendar.waiting.values()),
                enrolled=self.devices.keys(),
                size=self.account.size,
            )


def check_silence(t: int, last: int | None) -> None:
    """Refuse to go on so long after the last round that it would take for ever."""
    if last is not None and t - last > MAX_SILENCE:
        raise SettingError(
            f"the clock shows round {t:,}, and the last one was {last:,}: more than "
            f"{MAX_SILENCE:,} were missed; set the clock, or begin anew with another name and "
            'epoch = "next"'
        )
