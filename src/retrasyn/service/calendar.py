"""The rounds that were opened, and the clock that says when the next one is due."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Protocol

from retrasyn.errors import SettingError
from retrasyn.service.campaign import Campaign
from retrasyn.service.store import RoundRow
from retrasyn.wire import round_hash
from retrasyn.wire.canonical import unseal

LONGEST_NAP = 0.5
"""Seconds after which a sleeper looks at the wall clock again: it may have been set."""
MAX_SILENCE = 100_000
"""Most rounds that may be stepped over; beyond it the clock is taken to be wrong."""
_REMEMBERED = 1000  # rounds


@dataclass(slots=True)
class Calendar:
    """The rounds of a campaign: those that are not folded yet, and the latest ones."""

    campaign: Campaign
    waiting: dict[int, RoundRow] = field(default_factory=dict)  # opened and not folded
    newest: int | None = None  # of all that were ever opened
    _latest: dict[int, RoundRow] = field(default_factory=dict)

    def add(self, row: RoundRow, *, waits: bool) -> None:
        """Add a round that was opened, now or before a restart; rounds come in order."""
        self.newest = row.t
        self._latest[row.t] = row
        while len(self._latest) > _REMEMBERED:
            del self._latest[next(iter(self._latest))]
        if waits:
            self.waiting[row.t] = row

    def row(self, t: int) -> RoundRow | None:
        """Return one of the latest rounds."""
        return self._latest.get(t)

    def current(self, now: float) -> RoundRow | None:
        """Return the round that is open; one that was folded early, with its campaign, is not."""
        row = None if self.newest is None else self.waiting.get(self.newest)
        return None if row is None or now >= self.campaign.closing_of(row.t) else row

    def coming(self, now: float) -> int:
        """Return the round that is open, or else the next one to open."""
        t = max(self.campaign.round_at(now), 0)
        row = self.current(now)
        if row is not None:
            return row.t
        if now >= self.campaign.closing_of(t):
            t += 1
        return t if self.newest is None else max(t, self.newest + 1)

    def next_opening(self, now: float) -> int:
        """Return the time at which the next round opens."""
        t = max(self.campaign.round_at(now) + 1, 0)
        return self.campaign.opening_of(t if self.newest is None else max(t, self.newest + 1))

    def head(self) -> bytes:
        """Return the hash of the newest round, which the next one names as its previous."""
        if self.newest is None:
            return round_hash(self.campaign.text)
        return round_hash(unseal(self._latest[self.newest].envelope)[0])


def check_silence(t: int, last: int | None) -> None:
    """Refuse to step over more rounds than could be worked through."""
    if last is not None and t - last > MAX_SILENCE:
        raise SettingError(
            f"the clock shows round {t:,}, and the last one was {last:,}: more than "
            f"{MAX_SILENCE:,} were missed; set the clock, or begin anew with another name and "
            'epoch = "next"'
        )


class ServiceClock(Protocol):
    """Tells the time, and waits for a time."""

    def now(self) -> float:
        """Return Unix seconds."""
        ...  # pragma: no cover - a protocol has no body

    async def sleep_until(self, instant: float) -> None:
        """Return at a given time, or a little earlier."""
        ...  # pragma: no cover - a protocol has no body


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        """Return Unix seconds."""
        return time.time()

    async def sleep_until(self, instant: float) -> None:
        """Wait, but briefly enough to notice that the clock was set."""
        await asyncio.sleep(min(max(instant - self.now(), 0.001), LONGEST_NAP))
