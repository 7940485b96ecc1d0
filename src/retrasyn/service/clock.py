"""The time of day, injected so that tests run without waiting."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

LONGEST_NAP = 0.5
"""Seconds after which a sleeper looks at the wall clock again: it may have been set."""


class Clock(Protocol):
    """Says how late it is, and waits."""

    def now(self) -> float:
        """Return Unix seconds."""
        ...  # pragma: no cover - a protocol has no body

    async def sleep_until(self, instant: float) -> None:
        """Return when the clock shows an instant, or a little earlier."""
        ...  # pragma: no cover - a protocol has no body


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        """Return Unix seconds."""
        return time.time()

    async def sleep_until(self, instant: float) -> None:
        """Wait, but never so long that a clock which was set goes unnoticed."""
        await asyncio.sleep(min(max(instant - self.now(), 0.001), LONGEST_NAP))
