"""The public grid and the numbering of what a device can report."""

from retrasyn.space.grid import Box, Grid
from retrasyn.space.states import StateSpace

__all__ = ["Box", "Grid", "StateSpace"]
