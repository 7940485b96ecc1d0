"""The synthetic population: births, moves and ends of streams."""

from retrasyn.synthesis.lifecycle import (
    EnterQuit,
    Immortal,
    QuitAsSeen,
    QuitByAge,
    QuitByLength,
    Trips,
)

__all__ = ["EnterQuit", "Immortal", "QuitAsSeen", "QuitByAge", "QuitByLength", "Trips"]
