"""The store in SQL that SQLite and PostgreSQL both speak."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from retrasyn.errors import StoreError, UnknownToken
from retrasyn.service.store.base import DeviceRow, FoldedRow, RoundRow
from retrasyn.service.store.engine import Engine, Row
from retrasyn.service.store.migrations import migrate

_PAGE = 1000
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class SQLStore:
    """See `base.Store` for what each call promises."""

    engine: Engine
    _campaign: int = -1  # none is entered
    _number: int = 0  # of the next blob; only ever grows

    def __post_init__(self) -> None:
        migrate(self.engine)

    def close(self) -> None:
        """Let go of the file or the connection."""
        self.engine.close()

    def probe(self, size: int = 0) -> None:
        """Write something durably, and let it go."""
        self.put("probe", bytes(size))
        self.put("probe", b"")

    def enter(self, campaign: bytes) -> None:
        """Speak of the rounds of this campaign; raw frames of any other are deleted."""
        with self.engine.transaction():
            rows = self.engine.execute("SELECT number, id FROM campaigns ORDER BY number")
            known = {bytes(name): int(number) for number, name in rows}
            number = known.get(campaign, len(known))
            if campaign not in known:
                self._insert("campaigns", "number, id", [(number, campaign)])
            self.engine.execute("DELETE FROM frames WHERE campaign <> ?", (number,))
            newest = self.engine.execute("SELECT COALESCE(MAX(number), -1) FROM frames")
        self._campaign, self._number = number, int(newest[0][0]) + 1
        self._tidy("frames")

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

    def devices(self) -> Iterator[DeviceRow]:
        """Return all enrolled devices."""
        after = -1
        while rows := self.engine.execute(
            f"SELECT key, device, secret FROM devices WHERE key > ? ORDER BY key LIMIT {_PAGE}",  # noqa: S608 - a constant
            (after,),
        ):
            for key, device, secret in rows:
                yield DeviceRow(key, bytes(device), bytes(secret))
            after = rows[-1][0]

    def n_ever_enrolled(self) -> int:
        """Return how many devices ever enrolled."""
        return int(self.engine.execute("SELECT value FROM next_key")[0][0])

    def add_tokens(self, hashes: Iterable[bytes]) -> None:
        """Keep the hashes of tokens."""
        with self.engine.transaction():
            rows = [(hashed,) for hashed in hashes]
            self._insert("tokens", "hash", rows, ending="ON CONFLICT (hash) DO NOTHING")

    def n_tokens(self) -> int:
        """Return how many tokens are left."""
        return int(self.engine.execute("SELECT COUNT(*) FROM tokens")[0][0])

    def enrol(
        self, hashes: Sequence[bytes], devices: Sequence[tuple[bytes, bytes]]
    ) -> Sequence[int]:
        """Use up one token for each device."""
        if len(hashes) != len(devices):
            raise ValueError(f"{len(hashes)} tokens do not enrol {len(devices)} devices")
        with self.engine.transaction():
            first = self._take_keys(len(devices))
            if self._take_tokens(hashes) < len(hashes):
                raise UnknownToken(
                    "an enrolment token is unknown or was used before; ask for a new one"
                )
            rows = [(key, *row) for key, row in enumerate(devices, start=first)]
            self._insert("devices", "key, device, secret", rows)
        return range(first, first + len(devices))

    def remove_device(self, device: bytes) -> bool:
        """Delete a device's row."""
        statement = "DELETE FROM devices WHERE device = ? RETURNING key"
        removed = bool(self.engine.execute(statement, (device,)))
        if removed:
            self._tidy("devices")
        return removed

    def add_round(self, row: RoundRow) -> None:
        """Keep a round that opens."""
        values = (row.epsilon, str(row.portion), row.ends, row.envelope, row.drawn)
        self.engine.execute(
            "INSERT INTO rounds (campaign, t, epsilon, portion, ends, envelope, drawn) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (campaign, t) DO NOTHING",
            (self._entered(), row.t, *values),
        )
        if self._rounds_from(row.t, row.t) != [row]:
            raise StoreError(f"round {row.t} was opened otherwise before; it cannot be changed")

    def rounds(self, first: int = 0) -> Sequence[RoundRow]:
        """Return the rounds from a timestamp on."""
        return self._rounds_from(first, (1 << 32) - 1)

    def append(self, blobs: Sequence[tuple[int, bytes]]) -> None:
        """Keep what was accepted: one statement, one transaction."""
        campaign, first = self._entered(), self._number
        self._number += len(blobs)
        rows = [(campaign, t, number, blob) for number, (t, blob) in enumerate(blobs, start=first)]
        self._insert("frames", "campaign, t, number, body", rows)

    def frames(self, t: int) -> Sequence[bytes]:
        """Return the blobs of a round."""
        rows = self.engine.execute(
            "SELECT body FROM frames WHERE campaign = ? AND t = ? ORDER BY number",
            (self._entered(), t),
        )
        return [bytes(body) for (body,) in rows]

    def unfolded(self) -> Sequence[int]:
        """Return the timestamps of rounds that were not folded."""
        rows = self.engine.execute(
            "SELECT t FROM rounds WHERE campaign = ? AND t NOT IN "
            "(SELECT t FROM folded WHERE campaign = ?) ORDER BY t",
            (self._entered(), self._campaign),
        )
        return [int(t) for (t,) in rows]

    def fold(self, row: FoldedRow, *, marks: bytes, forget_before: int) -> None:
        """Keep the folded round, delete its frames."""
        place = (self._entered(), row.t)
        with self.engine.transaction():
            before = self.engine.execute(
                "SELECT body, digest FROM folded WHERE campaign = ? AND t = ?", place
            )
            if before and (bytes(before[0][0]), bytes(before[0][1])) != (row.body, row.digest):
                raise StoreError(f"round {row.t} was folded otherwise before; it cannot be changed")
            if not before:
                self.engine.execute(
                    "INSERT INTO folded (campaign, t, body, digest) VALUES (?, ?, ?, ?)",
                    (*place, row.body, row.digest),
                )
                self.engine.execute(
                    "INSERT INTO marks (campaign, t, body) VALUES (?, ?, ?)", (*place, marks)
                )
            self.engine.execute("DELETE FROM frames WHERE campaign = ? AND t = ?", place)
            self.engine.execute(
                "DELETE FROM marks WHERE campaign = ? AND t < ?", (self._campaign, forget_before)
            )
        self._tidy("frames")

    def folded(self, first: int = 0) -> Iterator[FoldedRow]:
        """Return the folded rounds from a timestamp on."""
        for t, body, digest in self._by_timestamp("body, digest", "folded", first):
            yield FoldedRow(t=t, body=bytes(body), digest=bytes(digest))

    def marks(self, first: int = 0) -> Iterator[tuple[int, bytes]]:
        """Return the marks of folded rounds from a timestamp on."""
        for t, body in self._by_timestamp("body", "marks", first):
            yield t, bytes(body)

    def _entered(self) -> int:
        if self._campaign < 0:
            raise ValueError("no campaign was entered")
        return self._campaign

    def _tidy(self, table: str) -> None:
        """Let what was deleted leave the disk; it is deleted even if this must wait."""
        try:
            self.engine.tidy(table)
        except StoreError as fault:
            _log.warning("tidying failed table=%s fault=%s", table, fault)

    def _insert(self, table: str, columns: str, rows: Sequence[Row], *, ending: str = "") -> None:
        """Insert rows, many in one statement; a few are one transaction by themselves."""
        row_places = f"({', '.join('?' * (columns.count(',') + 1))})"
        for first in range(0, len(rows), _PAGE):
            some = rows[first : first + _PAGE]
            places = ", ".join([row_places] * len(some))
            self.engine.execute(
                f"INSERT INTO {table} ({columns}) VALUES {places} {ending}",  # noqa: S608 - our own names
                [value for row in some for value in row],
            )

    def _take_tokens(self, hashes: Sequence[bytes]) -> int:
        """Delete tokens and return how many there were."""
        n = 0
        for first in range(0, len(hashes), _PAGE):
            some = hashes[first : first + _PAGE]
            places = ", ".join("?" * len(some))
            statement = f"DELETE FROM tokens WHERE hash IN ({places}) RETURNING hash"  # noqa: S608 - question marks
            n += len(self.engine.execute(statement, some))
        return n

    def _take_keys(self, n: int) -> int:
        """Return the first of n keys that nobody had or will have."""
        statement = "UPDATE next_key SET value = value + ? RETURNING value"
        return int(self.engine.execute(statement, (n,))[0][0]) - n

    def _rounds_from(self, first: int, last: int) -> list[RoundRow]:
        rows = self.engine.execute(
            "SELECT t, epsilon, portion, ends, envelope, drawn FROM rounds "
            "WHERE campaign = ? AND t BETWEEN ? AND ? ORDER BY t",
            (self._entered(), first, last),
        )
        return [
            RoundRow(
                t=t,
                epsilon=epsilon,
                portion=int(portion),
                ends=ends,
                envelope=bytes(envelope),
                drawn=None if drawn is None else bytes(drawn),
            )
            for t, epsilon, portion, ends, envelope, drawn in rows
        ]

    def _by_timestamp(self, columns: str, table: str, first: int) -> Iterator[Row]:
        """Return rows one timestamp after the other, so that a long past needs little memory."""
        while rows := self.engine.execute(
            f"SELECT t, {columns} FROM {table} WHERE campaign = ? AND t >= ? ORDER BY t LIMIT 1",  # noqa: S608 - our own names
            (self._entered(), first),
        ):
            yield rows[0]
            first = rows[0][0] + 1
