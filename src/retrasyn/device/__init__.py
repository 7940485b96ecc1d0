"""A device that enforces its own privacy (standard library only).

The curator is not trusted, so the guarantee lives here: a `Tracker` turns fixes into one state per
timestamp, a `Reporter` answers rounds or refuses them, and a store keeps the ledger through
crashes. `docs/device.md` shows how they are used, `docs/proofs/device.md` why they suffice.
"""

from retrasyn.device.clock import Instant, read_clocks
from retrasyn.device.memory import MemoryStore
from retrasyn.device.reporter import Answer, DeviceStatus, Drawn, Refusal, Reporter
from retrasyn.device.store import SQLiteStore
from retrasyn.device.tracker import Tracker

__all__ = [
    "Answer",
    "DeviceStatus",
    "Drawn",
    "Instant",
    "MemoryStore",
    "Refusal",
    "Reporter",
    "SQLiteStore",
    "Tracker",
    "read_clocks",
]
