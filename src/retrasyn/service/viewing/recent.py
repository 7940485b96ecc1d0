"""What was computed lately, within so many bytes; shared by threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass(slots=True)
class Recent(Generic[Value]):
    """Remembers values until there is no room; the one used longest ago goes first.

    >>> texts = Recent[bytes](5, size=len)
    >>> [len(texts.get(n, lambda n=n: bytes(n))) for n in (2, 3, 2, 1)]
    [2, 3, 2, 1]
    >>> sorted(texts.keys())
    [1, 2]
    """

    most: int  # bytes
    size: Callable[[Value], int]
    _known: OrderedDict[Hashable, Value] = field(default_factory=OrderedDict)
    _used: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Hashable, make: Callable[[], Value | None]) -> Value | None:
        """Return the value of a key, made if need be; None is not remembered.

        Two threads may make the same value at once: that costs time, while waiting would let one
        slow reader stop the others.
        """
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        made = make()
        if made is not None:
            self._keep(key, made)
        return made

    def keys(self) -> list[Hashable]:
        """Return what is remembered, the oldest first."""
        with self._lock:
            return list(self._known)

    def _keep(self, key: Hashable, value: Value) -> None:
        size = self.size(value)
        with self._lock:
            if key in self._known or size > self.most:
                return
            self._known[key] = value
            self._used += size
            while self._used > self.most:
                _, dropped = self._known.popitem(last=False)
                self._used -= self.size(dropped)
