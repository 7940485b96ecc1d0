"""The little that SQLite and PostgreSQL do differently."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Row = tuple[Any, ...]


class Engine(Protocol):
    """One connection. Every fault is a `StoreError`; after one, the next call connects anew."""

    @property
    def place(self) -> str:
        """What to call it in a message: no password in it."""
        ...  # pragma: no cover - a protocol has no body

    @property
    def bytes_type(self) -> str:
        """The name of the column type for bytes."""
        ...  # pragma: no cover - a protocol has no body

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement, with ? for each value; on its own it is one transaction."""
        ...  # pragma: no cover - a protocol has no body

    def transaction(self) -> AbstractContextManager[None]:
        """Run what is within as one transaction, durable at the end."""
        ...  # pragma: no cover - a protocol has no body

    def tidy(self, table: str) -> None:
        """Let what was deleted from a table leave the disk."""
        ...  # pragma: no cover - a protocol has no body

    def close(self) -> None:
        """Let go of the file or the connection."""
        ...  # pragma: no cover - a protocol has no body
