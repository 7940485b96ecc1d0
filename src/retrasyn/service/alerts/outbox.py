"""The alerts of a campaign that are still to be sent, in a file that survives a restart."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass, field
from pathlib import Path

from retrasyn.bounded_json import parse_json
from retrasyn.errors import OutputError

CAPACITY = 1000
"""Alerts that may wait; the oldest are given up for newer ones."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Alert:
    """One message: its id and its bytes are the same however often it is made or sent."""

    id: str
    t: int
    zone: str
    body: str


@dataclass(slots=True)
class Outbox:
    """What was checked and raised, and what is not sent yet."""

    path: Path
    checked: int | None = None  # the last timestamp that was looked at
    raised: dict[str, int] = field(default_factory=dict)  # by zone, when it was unusual last
    waiting: dict[str, Alert] = field(default_factory=dict)  # by id, the oldest first

    @classmethod
    def open(cls, path: Path) -> Outbox:
        """Read what a file holds; one that is damaged is begun anew, and nothing is sent twice."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise OutputError(f"folder {path.parent} cannot be made: {error.strerror}") from None
        if not path.exists():
            return cls(path)
        try:
            found = parse_json(path.read_bytes())
            alerts = [Alert(**row) for row in found["waiting"]]
            raised = {str(zone): int(t) for zone, t in found["raised"].items()}
            waiting = {alert.id: alert for alert in alerts}
            return cls(path, int(found["checked"]), raised, waiting)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            _log.warning("alerts begin anew, their file is damaged file=%s", path.name)
            return cls(path)

    def note(self, t: int, alerts: list[Alert], *, forget_before: int) -> int:
        """Note that a timestamp was looked at; return how many waiting alerts were given up."""
        self.checked = t
        self.raised = {zone: then for zone, then in self.raised.items() if then >= forget_before}
        self.raised |= {alert.zone: t for alert in alerts}
        self.waiting |= {alert.id: alert for alert in alerts}
        n_over = max(len(self.waiting) - CAPACITY, 0)
        for id_ in list(self.waiting)[:n_over]:
            del self.waiting[id_]
        return n_over

    def to_bytes(self) -> bytes:
        """Return what the file is to hold."""
        content = {
            "checked": self.checked,
            "raised": self.raised,
            "waiting": [asdict(alert) for alert in self.waiting.values()],
        }
        return json.dumps(content, indent=1).encode() + b"\n"
