"""The durable store: one row in SQLite, and a witness file that counts its writes."""

import hashlib
import os
import sqlite3
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from retrasyn.device.memory import DeviceMemory, Lost, read_memory, write_memory
from retrasyn.errors import LedgerError
from retrasyn.files import is_there
from retrasyn.randomness.words import system_bytes

_RECORD = struct.Struct("<16sQ8s")


@dataclass(frozen=True, slots=True)
class Witness:
    """Which store was written, and how many times."""

    store: bytes  # 16 random bytes, drawn when the store was made
    counter: int

    def vouches_for(self, store: bytes, counter: int) -> bool:
        """Tell whether a store is in the state this witness saw last."""
        return self.store == store and self.counter in (counter, counter - 1)


def read_witness(path: Path) -> Witness | None:
    """Return what a witness file says; None if it is missing or damaged."""
    try:
        record = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(record) != _RECORD.size or _seal(record) != record[-8:]:
        return None
    store, counter, _ = _RECORD.unpack(record)
    return Witness(store, counter)


def write_witness(path: Path, witness: Witness) -> None:
    """Write a witness file in place, durably. A torn write reads as damage: quarantine, no leak."""
    record = _RECORD.pack(witness.store, witness.counter, bytes(8))
    record = record[:-8] + _seal(record)
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(file, record, 0)
        os.fsync(file)
    finally:
        os.close(file)


def _seal(record: bytes) -> bytes:
    return hashlib.sha256(record[:-8]).digest()[:8]


_TABLE = """CREATE TABLE ledger (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    store BLOB NOT NULL, counter INTEGER NOT NULL, body TEXT NOT NULL, digest BLOB NOT NULL)"""
_PRAGMAS = (
    "PRAGMA locking_mode = EXCLUSIVE",  # a second process is refused
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = EXTRA",  # every commit is on disk before it returns
)


@dataclass(slots=True)
class SQLiteStore:
    """A ledger in a file, with its witness beside it."""

    path: Path
    _connection: sqlite3.Connection | None = field(default=None, repr=False)
    _store: bytes = field(default=b"", repr=False)  # names this file; empty until it is trusted
    _counter: int = 0

    def __post_init__(self) -> None:
        self.path = Path(self.path)

    @property
    def witness_path(self) -> Path:
        """Path of the witness file."""
        return self.path.with_name(self.path.name + ".witness")

    def load(self) -> DeviceMemory | Lost:
        """Return what was saved last, or why it cannot be trusted."""
        self.close()
        self._store = b""
        try:
            if not is_there(self.path):
                return Lost("missing")
            row = self._read_row()
            witness = read_witness(self.witness_path)
        except (sqlite3.OperationalError, OSError) as fault:
            raise self._broken("read", fault) from None
        except sqlite3.DatabaseError:
            return Lost("corrupt")
        memory = None if row is None else _checked(*row)
        if row is None or memory is None:
            return Lost("corrupt")
        store, counter, *_ = row
        if witness is None or not witness.vouches_for(store, counter):
            return Lost("rolled back", memory.spent)
        if witness.counter != counter:  # a crash came between; nothing may be sent before
            self._testify(store, counter)
        self._store, self._counter = store, counter
        return memory

    def save(self, memory: DeviceMemory) -> None:
        """Replace the row, then the witness; both are on disk when this returns."""
        try:
            if not self._store:
                self._make_anew()
            self._commit(memory)
        except (sqlite3.Error, OSError) as fault:
            self.close()
            raise self._broken("written", fault) from None
        self._testify(self._store, self._counter)

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None

    def _testify(self, store: bytes, counter: int) -> None:
        try:
            write_witness(self.witness_path, Witness(store, counter))
        except OSError as fault:
            raise self._broken("witnessed", fault) from None

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = sqlite3.connect(self.path, timeout=1.0, isolation_level=None)
            try:
                for pragma in _PRAGMAS:
                    connection.execute(pragma)
            except sqlite3.Error:
                connection.close()  # or the next commit would go without them
                raise
            self._connection = connection
        return self._connection

    def _read_row(self) -> tuple[bytes, int, str, bytes] | None:
        connection = self._connect()
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'ledger'").fetchone():
            return None
        row: tuple[bytes, int, str, bytes] | None = connection.execute(
            "SELECT store, counter, body, digest FROM ledger"
        ).fetchone()
        return row

    def _make_anew(self) -> None:
        """Make an empty file under a new name; an earlier one is not trusted and is removed."""
        self.close()
        store = system_bytes(16)
        for suffix in ("", "-wal", "-shm", "-journal"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        self._connect().execute(_TABLE)
        _sync_folder(self.path.parent)
        self._store, self._counter = store, 0

    def _commit(self, memory: DeviceMemory) -> None:
        body = write_memory(memory)
        counter = self._counter + 1
        digest = _digest(self._store, counter, body)
        connection = self._connect()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            "INSERT OR REPLACE INTO ledger VALUES (1, ?, ?, ?, ?)",
            (self._store, counter, body, digest),
        )
        connection.execute("COMMIT")
        self._counter = counter

    def _broken(self, verb: str, fault: Exception) -> LedgerError:
        return LedgerError(
            f"the ledger {self.path} cannot be {verb} ({fault}): nothing is sent without it; "
            "free its disk, make it writable, or end the other process that holds it"
        )


def _digest(store: bytes, counter: int, body: str) -> bytes:
    return hashlib.sha256(store + counter.to_bytes(8, "little") + body.encode()).digest()


def _checked(store: bytes, counter: int, body: str, digest: bytes) -> DeviceMemory | None:
    """Return the memory of a row, or None if it is not what was written."""
    try:
        return read_memory(body) if _digest(store, counter, body) == digest else None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None


def _sync_folder(folder: Path) -> None:
    """Write a new file's directory entry to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
