"""What a store is, and one that forgets when the process ends."""

from dataclasses import dataclass
from typing import Literal, Protocol

from retrasyn.device.memory import Memory


@dataclass(frozen=True, slots=True)
class Lost:
    """Nothing that could be trusted was found."""

    reason: Literal["missing", "corrupt", "rolled back"]
    spent: int = 0  # at least so much in all its life, where that can still be read


class Store(Protocol):
    """Keeps one memory. Whatever goes wrong is a `LedgerError`, and then nothing may be sent."""

    def load(self) -> Memory | Lost:
        """Return what was saved last, or why it cannot be trusted."""
        ...  # pragma: no cover - a protocol has no body

    def save(self, memory: Memory) -> None:
        """Replace what is kept; it is durable when this returns."""
        ...  # pragma: no cover - a protocol has no body


@dataclass(slots=True)
class MemoryStore:
    """A store for simulations and tests: on a device it would forget with every restart.

    >>> store = MemoryStore()
    >>> store.load()
    Lost(reason='missing', spent=0)
    """

    memory: Memory | None = None

    def load(self) -> Memory | Lost:
        """Return what was saved last."""
        return Lost("missing") if self.memory is None else self.memory

    def save(self, memory: Memory) -> None:
        """Keep a memory until the process ends."""
        self.memory = memory
