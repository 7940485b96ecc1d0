"""Releases as they come, for readers who wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Summary = dict[str, Any]
_AT_ONCE = 100


@dataclass(slots=True)
class Feed:
    """Wakes readers when there is something new; each reads on from where it is.

    Nothing is queued for anybody, so a slow reader costs nothing but its own lag.
    """

    read: Callable[[int, int], Sequence[tuple[int, Summary]]]  # after t, at most so many
    newest: int | None = None
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _closed: bool = False

    def publish(self, t: int) -> None:
        """Tell everybody that release t is there."""
        self.newest = t
        self._wake()

    def close(self) -> None:
        """Let every reader come to its end."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def subscribe(self, after: int | None = None) -> AsyncIterator[tuple[int, Summary]]:
        """Go through releases after t, or after now, as long as the service runs."""
        place = after if after is not None else -1 if self.newest is None else self.newest
        while not self._closed:
            news = self._news
            found = self.read(place, _AT_ONCE)
            for t, summary in found:
                yield t, summary
                place = t
            if not found:
                await news.wait()
