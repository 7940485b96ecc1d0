"""From frames to acknowledgements: judge, write once for many, then answer.

To fold round t: `gate.close_round(t)`, `await ingest.settle()`, `gate.taken(t)`,
`await ingest.run(store.fold, ...)`, `gate.forget_round(t)`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from retrasyn.service.gate import Gate
from retrasyn.service.store import Store


class Ingest:
    """One queue, one writer thread. Use from one event loop."""

    def __init__(
        self,
        gate: Gate,
        store: Store,
        *,
        clock: Callable[[], float] = time.time,
        queue_frames: int = 200_000,
    ) -> None:
        raise NotImplementedError

    async def submit(self, frames: Sequence[bytes]) -> list[str]:
        """Return the status of each frame, durable; `Busy` if they cannot be taken now."""
        raise NotImplementedError

    async def submit_body(self, body: bytes) -> bytes:
        """Return one status byte for each frame of a batch, durable; `Busy` or `WireError`."""
        raise NotImplementedError

    async def run(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Run a store call on the writer thread, after everything handed to it before."""

    async def settle(self) -> None:
        """Wait until all that was judged is durable; while the store fails, until it works."""

    @property
    def healthy(self) -> bool:
        """Whether the last write worked; nothing is acknowledged while it did not."""
        raise NotImplementedError

    @property
    def n_waiting(self) -> int:
        """Frames that were taken in and not answered yet."""
        raise NotImplementedError

    async def close(self) -> None:
        """Finish what was taken in, and stop the writer thread; the store stays open."""
