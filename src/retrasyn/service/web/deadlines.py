"""Deadlines for many short tasks at once, without a timer for each of them.

A timer of its own would cost a small body more than being read does. So tasks are noted in a table,
in the order of their deadlines, and one sweeper cancels those that are over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

SWEEP = 0.25  # seconds from one look at the table to the next
_Value = TypeVar("_Value")


@dataclass(slots=True)
class Deadlines:
    """Raises TimeoutError where something takes longer than `seconds`, or up to a sweep more."""

    seconds: float
    _running: dict[asyncio.Task[Any], float] = field(default_factory=dict)  # by deadline
    _over: set[asyncio.Task[Any]] = field(default_factory=set)
    _sweeper: asyncio.TimerHandle | None = None

    async def wait(self, something: Awaitable[_Value]) -> _Value:
        """Wait for something within the deadline."""
        task = asyncio.current_task()
        if task is None:  # pragma: no cover - only tasks take requests
            raise RuntimeError("a deadline needs a task")
        self._running[task] = monotonic() + self.seconds
        if self._sweeper is None:
            self._sweeper = task.get_loop().call_later(SWEEP, self._sweep)
        try:
            return await something
        except asyncio.CancelledError:
            if task in self._over and task.uncancel() == 0:
                raise TimeoutError from None
            raise
        finally:
            self._running.pop(task, None)
            self._over.discard(task)

    def _sweep(self) -> None:
        """Cancel what is over: those in front, since the table is in the order of deadlines."""
        now, over = monotonic(), []
        for task, deadline in self._running.items():
            if deadline > now:
                break
            over.append(task)
        for task in over:
            del self._running[task]
            self._over.add(task)
            task.cancel()
        again = asyncio.get_running_loop().call_later(SWEEP, self._sweep) if self._running else None
        self._sweeper = again
