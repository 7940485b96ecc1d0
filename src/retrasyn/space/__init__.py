"""The public grid and the numbering of states."""

from retrasyn.space.grid import Box, Grid
from retrasyn.space.states import StateSpace

__all__ = ["Box", "Grid", "StateSpace"]
