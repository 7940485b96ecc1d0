"""A store by its name: the path of a file, or the address of a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from retrasyn.service.store.base import Store
from retrasyn.service.store.engine import Engine
from retrasyn.service.store.postgres import PostgresEngine
from retrasyn.service.store.sql import SQLStore
from retrasyn.service.store.sqlite import SQLiteEngine


def open_store(place: str | Path) -> Store:
    """Open a store, make it if it is new, and bring it to this version's tables."""
    engine: Engine
    if str(place).startswith(("postgresql://", "postgres://")):
        engine = PostgresEngine(str(place))
    else:
        engine = SQLiteEngine(Path(place))
    try:
        return SQLStore(engine)
    except BaseException:
        engine.close()
        raise
