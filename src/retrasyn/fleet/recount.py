"""What every device of a fleet spent in its worst window, counted anew from the log of reports."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from retrasyn.fleet.ledger import FleetLedger, Logged
from retrasyn.messages import MICRO, Manifest
from retrasyn.privacy.replay import Replay


@dataclass(frozen=True, slots=True)
class Recount:
    """How many reports there were, and the most that any device spent in any window."""

    n_reports: int
    worst: int  # micro-nats
    ceiling: int  # micro-nats

    @property
    def within(self) -> bool:
        """Whether no window of any device exceeded epsilon."""
        return self.worst <= self.ceiling

    def __str__(self) -> str:
        verdict = "within" if self.within else "ABOVE"
        return (
            f"{self.n_reports:,} reports; at most {self.worst / MICRO:g} in any window of any "
            f"device, {verdict} epsilon={self.ceiling / MICRO:g}"
        )


def recount(ledger: FleetLedger, manifest: Manifest, id_: bytes) -> Recount:
    """Count all reports of a campaign again, without any code of the device."""
    replay = Replay(manifest.gap, max((1, *manifest.ages)))

    def alike(one: Logged) -> tuple[int, int, int]:
        return one.t, one.epsilon, one.lookback

    for (t, epsilon, lookback), same in groupby(sorted(ledger.log(id_), key=alike), key=alike):
        numbers = np.array([one.number for one in same], np.int64)
        replay.observe(t, epsilon, numbers, lookback)
    return Recount(replay.n_reports, replay.worst, manifest.epsilon)
