"""How one state is hidden among all, and how many such reports add up to frequencies."""

from retrasyn.oracles.oue import OUE

__all__ = ["OUE"]
