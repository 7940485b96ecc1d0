"""Where the service keeps devices, rounds and reports: one file, or a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from retrasyn.service.store.base import (
    CampaignStore,
    Connection,
    DeviceRow,
    EvidenceRow,
    FoldedRow,
    RoundRow,
)
from retrasyn.service.store.postgres import PostgresConnection
from retrasyn.service.store.sql import SQLStore
from retrasyn.service.store.sqlite import SQLiteConnection


def open_store(place: str | Path, *, make: bool = True) -> CampaignStore:
    """Open a store and migrate its tables to this version; a missing file is made if wished."""
    engine: Connection
    if str(place).startswith(("postgresql://", "postgres://")):
        engine = PostgresConnection(str(place))
    else:
        engine = SQLiteConnection(Path(place), make=make)
    try:
        return SQLStore(engine)
    except BaseException:
        engine.close()
        raise


__all__ = ["CampaignStore", "DeviceRow", "EvidenceRow", "FoldedRow", "RoundRow", "open_store"]
