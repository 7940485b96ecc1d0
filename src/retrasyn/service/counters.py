"""What the service has done since it started, in numbers: for metrics and the operator."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Counted since the start of the process; nothing here tells one device from another."""

    rounds_opened: int = 0
    rounds_folded: int = 0
    rounds_missed: int = 0  # that never opened, because the service was not running
    rounds_recovered: int = 0  # stepped through again after a restart
    reports_folded: int = 0
    reports_dropped: int = 0  # that the curator's own ledger refused when they were folded
    heartbeats_folded: int = 0
    alarms: int = 0  # tests on reports that were alarmed
    releases_written: int = 0
    snapshots_saved: int = 0
    devices_enrolled: int = 0
    devices_removed: int = 0
    failures: int = 0  # of folding or releasing, each tried again
    fold_seconds: float = 0.0  # that the last fold took, release included

    def to_dict(self) -> dict[str, float]:
        """Return all figures by name."""
        return dataclasses.asdict(self)
