"""The synthetic population: who is born, who moves where, who ends."""

from retrasyn.synthesis.lifecycle import EnterQuit, Immortal, QuitAsSeen, QuitByAge, QuitByLength

__all__ = ["EnterQuit", "Immortal", "QuitAsSeen", "QuitByAge", "QuitByLength"]
