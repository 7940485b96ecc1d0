"""SQLite: one file, readable by its owner only, on disk before a commit returns.

A file that is deleted stays writable for whoever has it open, and what is written to it is lost. So
before and after every transaction it is made sure that the path still leads to the file, and before
it that nobody else has written to the file.
"""

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
Identity = tuple[int, int]
"""Device and inode of a file."""


@dataclass(slots=True)
class SQLiteConnection:
    """A connection to a file; threads may take turns."""

    path: Path
    bytes_type: str = "BLOB"
    make: bool = True  # a file that is missing; only until it was opened for the first time
    _file: Identity | None = None
    _log: Identity | None = None  # of the write-ahead log, as long as there is a connection
    _content: tuple[int, int] = (0, 0)  # size and time of change, as our own last statement left it
    _names: tuple[str, str] = field(init=False, repr=False)  # of the file and its log
    _connection: sqlite3.Connection | None = field(default=None, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)  # whoever calls

    def __post_init__(self) -> None:
        self._names = str(self.path), f"{self.path}-wal"

    @property
    def place(self) -> str:
        """The path."""
        return str(self.path)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement."""
        try:
            with self._lock:
                connection = self._connected()
                if not connection.in_transaction:
                    self._check_files(changed_by_us=False)
                try:
                    return connection.execute(statement, values).fetchall()
                finally:  # also what failed half-way, on a full disk, may have changed the file
                    if not connection.in_transaction:
                        self._check_files(changed_by_us=True)
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
            is_first = self._file is None
            self._find()
            connection = sqlite3.connect(
                self.path, timeout=_WAIT, isolation_level=None, check_same_thread=False
            )
            try:
                for pragma in _PRAGMAS:
                    connection.execute(pragma)
                connection.execute("SELECT name FROM sqlite_master").fetchone()  # opens the log
                if is_first:
                    self._check_whole(connection)
                self._log = _identity(Path(self._names[1]).stat())
                self._check_files(changed_by_us=True)
            except (sqlite3.Error, OSError, StoreError):
                connection.close()  # or the next commit would go without them
                raise
            self._connection = connection
        return self._connection

    def _find(self) -> None:
        """Find the file, or make it if it is new."""
        if not is_there(self.path):
            if not self.make and self._file is None:
                raise StoreError(
                    f"{self.path} is missing; put it back from a copy, name another database with "
                    "--set server.store=URL, or begin another campaign with --new-campaign, for "
                    "which every device has to enrol again"
                )
            if not self.make:
                raise self._lost("was deleted while the service ran")
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))
        found = _identity(self.path.stat())
        if self._file not in (None, found):
            raise self._lost("was replaced while the service ran")
        self._file, self.make = found, False

    def _check_whole(self, connection: sqlite3.Connection) -> None:
        """Refuse a damaged file, such as a copy that met the write-ahead log of another."""
        ((found,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
        if found != "ok":
            raise StoreError(
                f"{self.path} is damaged ({' '.join(found.split()):.100}); restore a back-up "
                "into an empty folder"
            )

    def _check_files(self, *, changed_by_us: bool) -> None:
        """Refuse to go on if the file or its log is not what this connection has open."""
        try:
            file, log = map(os.stat, self._names)
        except FileNotFoundError:
            raise self._lost("or its log was deleted while the service ran") from None
        if (_identity(file), _identity(log)) != (self._file, self._log):
            raise self._lost("or its log was replaced while the service ran")
        content = (file.st_size, file.st_mtime_ns)
        if not changed_by_us and content != self._content:
            raise self._lost("was written to by another program while the service ran")
        self._content = content

    def _lost(self, what: str) -> StoreError:
        return StoreError(
            f"{self.path} {what}, and nothing is acknowledged; put back the very file that was "
            "there, or stop the service and restore a back-up into an empty folder"
        )

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


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino
