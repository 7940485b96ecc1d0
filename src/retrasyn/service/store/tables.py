"""What every part of the store in SQL needs: the tables themselves, small values, many rows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from retrasyn.errors import StoreError
from retrasyn.service.store.engine import Engine, Row
from retrasyn.service.store.migrations import migrate

PAGE = 1000
"""Rows that one statement reads or writes."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Tables:
    """The tables of this version; see `base.Store` for what each call promises."""

    engine: Engine

    def __post_init__(self) -> None:
        migrate(self.engine)

    def close(self) -> None:
        """Let go of the file or the connection."""
        self.engine.close()

    def probe(self, size: int = 0) -> None:
        """Write something durably, and let it go."""
        self.put("probe", bytes(size))
        self.put("probe", b"")

    def get(self, name: str) -> bytes | None:
        """Return a small value."""
        rows = self.engine.execute("SELECT value FROM small_values WHERE name = ?", (name,))
        return bytes(rows[0][0]) if rows else None

    def put(self, name: str, value: bytes) -> None:
        """Keep a small value."""
        self.engine.execute(
            "INSERT INTO small_values (name, value) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, value),
        )

    def tidy(self, table: str) -> None:
        """Let what was deleted leave the disk; it is deleted even if this must wait."""
        try:
            self.engine.tidy(table)
        except StoreError as fault:
            _log.warning("tidying failed table=%s fault=%s", table, fault)

    def insert(self, table: str, columns: str, rows: Sequence[Row], *, ending: str = "") -> None:
        """Insert rows, many in one statement; a few are one transaction by themselves."""
        row_places = f"({', '.join('?' * (columns.count(',') + 1))})"
        for first in range(0, len(rows), PAGE):
            some = rows[first : first + PAGE]
            places = ", ".join([row_places] * len(some))
            self.engine.execute(
                f"INSERT INTO {table} ({columns}) VALUES {places} {ending}",  # noqa: S608 - our own names
                [value for row in some for value in row],
            )
