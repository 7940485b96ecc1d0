"""The store in SQL that SQLite and PostgreSQL both speak."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from retrasyn.errors import StoreError
from retrasyn.service.store.base import FoldedRow, RoundRow
from retrasyn.service.store.engine import Row
from retrasyn.service.store.enrolments import Enrolments


@dataclass(slots=True)
class SQLStore(Enrolments):
    """See `base.Store` for what each call promises."""

    _campaign: int = -1  # none is entered
    _number: int = 0  # of the next blob; only ever grows

    def enter(self, campaign: bytes) -> None:
        """Speak of the rounds of this campaign; raw frames of any other are deleted."""
        with self.engine.transaction():
            rows = self.engine.execute("SELECT number, id FROM campaigns ORDER BY number")
            known = {bytes(name): int(number) for number, name in rows}
            number = known.get(campaign, len(known))
            if campaign not in known:
                self.insert("campaigns", "number, id", [(number, campaign)])
            self.engine.execute("DELETE FROM frames WHERE campaign <> ?", (number,))
            newest = self.engine.execute("SELECT COALESCE(MAX(number), -1) FROM frames")
        self._campaign, self._number = number, int(newest[0][0]) + 1
        self.tidy("frames")

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
        self.tidy("frames")

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
