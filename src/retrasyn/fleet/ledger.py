"""The ledgers of a whole fleet in one file, and an independent recount of their spending."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from retrasyn.bounded_json import parse_json
from retrasyn.client.curator_client import Agreed
from retrasyn.device.memory import DeviceMemory, Lost, read_memory
from retrasyn.errors import LedgerError, WireError
from retrasyn.files import is_there
from retrasyn.messages import MICRO, Manifest
from retrasyn.privacy.replay import Replay
from retrasyn.wire.keys import CuratorKeys
from retrasyn.wire.texts import decode_manifest


def write_quickly(memory: DeviceMemory) -> str:
    """Serialise a memory without its manifest, byte for byte as `write_memory` does."""
    odometer, quarantine, lots = memory.odometer, memory.quarantine, memory.lots
    return json.dumps(
        {
            "odometer": {"total": odometer.total, "boot": odometer.boot},
            "pinned": "",
            "quarantine": {
                "reason": quarantine.reason,
                "t": quarantine.t,
                "uptime": quarantine.uptime,
                "rounds": quarantine.rounds,
            },
            "lots": None if lots is None else {"phase": lots.phase, "role": lots.role},
            "heads": [
                {"manifest": head.manifest.hex(), "t": head.t, "digest": head.digest.hex()}
                for head in memory.heads
            ],
            "entries": [
                {
                    "manifest": entry.manifest.hex(),
                    "t": entry.t,
                    "uptime": entry.uptime,
                    "epsilon": entry.epsilon,
                    "lookback": entry.lookback,
                    "gap": entry.gap,
                    "period": entry.period,
                }
                for entry in memory.entries
            ],
            "frame": memory.frame.hex(),
            "spent": memory.spent,
        }
    )


_TABLES = """
CREATE TABLE server (url TEXT NOT NULL, curator TEXT NOT NULL);
CREATE TABLE device (number INTEGER PRIMARY KEY, device BLOB NOT NULL, key BLOB NOT NULL);
CREATE TABLE memory (number INTEGER PRIMARY KEY, manifest INTEGER NOT NULL, body TEXT NOT NULL);
CREATE TABLE manifest (id INTEGER PRIMARY KEY, text BLOB NOT NULL UNIQUE);
CREATE TABLE log (
    number INTEGER NOT NULL, manifest BLOB NOT NULL, t INTEGER NOT NULL, epsilon INTEGER NOT NULL,
    lookback INTEGER NOT NULL);
"""
_PRAGMAS = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
)


@dataclass(frozen=True, slots=True)
class Logged:
    """One logged report of a device."""

    number: int
    t: int
    epsilon: int  # micro-nats
    lookback: int


@dataclass(slots=True)
class DeviceSlot:
    """The store of one device in the file: saves are staged until the round is committed."""

    ledger: FleetLedger = field(repr=False)
    number: int

    def load(self) -> DeviceMemory | Lost:
        """Return the memory saved last."""
        return self.ledger.load(self.number)

    def save(self, memory: DeviceMemory) -> None:
        """Stage a memory; nothing may be sent before the ledger has committed it."""
        self.ledger.stage(self.number, memory)


@dataclass(slots=True)
class FleetLedger:
    """One SQLite file, open in one process."""

    path: Path
    _connection: sqlite3.Connection = field(init=False, repr=False)
    _staged: dict[int, DeviceMemory] = field(default_factory=dict, init=False, repr=False)
    _logged: dict[int, tuple[bytes, int]] = field(default_factory=dict, init=False, repr=False)
    _manifests: dict[bytes, int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            if not is_there(self.path):
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            self._connection = sqlite3.connect(self.path, timeout=1.0, isolation_level=None)
            with ExitStack() as failing:
                failing.callback(self._connection.close)
                self._begin()
                failing.pop_all()  # success: keep everything open
        except (sqlite3.Error, OSError) as fault:
            raise self._broken(fault) from None

    def _begin(self) -> None:
        """Create the tables of a new file, or load the state of an existing one."""
        for pragma in _PRAGMAS:
            self._connection.execute(pragma)
        if not self._connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            self._connection.executescript(f"BEGIN; {_TABLES} COMMIT;")
        elif len(self._connection.execute("PRAGMA table_info(server)").fetchall()) == 1:
            raise self._outdated()
        self._manifests = {
            text: id_ for id_, text in self._connection.execute("SELECT id, text FROM manifest")
        }
        try:
            for text in self._manifests:
                decode_manifest(text)
        except WireError:
            raise self._outdated() from None
        newest = "SELECT number, manifest, max(t) FROM log GROUP BY number"
        self._logged = {
            number: (bytes(manifest), t) for number, manifest, t in self._connection.execute(newest)
        }

    def close(self) -> None:
        """Close the file; staged saves that were not committed are lost."""
        self._connection.close()

    @property
    def server(self) -> str:
        """URL of the server at which the devices are enrolled; empty if there are none."""
        row = self._connection.execute("SELECT url FROM server").fetchone()
        return "" if row is None else str(row[0])

    @property
    def curator(self) -> CuratorKeys:
        """The keys by which the devices know the curator."""
        (text,) = self._connection.execute("SELECT curator FROM server").fetchone()
        return CuratorKeys.from_dict(parse_json(text))

    def trust(self, curator: CuratorKeys, server: str | None = None) -> None:
        """Keep the keys by which the devices know the curator at a server."""
        url, text = server or self.server, json.dumps(curator.to_dict())
        with self._transaction() as write:
            write.execute("DELETE FROM server")
            write.execute("INSERT INTO server VALUES (?, ?)", (url, text))

    def devices(self) -> list[Agreed]:
        """Return the identities in the order of their numbers."""
        rows = self._connection.execute("SELECT device, key FROM device ORDER BY number")
        return [Agreed(bytes(device), bytes(key)) for device, key in rows]

    def add(self, enrolled: list[Agreed]) -> None:
        """Add new identities under the next numbers."""
        rows = [(one.device, one.key) for one in enrolled]
        first = len(self.devices())
        with self._transaction() as write:
            write.executemany(
                "INSERT INTO device VALUES (?, ?, ?)",
                [(first + place, *row) for place, row in enumerate(rows)],
            )

    def load(self, number: int) -> DeviceMemory | Lost:
        """Return the memory a device saved last."""
        row = self._connection.execute(
            "SELECT body, text FROM memory JOIN manifest ON manifest.id = memory.manifest "
            "WHERE number = ?",
            (number,),
        ).fetchone()
        if row is None:
            return Lost("missing")
        try:
            return replace(read_memory(row[0]), pinned=bytes(row[1]))
        except (ValueError, TypeError, KeyError, AttributeError):
            return Lost("corrupt")

    def stage(self, number: int, memory: DeviceMemory) -> None:
        """Stage a device's memory for the next commit."""
        self._staged[number] = memory

    def commit(self) -> None:
        """Write all staged memories and log every new report; durable on return."""
        bodies, news = [], []
        for number, memory in self._staged.items():
            id_ = self._manifests.setdefault(memory.pinned, len(self._manifests) + 1)
            bodies.append((number, id_, write_quickly(memory)))
            newest = memory.entries[-1] if memory.entries else None
            if newest is not None and self._logged.get(number) != (newest.manifest, newest.t):
                self._logged[number] = newest.manifest, newest.t
                entry = (number, newest.manifest, newest.t, newest.epsilon, newest.lookback)
                news.append(entry)
        with self._transaction() as write:
            write.executemany(
                "INSERT OR IGNORE INTO manifest VALUES (?, ?)",
                [(id_, text) for text, id_ in self._manifests.items()],
            )
            write.executemany("INSERT OR REPLACE INTO memory VALUES (?, ?, ?)", bodies)
            write.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?)", news)
        self._staged.clear()

    def log(self, manifest: bytes) -> Iterator[Logged]:
        """Yield every report of a campaign, ordered by round."""
        rows = self._connection.execute(
            "SELECT number, t, epsilon, lookback FROM log WHERE manifest = ? ORDER BY t",
            (manifest,),
        )
        for number, t, epsilon, lookback in rows:
            yield Logged(number, t, epsilon, lookback)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction; a database error rolls it back."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            self._connection.execute("COMMIT")
        except sqlite3.Error as fault:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise self._broken(fault) from None

    def _outdated(self) -> LedgerError:
        return LedgerError(
            f"{self.path} holds a fleet of an earlier version; name another folder with --folder"
        )

    def _broken(self, fault: Exception) -> LedgerError:
        return LedgerError(
            f"the fleet's ledger {self.path} cannot be used ({fault}): nothing is sent without it; "
            "free its disk, make it writable, or end the other process that holds it"
        )


@dataclass(frozen=True, slots=True)
class Recount:
    """Number of reports, and the maximum spending of any device in any window."""

    n_reports: int
    worst: int  # micro-nats
    ceiling: int  # micro-nats

    @property
    def within(self) -> bool:
        """Whether no window of any device exceeded epsilon."""
        return self.worst <= self.ceiling

    def __str__(self) -> str:
        verdict = "within" if self.within else "ABOVE"
        return (
            f"{self.n_reports:,} reports; at most {self.worst / MICRO:g} in any window of any "
            f"device, {verdict} epsilon={self.ceiling / MICRO:g}"
        )


def recount(ledger: FleetLedger, manifest: Manifest, id_: bytes) -> Recount:
    """Recount all reports of a campaign, independently of the device's code."""
    replay = Replay(manifest.gap, max((1, *manifest.ages)))

    def alike(one: Logged) -> tuple[int, int, int]:
        return one.t, one.epsilon, one.lookback

    for (t, epsilon, lookback), same in groupby(sorted(ledger.log(id_), key=alike), key=alike):
        numbers = np.array([one.number for one in same], np.int64)
        replay.observe(t, epsilon, numbers, lookback)
    return Recount(replay.n_reports, replay.worst, manifest.epsilon)
