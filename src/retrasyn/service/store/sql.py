"""The store in the SQL that SQLite and PostgreSQL share: its tables and its statements."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from retrasyn.errors import StoreError, UnknownToken
from retrasyn.service.store.base import (
    Connection,
    DeviceRow,
    EvidenceRow,
    FoldedRow,
    RoundRow,
    Row,
)

STEPS: tuple[str, ...] = (
    """
    CREATE TABLE small_values (name TEXT PRIMARY KEY, value BYTES NOT NULL);
    CREATE TABLE tokens (hash BYTES PRIMARY KEY);
    CREATE TABLE next_key (id INTEGER PRIMARY KEY CHECK (id = 1), value BIGINT NOT NULL);
    INSERT INTO next_key (id, value) VALUES (1, 0);
    CREATE TABLE devices (
        key BIGINT PRIMARY KEY, device BYTES NOT NULL UNIQUE, secret BYTES NOT NULL);
    CREATE TABLE campaigns (number BIGINT PRIMARY KEY, id BYTES NOT NULL UNIQUE);
    CREATE TABLE rounds (
        campaign BIGINT NOT NULL, t BIGINT NOT NULL, epsilon BIGINT NOT NULL, portion TEXT NOT NULL,
        ends BIGINT NOT NULL, envelope BYTES NOT NULL, drawn BYTES, PRIMARY KEY (campaign, t));
    CREATE TABLE frames (
        campaign BIGINT NOT NULL, t BIGINT NOT NULL, number BIGINT NOT NULL, body BYTES NOT NULL,
        PRIMARY KEY (campaign, t, number));
    CREATE TABLE folded (
        campaign BIGINT NOT NULL, t BIGINT NOT NULL, body BYTES NOT NULL, digest BYTES NOT NULL,
        PRIMARY KEY (campaign, t));
    CREATE TABLE marks (
        campaign BIGINT NOT NULL, t BIGINT NOT NULL, body BYTES NOT NULL,
        PRIMARY KEY (campaign, t));
    """,
    """
    CREATE TABLE evidence (
        campaign BIGINT NOT NULL, t BIGINT NOT NULL, body BYTES NOT NULL,
        PRIMARY KEY (campaign, t));
    """,
)
PAGE = 1000
"""Rows that one statement reads or writes."""
_log = logging.getLogger(__name__)


def migrate(engine: Connection) -> None:
    """Bring the tables to this version, one step in one transaction each."""
    engine.execute("CREATE TABLE IF NOT EXISTS version (number INTEGER NOT NULL)")
    rows = engine.execute("SELECT number FROM version")
    found = int(rows[0][0]) if rows else 0
    if found > len(STEPS):
        raise StoreError(
            f"{engine.place} has tables of version {found}, and this RetraSyn knows version "
            f"{len(STEPS)}; use the newer RetraSyn that wrote them, or restore a back-up"
        )
    for number, step in enumerate(STEPS[found:], start=found + 1):
        with engine.transaction():
            for statement in filter(str.strip, step.split(";")):
                engine.execute(statement.replace("BYTES", engine.bytes_type))
            engine.execute("DELETE FROM version")
            engine.execute("INSERT INTO version (number) VALUES (?)", (number,))


@dataclass(slots=True)
class Tables:
    """The tables of this version; see `base.CampaignStore` for what each call promises."""

    engine: Connection
    _session: bytes = field(default_factory=lambda: secrets.token_bytes(16), repr=False)
    _written: int | None = None  # number of the last write that is known to be durable
    _tried: int = 0  # and of the last one that may be

    def __post_init__(self) -> None:
        migrate(self.engine)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run the block as one transaction, if the last write is still there.

        Every write replaces the number of the one before it. Where that is not found, rows have
        vanished or an older copy was put in their place, and what was acknowledged is lost.
        """
        with self.engine.transaction():
            if self._written is not None:
                self._tried += 1
                found = self.engine.execute(
                    "UPDATE small_values SET value = ? WHERE name = 'last write' "
                    "AND value BETWEEN ? AND ? RETURNING name",
                    [self._stamp(n) for n in (self._tried, self._written, self._tried - 1)],
                )
                if not found:
                    raise StoreError(
                        f"{self.engine.place} does not hold what was written to it last: it was "
                        "emptied, or an older copy was put in its place; put back what was there, "
                        "or restart the service, which says where it goes on"
                    )
            yield
        if self._written is not None:
            self._written = self._tried

    def begin_session(self) -> None:
        """Number the writes from here on; belongs into a transaction."""
        self.put("last write", self._stamp(0))
        self._written = self._tried = 0

    def _stamp(self, number: int) -> bytes:
        return self._session + number.to_bytes(8, "big")

    def close(self) -> None:
        """Close the file or the connection."""
        self.engine.close()

    def probe(self, size: int = 0) -> None:
        """Write some bytes durably, and delete them."""
        for value in (bytes(size), b""):
            with self.writing():
                self.put("probe", value)

    def get(self, name: str) -> bytes | None:
        """Return a named value."""
        rows = self.engine.execute("SELECT value FROM small_values WHERE name = ?", (name,))
        return bytes(rows[0][0]) if rows else None

    def put(self, name: str, value: bytes) -> None:
        """Store a named value."""
        self.engine.execute(
            "INSERT INTO small_values (name, value) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, value),
        )

    def tidy(self, table: str) -> None:
        """Remove deleted rows from the disk; failing at that is no failure of the call."""
        try:
            self.engine.tidy(table)
        except StoreError as fault:
            _log.warning("tidying failed table=%s fault=%s", table, fault)

    def insert(self, table: str, columns: str, rows: Sequence[Row], *, ending: str = "") -> None:
        """Insert rows, many in one statement."""
        row_places = f"({', '.join('?' * (columns.count(',') + 1))})"
        for first in range(0, len(rows), PAGE):
            some = rows[first : first + PAGE]
            places = ", ".join([row_places] * len(some))
            self.engine.execute(
                f"INSERT INTO {table} ({columns}) VALUES {places} {ending}",  # noqa: S608 - our own names
                [value for row in some for value in row],
            )


@dataclass(slots=True)
class Enrolments(Tables):
    """The devices that may report; see `base.CampaignStore` for what each call promises."""

    def devices(self) -> Iterator[DeviceRow]:
        """Return all enrolled devices."""
        after = -1
        while rows := self.engine.execute(
            f"SELECT key, device, secret FROM devices WHERE key > ? ORDER BY key LIMIT {PAGE}",  # noqa: S608 - a constant
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
        with self.writing():
            rows = [(hashed,) for hashed in hashes]
            self.insert("tokens", "hash", rows, ending="ON CONFLICT (hash) DO NOTHING")

    def n_tokens(self, hashes: Sequence[bytes]) -> int:
        """Return how many of these tokens are known and not used up."""
        return self._with_tokens(hashes, "SELECT hash FROM tokens WHERE hash IN ({})")

    def enrol(
        self, hashes: Sequence[bytes], devices: Sequence[tuple[bytes, bytes]]
    ) -> Sequence[int]:
        """Use up one token for each device."""
        if len(hashes) != len(devices):
            raise ValueError(f"{len(hashes)} tokens do not enrol {len(devices)} devices")
        with self.writing():
            first = self._take_keys(len(devices))
            statement = "DELETE FROM tokens WHERE hash IN ({}) RETURNING hash"
            if self._with_tokens(hashes, statement) < len(hashes):
                raise UnknownToken(
                    "an enrolment token is unknown or was used before; ask for a new one"
                )
            rows = [(key, *row) for key, row in enumerate(devices, start=first)]
            self.insert("devices", "key, device, secret", rows)
        return range(first, first + len(devices))

    def remove_device(self, device: bytes) -> bool:
        """Delete a device's row."""
        statement = "DELETE FROM devices WHERE device = ? RETURNING key"
        with self.writing():
            removed = bool(self.engine.execute(statement, (device,)))
        if removed:
            self.tidy("devices")
        return removed

    def _take_keys(self, n: int) -> int:
        """Return the first of n keys that are never given again."""
        statement = "UPDATE next_key SET value = value + ? RETURNING value"
        return int(self.engine.execute(statement, (n,))[0][0]) - n

    def _with_tokens(self, hashes: Sequence[bytes], statement: str) -> int:
        """Run a statement for tokens and return how many there were."""
        n = 0
        for first in range(0, len(hashes), PAGE):
            some = hashes[first : first + PAGE]
            n += len(self.engine.execute(statement.format(", ".join("?" * len(some))), some))
        return n


@dataclass(slots=True)
class SQLStore(Enrolments):
    """The rounds of the campaign; see `base.CampaignStore` for what each call promises."""

    _campaign: int = -1  # none is entered
    _number: int = 0  # of the next blob; only ever grows

    def campaigns(self) -> Sequence[bytes]:
        """Return the ids of all campaigns."""
        rows = self.engine.execute("SELECT id FROM campaigns ORDER BY number")
        return [bytes(name) for (name,) in rows]

    def enter(self, campaign: bytes) -> None:
        """Use the rounds of this campaign; raw frames of any other are deleted."""
        with self.engine.transaction():
            rows = self.engine.execute("SELECT number, id FROM campaigns ORDER BY number")
            known = {bytes(name): int(number) for number, name in rows}
            number = known.get(campaign, len(known))
            if campaign not in known:
                self.insert("campaigns", "number, id", [(number, campaign)])
            self.engine.execute("DELETE FROM frames WHERE campaign <> ?", (number,))
            newest = self.engine.execute("SELECT COALESCE(MAX(number), -1) FROM frames")
            self.begin_session()
        self._campaign, self._number = number, int(newest[0][0]) + 1
        self.tidy("frames")

    def add_round(self, row: RoundRow) -> None:
        """Keep a round that opens."""
        values = (row.epsilon, str(row.portion), row.ends, row.envelope, row.drawn)
        with self.writing():
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
        """Keep what was accepted: one transaction."""
        campaign, first = self._entered(), self._number
        self._number += len(blobs)
        rows = [(campaign, t, number, blob) for number, (t, blob) in enumerate(blobs, start=first)]
        with self.writing():
            self.insert("frames", "campaign, t, number, body", rows)

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

    def fold(
        self,
        row: FoldedRow,
        *,
        marks: bytes,
        forget_before: int,
        evidence: EvidenceRow | None = None,
    ) -> None:
        """Keep the folded round, delete its frames."""
        place = (self._entered(), row.t)
        with self.writing():
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
            if evidence is not None:
                self._replace_evidence(evidence)
        self.tidy("frames")

    def _replace_evidence(self, row: EvidenceRow) -> None:
        self.engine.execute(
            "INSERT INTO evidence (campaign, t, body) VALUES (?, ?, ?) "
            "ON CONFLICT (campaign, t) DO UPDATE SET body = excluded.body",
            (self._campaign, row.t, row.body),
        )
        self.engine.execute(
            "DELETE FROM evidence WHERE campaign <> ? OR t < ?", (self._campaign, row.oldest)
        )

    def folded(self, first: int = 0) -> Iterator[FoldedRow]:
        """Return the folded rounds from a timestamp on."""
        for t, body, digest in self._by_timestamp("body, digest", "folded", first):
            yield FoldedRow(t=t, body=bytes(body), digest=bytes(digest))

    def marks(self, first: int = 0) -> Iterator[tuple[int, bytes]]:
        """Return the marks of folded rounds from a timestamp on."""
        for t, body in self._by_timestamp("body", "marks", first):
            yield t, bytes(body)

    def evidence(self) -> Iterator[tuple[int, bytes]]:
        """Return all evidence."""
        for t, body in self._by_timestamp("body", "evidence", 0):
            yield t, bytes(body)

    def _entered(self) -> int:
        if self._campaign < 0:
            raise ValueError("no campaign was entered")
        return self._campaign

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
        """Yield rows one timestamp at a time, so that a long campaign needs little memory."""
        while rows := self.engine.execute(
            f"SELECT t, {columns} FROM {table} WHERE campaign = ? AND t >= ? ORDER BY t LIMIT 1",  # noqa: S608 - our own names
            (self._entered(), first),
        ):
            yield rows[0]
            first = rows[0][0] + 1
