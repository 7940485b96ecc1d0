"""Real time, and waiting for an instant of it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Protocol

from retrasyn.device import Instant, read_clocks

_SLICE = 0.5  # seconds: a wall clock that is set must not leave anybody waiting for hours


class Clock(Protocol):
    """What a loop needs of time."""

    def now(self) -> Instant:
        """Return what the clocks show."""
        ...  # pragma: no cover - a protocol has no body

    def wait_until(self, wall: float) -> bool:
        """Wait for an instant in milliseconds since 1970; False if told to stop before."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(slots=True)
class RealClock:
    """The clocks of this machine; setting `stopped` ends every wait."""

    stopped: threading.Event = field(default_factory=threading.Event)

    def now(self) -> Instant:
        """Return what the clocks show."""
        return read_clocks()

    def wait_until(self, wall: float) -> bool:
        """Wait for an instant, a little at a time."""
        while not self.stopped.is_set():
            left = (wall - read_clocks().wall) / 1000
            if left <= 0:
                return True
            self.stopped.wait(min(left, _SLICE))
        return False
