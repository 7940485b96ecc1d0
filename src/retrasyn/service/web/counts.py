"""What the web counts: requests by address and status, frames by what became of them.

Plain numbers in memory; `metrics` shows them. No address, device or body is among them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from retrasyn.wire.frames import STATUSES


@dataclass(slots=True)
class Counts:
    """Numbers since the start."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)  # by route and status
    frames: Counter[str] = field(default_factory=Counter)  # by status
    n_feeds: int = 0  # open at the moment

    def count_frame(self, status: str) -> None:
        """Count what became of one frame."""
        self.frames[status] += 1

    def count_frames(self, statuses: bytes) -> None:
        """Count what became of the frames of a batch."""
        for code, status in enumerate(STATUSES):
            n = statuses.count(code)
            if n:
                self.frames[status] += n
