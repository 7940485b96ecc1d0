"""SQLite: one file, readable by its owner only, on disk before a commit returns."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrasyn.errors import StoreError
from retrasyn.files import is_there
from retrasyn.service.store.base import Row

_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # every commit is on disk before it returns
    "PRAGMA secure_delete = ON",  # deleted bits are overwritten
    "PRAGMA wal_autocheckpoint = 4000",
)
_WAIT = 5.0  # seconds for a back-up or a curious reader to let go


@dataclass(slots=True)
class SQLiteConnection:
    """A connection to a file; threads may take turns."""

    path: Path
    bytes_type: str = "BLOB"
    _connection: sqlite3.Connection | None = field(default=None, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)  # whoever calls

    @property
    def place(self) -> str:
        """The path."""
        return str(self.path)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement."""
        try:
            with self._lock:
                return self._connected().execute(statement, values).fetchall()
        except (sqlite3.Error, OSError) as fault:
            raise self._broken(fault) from None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block as one transaction."""
        with self._lock:
            self.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.execute("COMMIT")
            except BaseException:
                self._undo()
                raise

    def tidy(self, table: str) -> None:
        """Move the write-ahead log into the file and empty it: deleted bits leave it, too."""
        ((held, *_),) = self.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if held:
            raise StoreError(f"a reader of {self.path} holds what was deleted from {table}")

    def close(self) -> None:
        """Close the file."""
        with self._lock, suppress(sqlite3.Error):
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            if not is_there(self.path):
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))
            connection = sqlite3.connect(
                self.path, timeout=_WAIT, isolation_level=None, check_same_thread=False
            )
            try:
                for pragma in _PRAGMAS:
                    connection.execute(pragma)
            except sqlite3.Error:
                connection.close()  # or the next commit would go without them
                raise
            self._connection = connection
        return self._connection

    def _undo(self) -> None:
        connection = self._connection
        if connection is not None and connection.in_transaction:
            try:
                connection.execute("ROLLBACK")
            except sqlite3.Error:
                self.close()

    def _broken(self, fault: Exception) -> StoreError:
        return StoreError(
            f"{self.path} cannot be read or written ({fault}); "
            "see that its folder exists, may be written, and that the disk has room"
        )
