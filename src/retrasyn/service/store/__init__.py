"""Where the service keeps devices, rounds and reports: one file, or a PostgreSQL database."""

from retrasyn.service.store.base import DeviceRow, FoldedRow, RoundRow, Store
from retrasyn.service.store.opening import open_store

__all__ = ["DeviceRow", "FoldedRow", "RoundRow", "Store", "open_store"]
