"""Tokens and devices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from retrasyn.errors import UnknownToken
from retrasyn.service.store.base import DeviceRow
from retrasyn.service.store.tables import PAGE, Tables


@dataclass(slots=True)
class Enrolments(Tables):
    """Who may report; see `base.Store` for what each call promises."""

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
        with self.engine.transaction():
            rows = [(hashed,) for hashed in hashes]
            self.insert("tokens", "hash", rows, ending="ON CONFLICT (hash) DO NOTHING")

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
            self.insert("devices", "key, device, secret", rows)
        return range(first, first + len(devices))

    def remove_device(self, device: bytes) -> bool:
        """Delete a device's row."""
        statement = "DELETE FROM devices WHERE device = ? RETURNING key"
        removed = bool(self.engine.execute(statement, (device,)))
        if removed:
            self.tidy("devices")
        return removed

    def _take_keys(self, n: int) -> int:
        """Return the first of n keys that nobody had or will have."""
        statement = "UPDATE next_key SET value = value + ? RETURNING value"
        return int(self.engine.execute(statement, (n,))[0][0]) - n

    def _take_tokens(self, hashes: Sequence[bytes]) -> int:
        """Delete tokens and return how many there were."""
        n = 0
        for first in range(0, len(hashes), PAGE):
            some = hashes[first : first + PAGE]
            places = ", ".join("?" * len(some))
            statement = f"DELETE FROM tokens WHERE hash IN ({places}) RETURNING hash"  # noqa: S608 - question marks
            n += len(self.engine.execute(statement, some))
        return n
