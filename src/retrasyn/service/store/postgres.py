"""PostgreSQL: one connection, locked against a second service, opened again when lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from retrasyn.errors import MissingExtra, StoreError
from retrasyn.service.store.base import Row

if TYPE_CHECKING:
    import psycopg

_LOCK = 0x5265747261  # "Retra": whoever holds it is the one service of this database
_HARMLESS = ("SELECT", "BEGIN")
_SETTINGS = {
    "synchronous_commit": "on",  # every commit is on disk before it returns
    "statement_timeout": "30s",
    "lock_timeout": "3s",
    "idle_in_transaction_session_timeout": "60s",
}


@dataclass(slots=True)
class PostgresConnection:
    """A connection to a URL, opened again whenever it was lost."""

    url: str = field(repr=False)  # may hold a password
    bytes_type: str = "BYTEA"
    _connection: psycopg.Connection[Row] | None = field(default=None, repr=False)
    _within: bool = False  # in a transaction: a lost connection has lost its statements
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)  # whoever calls

    @property
    def place(self) -> str:
        """The URL without user and password."""
        tail = self.url.rpartition("@")[2].removeprefix("postgresql://").removeprefix("postgres://")
        return f"postgresql://{tail.partition('?')[0]}"

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement; what changes nothing is tried again if the connection was lost."""
        with self._lock:
            may_be_stale = self._connection is not None and not self._within
            try:
                return self._run(statement, values)
            except StoreError:
                if may_be_stale and self._connection is None and statement.startswith(_HARMLESS):
                    return self._run(statement, values)
                raise

    def _run(self, statement: str, values: Sequence[Any]) -> list[Row]:
        psycopg = _library()
        try:
            cursor = self._connected().execute(statement.replace("?", "%b"), values)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as fault:
            if not isinstance(fault, psycopg.errors.IntegrityError):
                self.close()
            raise self._broken(fault) from None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block as one transaction."""
        with self._lock:
            self.execute("BEGIN")
            self._within = True
            try:
                yield
                self.execute("COMMIT")
            except BaseException:
                self._undo()
                raise
            finally:
                self._within = False

    def tidy(self, table: str) -> None:
        """Rewrite the table of frames, so that deleted bits go with the old file."""
        self.execute(f"VACUUM {'FULL ' if table == 'frames' else ''}{table}")

    def close(self) -> None:
        """Close the connection."""
        with self._lock, suppress(Exception):  # it may be broken in any way
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _connected(self) -> psycopg.Connection[Row]:
        if self._connection is not None:
            return self._connection
        if self._within:
            raise StoreError(f"the connection to {self.place} was lost within a transaction")
        options = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
        connection: psycopg.Connection[Row] = _library().connect(
            self.url,
            autocommit=True,
            connect_timeout=5,
            tcp_user_timeout=30_000,
            options=options,
        )
        try:
            # A transaction whose end is unknown is over once its connection let go of the lock.
            connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        except _library().errors.LockNotAvailable:
            connection.close()
            raise StoreError(
                f"{self.place} is in use by another service; end that one, or use another database"
            ) from None
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _undo(self) -> None:
        if self._connection is not None:
            try:
                self._connection.execute("ROLLBACK")
            except Exception:  # noqa: BLE001 - whatever it is, the connection is of no more use
                self.close()

    def _broken(self, fault: Exception) -> StoreError:
        reason = " ".join(str(fault).split()) or type(fault).__name__
        return StoreError(
            f"{self.place} cannot be read or written ({reason:.200}); "
            "see that the server runs, has room, and lets this user in"
        )


def _library() -> Any:
    try:
        import psycopg  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra('psycopg is not installed: pip install "retrasyn[postgres]"') from None
    return psycopg
